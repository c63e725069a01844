//! The log of calls that no rule allows: JSON in a file, and lines for syslog and for people.

use std::{
    env, fs, io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixDatagram,
    },
    path::Path,
    time::Duration,
};

use tollgate_audit::{booted, rotated::Rotated};
use tollgate_guard::{Database, Event, Record};
use tracing::{error, warn};

use super::{Canary, Events, Guard, GuardError};
use crate::programs::refused;

/// The machine's own database.
pub const FILE: &str = "/etc/tollgate/guard";
/// The log, below the folder of logs.
pub const LOG: &str = "guard.json";
/// How many older files of the log are kept.
pub const KEPT: u32 = 4;
const MAX_FILE_LENGTH: u64 = 8 << 20;
/// Where syslog and the journal listen.
const SYSLOG: &str = "/dev/log";
/// Facility authpriv, severity warning (syslog(3)).
const PRIORITY: u32 = 10 << 3 | 4;

/// The log of a running guard, which is watched meanwhile.
#[derive(Debug)]
pub struct Log {
    guard: Guard,
    events: Events,
    _canary: Option<Canary>,
    /// By which records have names; the one in force, unless its file cannot be read.
    database: Database,
    file: Rotated,
    lost: u64,
}

impl Log {
    /// Begins to log, below a folder.
    pub fn open(guard: Guard, database: Database, folder: &Path) -> Result<Self, GuardError> {
        let file = Rotated::open(folder.join(LOG), MAX_FILE_LENGTH, KEPT);
        let file = file.map_err(|cause| refused(format!("write the log below {}", folder.display()))(cause.into()))?;
        let (events, lost) = (guard.events()?, guard.counts().lost);
        Ok(Self { events, _canary: Canary::start()?, database, file, lost, guard })
    }

    /// What is in force, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let (word, programs) = (self.database.word(), self.database.programs().len());
        format!("{word} the guard is in force: {programs} programs, {} rules", self.database.rule_count())
    }

    /// Waits for calls for at most `timeout`, and logs them. Returns the lines.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Vec<String>> {
        let batch: Vec<_> = self.events.wait(timeout)?.flatten().collect();
        self.look_at_database();
        let lines = batch.iter().map(|event| self.log(event)).collect();
        self.look_at_losses();
        Ok(lines)
    }

    fn log(&mut self, event: &Event) -> String {
        let record = Record::of(event, &self.database, booted() / 1_000_000);
        let mut json = serde_json::to_vec(&record).unwrap_or_default();
        json.push(b'\n');
        if let Err(cause) = self.file.append(&json) {
            error!(%cause, "cannot write the guard's log: {cause}");
        }
        let line = record.line(&self.database);
        syslog(&line);
        line
    }

    /// A command may have put another one in force.
    fn look_at_database(&mut self) {
        if self.guard.database() == Some(self.database.digest()) {
            return;
        }
        let read = fs::read(FILE).ok().and_then(|bytes| Database::from_bytes(&bytes).ok());
        self.database = read.unwrap_or_else(|| self.database.clone());
    }

    fn look_at_losses(&mut self) {
        let lost = self.guard.counts().lost;
        if lost > self.lost {
            warn!("{} of the guard's events were lost: too many came at once", lost - self.lost);
            self.lost = lost;
        }
    }
}

impl AsFd for Log {
    /// Becomes readable when there are calls.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// Sends a line to syslog, unless the journal has all output of this process anyway. Where nobody listens, the log is enough.
fn syslog(line: &str) {
    if env::var_os("JOURNAL_STREAM").is_some() {
        return;
    }
    let send = |socket: UnixDatagram| socket.send_to(format!("<{PRIORITY}>{line}").as_bytes(), SYSLOG);
    let _ = UnixDatagram::unbound().and_then(send);
}
