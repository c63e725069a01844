//! The log of calls that no rule allows: JSON in a file, and lines for syslog and for people.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs, io, mem,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{ffi::OsStringExt, net::UnixDatagram},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use tollgate_abi::guard::TG_GUARD_CALLS;
use tollgate_audit::{booted, rotated::Rotated};
use tollgate_client::guard::GuardStatus;
use tollgate_guard::{Database, Event, Record, registered};
use tracing::{error, warn};

use super::{Canary, Events, FILE, FLEET, Guard, GuardError, Loaded};
use crate::programs::{Place, Way, refused};

/// The log, below the folder of logs.
pub const LOG: &str = "guard.json";
/// How many older files of the log are kept.
pub const KEPT: u32 = 4;
const MAX_FILE_LENGTH: u64 = 8 << 20;
/// When a program that a hook has told of is there.
const SOON: Duration = Duration::from_millis(50);
/// Where syslog and the journal listen.
const SYSLOG: &str = "/dev/log";
/// Facility authpriv, severity warning (syslog(3)).
const PRIORITY: u32 = 10 << 3 | 4;

/// Enters the program at a path into the database, because it has got privilege or has replaced another one. Returns what to
/// say of it.
pub type Register = fn(&Path) -> Option<String>;

/// The machine's own database.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// Reads it. An error says why it cannot be used.
    pub read: fn() -> Result<Database, String>,
    /// Enters programs into it.
    pub register: Register,
}

/// The log of a running guard, which is watched meanwhile.
#[derive(Debug)]
pub struct Log {
    guard: Guard,
    events: Events,
    canary: Option<Canary>,
    /// By which records have names; the one in force, unless its file cannot be read.
    database: Database,
    /// The file of the database in force; `None`: the machine's own.
    source: Option<PathBuf>,
    file: Rotated,
    lost: u64,
    own: Own,
    /// Programs to enter: the hooks tell them before the act is done.
    programs: BTreeSet<PathBuf>,
}

/// A database that may be put in force, and the one that is.
#[derive(Debug)]
pub struct Prepared {
    next: Loaded,
    before: Loaded,
    database: Database,
    source: Option<PathBuf>,
}

impl Log {
    /// Begins to log, below a folder. The database in force is of a file; `None`: the machine's own.
    pub fn open(
        guard: Guard,
        (database, source): (Database, Option<PathBuf>),
        folder: &Path,
        own: Own,
    ) -> Result<Self, GuardError> {
        let file = Rotated::open(folder.join(LOG), MAX_FILE_LENGTH, KEPT);
        let file = file.map_err(|cause| refused(format!("write the log below {}", folder.display()))(cause.into()))?;
        let (events, lost) = (guard.events()?, guard.counts().lost);
        guard.mark(&database)?;
        let (canary, programs) = (Canary::start()?, BTreeSet::new());
        Ok(Self { events, canary, database, source, file, lost, own, programs, guard })
    }

    /// Writes the database of a file into the kernel's memory; `None`: the machine's own. It is not in force yet.
    pub fn prepare(&self, source: Option<&Path>) -> Result<Prepared, GuardError> {
        let database = match source {
            Some(path) => read(path),
            None => (self.own.read)().map_err(|cause| GuardError::Database { path: FILE.into(), cause }),
        }?;
        let (next, before) = (self.guard.load(&database)?, self.guard.loaded()?);
        Ok(Prepared { next, before, database, source: source.map(Path::to_owned) })
    }

    /// Puts it in force together with a policy, or puts the one before back with the policy before.
    pub fn switch(
        &self,
        Prepared { next, before, .. }: &Prepared,
        way: Way,
        policy: Place<'_>,
    ) -> Result<(), GuardError> {
        let database = match way {
            Way::Forth => next,
            Way::Back => before,
        };
        self.guard.switch(database, Some(policy))
    }

    /// Takes note that a database is in force now.
    pub fn has_put(&mut self, prepared: Prepared) {
        (self.database, self.source) = (prepared.database, prepared.source);
        self.mark();
    }

    /// The file whose database is in force; `None`: that of the machine, or one that a command has put there.
    #[must_use]
    pub fn source(&self) -> Option<&Path> {
        self.source.as_deref().filter(|_| self.guard.database() == Some(self.database.digest()))
    }

    fn mark(&self) {
        if let Err(cause) = self.guard.mark(&self.database) {
            warn!(%cause, "programs that are replaced are unknown until they are entered: {cause}");
        }
    }

    /// What is in force, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let (word, programs) = (self.database.word(), self.database.programs().len());
        format!("{word} the guard is in force: {programs} programs, {} rules", self.database.rule_count())
    }

    /// What the guard does.
    #[must_use]
    pub fn status(&self) -> GuardStatus {
        self.guard.status(&self.database, self.canary.as_ref().map(Canary::found).as_ref())
    }

    /// Waits for calls for at most `timeout`, and logs them. Returns the lines.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Vec<String>> {
        let batch: Vec<_> =
            self.events.wait(if self.programs.is_empty() { timeout } else { SOON.min(timeout) })?.flatten().collect();
        self.look_at_database();
        let mut lines = self.enter_programs();
        for event in &batch {
            match registered(event) {
                Some(path) => drop(self.programs.insert(PathBuf::from(OsString::from_vec(path)))),
                None if event.call < TG_GUARD_CALLS => lines.push(self.log(event)),
                None => {}
            }
        }
        self.look_at_losses();
        Ok(lines)
    }

    fn enter_programs(&mut self) -> Vec<String> {
        let programs = mem::take(&mut self.programs);
        let register = |path: &PathBuf| match &self.source {
            None => (self.own.register)(path),
            Some(_) => Some(format!(
                "{} has got privilege or was replaced, and the fleet's database is in force: publish one that has it",
                path.display()
            )),
        };
        let lines: Vec<_> = programs.iter().filter_map(register).collect();
        let lines: Vec<_> = lines.into_iter().map(|line| format!("{} {line}", self.database.word())).collect();
        lines.iter().for_each(|line| syslog(line));
        lines
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
        let Some(read) = self.guard.read_database() else { return };
        (self.database, self.source) = (read, None);
        self.mark();
    }

    fn look_at_losses(&mut self) {
        let lost = self.guard.counts().lost;
        if lost > self.lost {
            warn!("{} of the guard's events were lost: too many came at once", lost - self.lost);
            self.lost = lost;
        }
    }
}

impl Guard {
    /// The database in force, if the machine's file has it, or that of its fleet. A machine's file that is missing has an
    /// empty one.
    pub fn read_database(&self) -> Option<Database> {
        let own = match fs::read(FILE) {
            Ok(bytes) => Database::from_bytes(&bytes).ok(),
            Err(cause) => (cause.kind() == io::ErrorKind::NotFound).then(Database::default),
        };
        let in_force = |database: &Database| Some(database.digest()) == self.database();
        own.filter(in_force).or_else(|| read(Path::new(FLEET)).ok().filter(in_force))
    }
}

/// The database of a file.
pub fn read(path: &Path) -> Result<Database, GuardError> {
    let failed = |cause: String| GuardError::Database { path: path.to_owned(), cause };
    let bytes = fs::read(path).map_err(|cause| failed(cause.to_string()))?;
    Database::from_bytes(&bytes).map_err(|cause| failed(cause.to_string()))
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
