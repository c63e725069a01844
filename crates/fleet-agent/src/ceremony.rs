//! `tollgate-fleet sign` and `submit`: what several people must sign, one after the other, each where the own key is.
//!
//! The command that makes a document writes it into a file (`--draft`), each signer adds a signature to the file, without
//! the store, and whoever may write into the store submits it. A draft is trusted no more than the store is: `submit` checks
//! all that nodes check, and that nothing else has been put in its place meanwhile.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_fleet::{
    Manifest, Register, Root, Signed,
    document::DocumentError,
    durable,
    store::{Head, Revision, Store, Version},
    trust::{self, TrustError},
};
use tollgate_signing::SecretKey;

use crate::{input::read, output, source::Source};

#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// The file that `--draft` has written
    file: PathBuf,
    /// A secret key that signs
    #[arg(long = "sign", value_name = "KEY", required = true)]
    keys: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// The file, signed by enough keys
    file: PathBuf,
    #[command(flatten)]
    source: Source,
}

/// A document that somebody has drafted.
enum Draft {
    Manifest(Signed<Manifest>),
    Root(Signed<Root>),
    Register(Signed<Register>),
}

/// Does the same with a document of any kind.
macro_rules! any {
    ($draft:expr, $document:ident => $call:expr) => {
        match $draft {
            Draft::Manifest($document) => $call,
            Draft::Root($document) => $call,
            Draft::Register($document) => $call,
        }
    };
}

impl Draft {
    fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let of = |other: DocumentError| matches!(other, DocumentError::Kind { .. } | DocumentError::Long { .. });
        match Signed::parse(bytes).map(Self::Manifest) {
            Err(other) if of(other.clone()) => {}
            parsed => return parsed,
        }
        match Signed::parse(bytes).map(Self::Root) {
            Err(other) if of(other.clone()) => Signed::parse(bytes).map(Self::Register),
            parsed => parsed,
        }
    }

    fn read(file: &Path) -> anyhow::Result<Self> {
        let parsed = Self::parse(&read(file)?);
        parsed.with_context(|| format!("{} is no draft, which `--draft` writes", file.display()))
    }
}

pub(crate) fn sign(Sign { file, keys }: &Sign) -> anyhow::Result<ExitCode> {
    let mut draft = Draft::read(file)?;
    let keys = keys.iter().map(|path| SecretKey::read(path)).collect::<Result<Vec<_>, _>>()?;
    any!(&mut draft, document => keys.iter().for_each(|key| document.sign(key)));
    // So that everybody sees what is signed, here and not in the store.
    output::line(any!(&draft, document => String::from_utf8_lossy(document.body())).trim_end())?;
    durable::write(file, 0o644, &any!(&draft, document => document.bytes()))
        .with_context(|| format!("cannot write {}; name a file in a folder that you may write", file.display()))?;
    let names = keys.iter().map(|key| key.public().name().to_owned()).collect::<Vec<_>>().join(", ");
    output::line(&format!("{}: signed by {names}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn submit(Submit { file, source }: &Submit) -> anyhow::Result<ExitCode> {
    let said = match Draft::read(file)? {
        Draft::Manifest(document) => submit_manifest(source, &document).await?,
        Draft::Root(document) => submit_root(source, &document).await?,
        Draft::Register(document) => submit_register(source, &document).await?,
    };
    output::line(&said)?;
    Ok(ExitCode::SUCCESS)
}

async fn submit_manifest(source: &Source, document: &Signed<Manifest>) -> anyhow::Result<String> {
    let (root, bytes, group) = (source.root().await?, document.bytes(), document.unverified().group.clone());
    let checked = trust::authentic(&bytes, &root, &group).context("no node would believe this")?;
    let manifest = checked.manifest();
    let (present, revision): (_, Option<Revision>) = match source.current(&root, &group).await? {
        None => (None, None),
        Some((Version { revision, .. }, Err(TrustError::RootReplaced { .. }))) => (None, Some(revision)),
        Some((Version { revision, .. }, present)) => {
            (Some(present.context("the manifest in the store, which would be replaced")?), Some(revision))
        }
    };
    let number = present.as_ref().map_or(0, |present| present.manifest().number);
    if manifest.before != present.map(|present| present.hash()) || manifest.number <= number {
        bail!("another manifest was published after this draft, which was made to follow another one: draft it again");
    }
    let store = source.store()?;
    store.put_piece(&document.hash(), &bytes).await?;
    store.swap(&Head::Current(group.clone()), &bytes, revision.as_ref()).await?;
    let (number, generation, progress) = (manifest.number, manifest.generation(), manifest.progress);
    Ok(format!("{group}: manifest {number}, generation {generation}, rollout {progress}"))
}

async fn submit_root(source: &Source, document: &Signed<Root>) -> anyhow::Result<String> {
    let (version, bytes) = (document.unverified().version, document.bytes());
    if version == 1 {
        Root::first(&bytes).context("more root keys must sign it")?;
        output::create(source.root_file(), &bytes)?;
    } else {
        source
            .root()
            .await?
            .next(&bytes)
            .context("enough root keys of the present and of the next version must sign")?;
    }
    source.store()?.put_root(version, &bytes).await?;
    Ok(format!("version {version} of the root file"))
}

async fn submit_register(source: &Source, document: &Signed<Register>) -> anyhow::Result<String> {
    let root = source.root().await?;
    let next = Register::check(&document.bytes(), &root).context("nobody would believe this")?;
    let (present, version) = source.register(&root).await?;
    if next.number != present.number + 1 {
        bail!("register {} is in force, and this draft is {}: draft it again", present.number, next.number);
    }
    let revision = version.map(|version| version.revision);
    source.store()?.swap(&Head::Register, &document.bytes(), revision.as_ref()).await?;
    Ok(format!("register {}: {} nodes", next.number, next.members.len()))
}
