//! The guard's daemon: that of `tollgate enforce`, or one that has no policy and serves nobody.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use tollgate_audit::sink;
use tollgate_enforcer::{
    daemon::{Daemon, notify},
    enforcer::Folder,
    guard::{self, FILE, Guard, GuardError, Log, Own},
    requirements::{self, Places},
};
use tollgate_guard::Database;
use tracing::{error, info, warn};

use super::{
    edit,
    file::{self, Options},
};
use crate::{interrupt, output};

/// How often to look for signals and another database.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder of the log
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER)]
    log: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    requirements::root()?;
    requirements::kernel(&Places::default())?;
    alone(&arguments.log, false)
}

/// Is the daemon of a machine without a policy, until a signal comes.
pub(crate) fn alone(folder: &Path, background: bool) -> anyhow::Result<ExitCode> {
    let stopped = interrupt::flag()?;
    let _lock = Daemon::lock(Folder::default().path())?;
    let mut log = begin(folder, None, false)?.log;
    output::line(&log.summary())?;
    if let Err(cause) = notify::ready(None) {
        warn!(%cause, "cannot report that the daemon is ready: {cause}");
    }
    if background {
        Daemon::leave_terminal(&folder.join("daemon.log"))?;
    }
    follow(&mut log, stopped)?;
    Ok(ExitCode::SUCCESS)
}

fn follow(log: &mut Log, stopped: &AtomicBool) -> anyhow::Result<()> {
    while !stopped.load(Ordering::Relaxed) {
        let lines = log.wait(POLL_INTERVAL).context("cannot wait for the guard's events")?;
        lines.iter().try_for_each(|line| output::line(line))?;
    }
    Ok(())
}

/// The guard, running.
pub(crate) struct Begun {
    pub(crate) log: Log,
    /// Whether its database waits for the policy that belongs to it: another one is in force.
    pub(crate) waits: bool,
}

/// Starts the guard with the database of the fleet's generation, or of the machine if there is none, or takes it over, and
/// begins its log. A database that cannot be used ends a start; if one is in force, that one stays. It also stays, for now,
/// if a policy `follows`, with which the other one is put in force.
pub(crate) fn begin(folder: &Path, of_fleet: Option<PathBuf>, follows: bool) -> anyhow::Result<Begun> {
    let accepted = of_fleet.as_deref().map_or_else(own, |path| Ok(guard::read(path)?));
    let adopted = match Guard::adopt() {
        // The new programs take over whoever is guarded; between them there is a gap of a moment.
        Err(GuardError::AnotherVersion) if accepted.is_ok() => {
            info!("the guard was started by another version: its programs are replaced");
            Guard::stop().map(|_| None)
        }
        other => other,
    };
    let mut waits = false;
    let (guard, database) = match (adopted?, accepted) {
        (Some(guard), Ok(database)) => {
            waits = follows;
            if !waits {
                guard.put_in_force(&database)?;
            }
            (guard, database)
        }
        (Some(guard), Err(cause)) => {
            error!("the guard's database in force stays, for another one cannot be used: {cause:#}");
            (guard, Database::default())
        }
        (None, accepted) => {
            let database = accepted?;
            (Guard::start(&database)?, database)
        }
    };
    let own = Own { read: || own().map_err(|cause| format!("{cause:#}")), register };
    Ok(Begun { log: Log::open(guard, (database, of_fleet), folder, own)?, waits })
}

/// The machine's own database: signed, if this machine demands it.
fn own() -> anyhow::Result<Database> {
    if Path::new(FILE).exists() { file::accepted(Path::new(FILE)) } else { Ok(Database::default()) }
}

/// Enters a program that has got privilege or has replaced another one.
fn register(path: &Path) -> Option<String> {
    // A temporary name, such as dpkg's, is gone by now.
    if !path.exists() {
        return None;
    }
    let (shown, own) = (path.display(), Options { database: FILE.into() });
    match edit::register(path, &own) {
        Ok(true) => Some(format!("registered the program {shown}, which has got privilege or was replaced")),
        Ok(false) => None,
        Err(cause) => {
            Some(format!("cannot register the program {shown}, which has got privilege or was replaced: {cause:#}"))
        }
    }
}
