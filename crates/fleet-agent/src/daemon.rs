//! The daemon, as the one that enforces on a node. It checks again whatever it is offered.

use std::{
    fs::File,
    io::{self, Seek, Write},
    os::fd::AsFd,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use anyhow::Context;
use tollgate_client::{
    Client, ClientError,
    fleet::{Looked, Report},
};
use tollgate_fleet::{Kept, Manifest, rollout::Duty, shelf::Shelf, store::Store};

use crate::enforcer::{Enforced, Enforcer};

/// The parts that the daemon takes beside the policy.
const PARTS: [&str; 3] = ["guard", "network", "sanity"];
/// How much of a cause the daemon is told, in characters: a request has room for it.
const MAX_CAUSE: usize = 1000;

/// How often to look whether the daemon has gone back from what it took. It hashes its tables for that.
const INTERVAL: Duration = Duration::from_secs(10);

/// The daemon of this machine, if one runs that belongs to the fleet.
pub(crate) struct Daemon {
    /// Where the node keeps what it has accepted.
    pub(crate) folder: PathBuf,
}

impl Enforcer for Daemon {
    async fn offer(&self, kept: &Kept, duty: Option<Duty>, store: &impl Store) -> anyhow::Result<()> {
        let (Some((mut daemon, report)), Some(newest)) = (connect()?, kept.newest()) else { return Ok(()) };
        for version in report.root.saturating_add(1)..=kept.root().version {
            let bytes = store.root(version).await?.with_context(|| format!("the store lacks root file {version}"))?;
            daemon.offer_root(in_memory(&bytes)?.as_fd())?;
        }
        if report.manifest == Some(newest.hash().to_string()) && is_done(&report, newest.manifest(), duty) {
            return Ok(());
        }
        let files = match duty {
            Some(Duty::Take(_)) => self.files(newest.manifest())?,
            _ => Vec::new(),
        };
        let parts: Vec<_> = files.iter().map(|(name, file)| (*name, file.as_fd())).collect();
        daemon.offer(in_memory(&kept.newest_bytes()?)?.as_fd(), &parts)?;
        Ok(())
    }

    fn looked(&self, next: Option<Duration>, cause: Option<String>) -> anyhow::Result<()> {
        let Some((mut daemon, _)) = connect()? else { return Ok(()) };
        let cause = cause.map(|cause| cause.chars().take(MAX_CAUSE).collect());
        Ok(daemon.looked(Looked { next: next.map(|next| next.as_secs() + 1), cause })?)
    }

    fn has_changed(&self, since: &Enforced) -> bool {
        // One that does not answer now is heard of at the next look.
        enforced()
            .is_ok_and(|now| (now.generation, now.tables, now.mode) != (since.generation, since.tables, since.mode))
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn enforced(&self, _: &Kept, _: Option<Duty>) -> anyhow::Result<Enforced> {
        enforced()
    }
}

impl Daemon {
    /// What lies on the node's shelf of a generation.
    fn files(&self, manifest: &Manifest) -> anyhow::Result<Vec<(&'static str, File)>> {
        let folder = Shelf::of(&self.folder).folder(manifest.generation());
        let is_named = |name: &&str| name.parse().is_ok_and(|part| manifest.part(part).is_some());
        let names = std::iter::once("policy").chain(PARTS.into_iter().filter(is_named));
        names
            .map(|name| {
                let path = folder.join(name);
                let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
                Ok((name, file))
            })
            .collect()
    }
}

/// What the daemon enforces.
fn enforced() -> anyhow::Result<Enforced> {
    let Some((_, report)) = connect()? else { return Ok(Enforced::default()) };
    let generation = known(report.generation.as_deref());
    Ok(Enforced {
        generation,
        tables: generation.and(known(report.tables.as_deref())),
        mode: known(report.mode.as_deref()),
        hooks: report.hooks,
        unenforced: report.unenforced,
        failures: report.failures,
        denials: report.denials,
    })
}

fn is_done(report: &Report, manifest: &Manifest, duty: Option<Duty>) -> bool {
    match duty {
        Some(Duty::Take(mode)) => {
            report.generation == Some(manifest.generation().to_string()) && report.mode == Some(mode.to_string())
        }
        _ => true,
    }
}

/// The daemon, with what it reports; `None`: none runs, or it belongs to no fleet.
fn connect() -> anyhow::Result<Option<(Client, Report)>> {
    let mut client = match Client::connect() {
        Err(ClientError::NoDaemon { .. }) => return Ok(None),
        other => other?,
    };
    match client.fleet() {
        Ok(report) => Ok(Some((client, report))),
        Err(ClientError::Refused(refusal)) if refusal.errno == libc::ENOENT => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// A file that holds these bytes, and has no name.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// What the daemon says, if it has a meaning.
fn known<T: FromStr>(text: Option<&str>) -> Option<T> {
    text.and_then(|text| text.parse().ok())
}
