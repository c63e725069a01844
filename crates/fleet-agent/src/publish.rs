//! `tollgate-fleet publish`, `rollout` and `rollback`: manifests and their steps.

use std::{io, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use tollgate_fleet::{
    Generation, Manifest, Name, Root, Signed, Time,
    document::Text,
    manifest::Progress,
    part::Part,
    report::Limits,
    rollout::{After, Step},
    stage::{Mode, Stage},
    store::{Head, Revision, Store, Version},
    trust::{Checked, TrustError},
};

use crate::{
    input::{duration, read},
    output, report,
    source::{Signing, Source},
    zones,
};

/// Nine shrinks a policy to a tenth in a second; the levels above take minutes for little more.
const LEVEL: i32 = 9;

/// How long a simulated fleet's manifest is valid.
const VALID: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// The built policy
    policy: PathBuf,
    /// The guard's database
    #[arg(long, value_name = "FILE")]
    guard: Option<PathBuf>,
    /// Which networks' packets have labels
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    /// The sanity questions, which nodes ask before they keep the policy
    #[arg(long, value_name = "FILE")]
    sanity: Option<PathBuf>,
    /// The zones of the fleet, which the policy was built with; nodes ask whether it keeps them apart
    #[arg(long, value_name = "FILE")]
    zones: Option<PathBuf>,
    /// A stage of the rollout, such as `share 10 permissive hold 3600 denials 5 missing 2`; the last is `share 100 ...`
    #[arg(long = "stage", value_name = "STAGE")]
    stages: Vec<Stage>,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, Args)]
pub(crate) struct Rollout {
    /// What to do
    step: Word,
    /// Begin the next stage whatever the limits of the present one say
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, Args)]
pub(crate) struct What {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    signing: Signing,
    /// The group of nodes
    #[arg(long, value_name = "GROUP")]
    group: Name,
    /// How long nodes take it for the newest
    #[arg(long, value_name = "TIME", default_value = "30days", value_parser = duration)]
    valid: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Word {
    /// Begin the next stage
    Promote,
    /// No further node takes the generation
    Pause,
    /// They do again
    Resume,
    /// All nodes take it at once
    Emergency,
    /// Sign the manifest again, before it expires
    Renew,
}

impl Publish {
    /// A policy with sanity questions, for all nodes of the group at once.
    pub(crate) fn to_all(policy: PathBuf, sanity: PathBuf, source: Source, signing: Signing, group: Name) -> Self {
        let what = What { source, signing, group, valid: VALID };
        Self { policy, guard: None, network: None, sanity: Some(sanity), zones: None, stages: Vec::new(), what }
    }
}

impl Publish {
    fn generation(&self) -> anyhow::Result<Generation> {
        let Self { policy: path, guard, network, sanity, zones, what, .. } = self;
        let policy = read(path)?;
        let mut others = Vec::new();
        for (part, file) in [(Part::Guard, guard), (Part::Network, network), (Part::Sanity, sanity)] {
            if let Some(file) = file {
                others.push((part, read(file)?));
            }
        }
        if let Some(zones) = zones {
            let written = others.pop_if(|(part, _)| *part == Part::Sanity).map(|(_, written)| written);
            let questions = zones::questions(zones, &policy, &what.group, &written.unwrap_or_default())?;
            others.push((Part::Sanity, questions));
        }
        Generation::new(&policy, others).with_context(|| path.display().to_string())
    }
}

pub(crate) async fn publish(arguments: &Publish) -> anyhow::Result<ExitCode> {
    let Publish { stages, what, .. } = arguments;
    let root = what.source.root().await?;
    let generation = arguments.generation()?;
    let (parts, pieces) = generation.pack(compress)?;
    let stages = if stages.is_empty() { vec![Stage::everybody(Mode::Enforcing)] } else { stages.clone() };
    let (present, revision) = what.present(&root).await?;
    let next = match &present {
        Some(present) => {
            let after = what.after(&root, present);
            Manifest { base: after.base(), parts, stages, progress: Progress::Open(1), ..after.next() }
        }
        None => what.first(&root, parts, stages),
    };
    let store = what.source.store()?;
    for (hash, bytes) in &pieces {
        store.put_piece(hash, bytes).await?;
    }
    what.put(&root, next, revision).await
}

pub(crate) async fn rollout(Rollout { step, now, what }: &Rollout) -> anyhow::Result<ExitCode> {
    let step = match step {
        Word::Promote => Step::Promote,
        Word::Pause => Step::Pause,
        Word::Resume => Step::Resume,
        Word::Emergency => Step::Emergency,
        Word::Renew => Step::Renew,
    };
    let root = what.source.root().await?;
    let (present, revision) = what.published(&root).await?;
    let after = what.after(&root, &present);
    let next = after.step(step)?;
    if step == Step::Promote && !now {
        let evidence = report::present(&what.source, &what.group).await?;
        after.may_promote(evidence.report(&root, &what.group, Limits::USUAL)?.missing())?;
    }
    what.put(&root, next, revision).await
}

pub(crate) async fn rollback(what: &What) -> anyhow::Result<ExitCode> {
    let root = what.source.root().await?;
    let (present, revision) = what.published(&root).await?;
    let base = base(what, present.manifest()).await?;
    what.put(&root, what.after(&root, &present).back(&base), revision).await
}

/// The manifest that another one names as the one before its rollout. Its hash says that it is this one.
async fn base(what: &What, manifest: &Manifest) -> anyhow::Result<Manifest> {
    let hash = manifest.base.ok_or(tollgate_fleet::rollout::StepError::First)?;
    let document = Signed::<Manifest>::parse(&what.source.store()?.piece(&hash, Manifest::LIMIT).await?)?;
    if document.hash() != hash {
        bail!("the manifest before is another one than the present one names: look who has written into the store");
    }
    Ok(document.unverified().clone())
}

impl What {
    /// The manifest in force, if it is of the present root file, and the revision that is replaced. One of an earlier root
    /// file may be a thief's: nothing is taken over from it.
    async fn present(&self, root: &Root) -> anyhow::Result<(Option<Checked>, Option<Revision>)> {
        Ok(match self.source.current(root, &self.group).await? {
            None => (None, None),
            Some((Version { revision, .. }, Err(TrustError::RootReplaced { .. }))) => (None, Some(revision)),
            Some((Version { revision, .. }, checked)) => {
                (Some(checked.context("the manifest in the store, which would be replaced")?), Some(revision))
            }
        })
    }

    async fn published(&self, root: &Root) -> anyhow::Result<(Checked, Option<Revision>)> {
        let (present, revision) = self.present(root).await?;
        let present = present.with_context(|| {
            format!("nothing is published for the group {} with the present keys: publish a policy", self.group)
        })?;
        Ok((present, revision))
    }

    fn after<'a>(&self, root: &Root, present: &'a Checked) -> After<'a> {
        let made = Time::now();
        let (manifest, hash) = (present.manifest(), present.hash());
        After { manifest, hash, root: root.version, made, expires: made.after(self.valid) }
    }

    fn first(&self, root: &Root, parts: Vec<tollgate_fleet::manifest::Entry>, stages: Vec<Stage>) -> Manifest {
        let made = Time::now();
        Manifest {
            fleet: root.fleet.clone(),
            group: self.group.clone(),
            root: root.version,
            number: 1,
            before: None,
            base: None,
            made,
            expires: made.after(self.valid),
            parts,
            stages,
            progress: Progress::Open(1),
        }
    }

    /// Signs a manifest and puts it in force: its own piece first, so that a later one can name it.
    async fn put(&self, root: &Root, manifest: Manifest, revision: Option<Revision>) -> anyhow::Result<ExitCode> {
        if let Some(fault) = manifest.fault() {
            bail!("this manifest would be refused: {fault}");
        }
        let said = format!(
            "{}: manifest {}, generation {}, rollout {}",
            self.group,
            manifest.number,
            manifest.generation(),
            manifest.progress
        );
        let document = self.signing.sign(manifest)?;
        if let Some(done) = self.signing.drafts(&document)? {
            return Ok(done);
        }
        root.publish.verified(&document).context("no node would believe this")?;
        let (store, bytes) = (self.source.store()?, document.bytes());
        store.put_piece(&document.hash(), &bytes).await?;
        store.swap(&Head::Current(self.group.clone()), &bytes, revision.as_ref()).await?;
        output::line(&said)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(content, LEVEL)
}
