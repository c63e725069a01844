//! `tollgate guard run`: the guard's process, which reads its events.

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use tollgate_audit::{booted, rotated::Rotated, sink};
use tollgate_enforcer::{
    guard::Guard,
    requirements::{self, Places},
};
use tollgate_guard::{Database, Event, Record};
use tracing::{error, warn};

use super::{
    file::{self, FILE, Options},
    learn::{KEPT, LOG},
};
use crate::{interrupt, output};

/// How often to look for signals and another database.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MAX_FILE_LENGTH: u64 = 8 << 20;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder of the log
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER)]
    log: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    requirements::root()?;
    requirements::kernel(&Places::default())?;
    let stopped = interrupt::flag()?;
    let (guard, database) = begin()?;
    let log = Rotated::open(arguments.log.join(LOG), MAX_FILE_LENGTH, KEPT);
    let log = log.with_context(|| format!("cannot write the log below {}", arguments.log.display()))?;
    let mut logger = Logger { guard, database, log, lost: 0 };
    logger.lost = logger.guard.counts().lost;
    output::line(&format!(
        "{} the guard is in force: {} programs, {} rules",
        logger.database.word(),
        logger.database.programs().len(),
        logger.database.rule_count()
    ))?;
    logger.follow(stopped)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the guard with the machine's database, or takes it over. A database that cannot be used ends a start; if one is in
/// force, that one stays.
fn begin() -> anyhow::Result<(Guard, Database)> {
    let own = Options { database: FILE.into() };
    let accepted = if own.database.exists() { file::accepted(&own.database) } else { Ok(Database::default()) };
    match (Guard::adopt()?, accepted) {
        (Some(guard), Ok(database)) => {
            guard.put_in_force(&database)?;
            Ok((guard, database))
        }
        (Some(guard), Err(cause)) => {
            error!("the guard's database in force stays, for {FILE} cannot be used: {cause:#}");
            Ok((guard, Database::default()))
        }
        (None, accepted) => {
            let database = accepted?;
            Ok((Guard::start(&database)?, database))
        }
    }
}

/// Logs events.
struct Logger {
    guard: Guard,
    /// By which records have names; the one in force, unless its file cannot be read.
    database: Database,
    log: Rotated,
    lost: u64,
}

impl Logger {
    fn follow(&mut self, stopped: &AtomicBool) -> anyhow::Result<()> {
        let events = self.guard.events()?;
        while !stopped.load(Ordering::Relaxed) {
            let batch = events.wait(POLL_INTERVAL).context("cannot wait for the guard's events")?;
            self.look_at_database();
            for event in &batch {
                self.log(event)?;
            }
            self.look_at_losses();
        }
        Ok(())
    }

    fn log(&mut self, event: &Event) -> anyhow::Result<()> {
        let record = Record::of(event, &self.database, booted() / 1_000_000);
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        if let Err(cause) = self.log.append(&line) {
            warn!(%cause, "cannot write the guard's log: {cause}");
        }
        output::line(&record.line(&self.database))
    }

    /// A command may have put another one in force.
    fn look_at_database(&mut self) {
        if self.guard.database() == Some(self.database.digest()) {
            return;
        }
        if let Ok(database) = (Options { database: FILE.into() }).read() {
            self.database = database;
        }
    }

    fn look_at_losses(&mut self) {
        let lost = self.guard.counts().lost;
        if lost > self.lost {
            warn!("{} of the guard's events were lost: too many came at once", lost - self.lost);
            self.lost = lost;
        }
    }
}
