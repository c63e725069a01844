//! The guard's canary: a thread that tries a call which is always denied, and looks for the links. If the call succeeds, or a
//! link is gone, somebody has detached programs.

use std::{
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    sys::memfd::{MFdFlags, memfd_create},
    unistd::gettid,
};
use tracing::{error, info, warn};

use super::{FILE, Guard, GuardError};

/// How often it tries.
const PERIOD: Duration = Duration::from_millis(250);

/// The name of its thread.
pub(super) const NAME: &str = "guard-canary";

/// What it has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// All programs run.
    Runs,
    /// No program runs.
    Off,
    /// These do not.
    Gone(Vec<String>),
    /// Somebody has ended the guard.
    Ended,
}

impl Finding {
    /// The problem, if there is one.
    #[must_use]
    pub fn alarm(&self) -> Option<String> {
        match self {
            Self::Runs => None,
            Self::Off => Some(
                "the guard is off: the kernel runs none of its programs. If kernel.ftrace_enabled is 0, set it to 1; else \
                 `tollgate guard stop`, then start it again"
                    .to_owned(),
            ),
            Self::Gone(names) => {
                Some(format!("the guard is off at {} hooks, whose links are gone: {}", names.len(), names.join(" ")))
            }
            Self::Ended => {
                Some("the guard has been ended: nothing that privileged programs call is checked any more".to_owned())
            }
        }
    }
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Canary {
    ends: Arc<AtomicBool>,
    found: Arc<Mutex<Finding>>,
    thread: Option<JoinHandle<()>>,
}

impl Canary {
    /// Starts it. What it finds is logged at once.
    pub fn start() -> Result<Option<Self>, GuardError> {
        let Some(guard) = Guard::adopt()? else { return Ok(None) };
        let (ends, found) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Finding::Runs)));
        let (ended, finding) = (Arc::clone(&ends), Arc::clone(&found));
        let thread = thread::Builder::new().name(NAME.into()).spawn(move || watch(&guard, &ended, &finding));
        let thread = thread.inspect_err(|cause| error!(%cause, "the guard is not watched: {cause}")).ok();
        Ok(Some(Self { ends, found, thread }))
    }

    /// What it has found last.
    #[must_use]
    pub fn found(&self) -> Finding {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread needs no report: the daemon is ending.
            let _ = thread.join();
        }
    }
}

fn watch(guard: &Guard, ends: &AtomicBool, finding: &Mutex<Finding>) {
    guard.set_canary(gettid().as_raw().cast_unsigned());
    let expected = Guard::expected().unwrap_or_else(|cause| {
        error!(%cause, "which of the guard's programs were detached before now is not known: {cause}");
        guard.attached()
    });
    let search = Search::default();
    thread::scope(|scope| {
        let mut last = Finding::Runs;
        while !ends.load(Ordering::SeqCst) {
            let found = look(guard, &expected);
            if found == last {
                thread::park_timeout(PERIOD);
                continue;
            }
            finding.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
            match found.alarm() {
                Some(alarm) => mend(guard, &found, &alarm),
                None => {
                    info!("the guard's programs run again");
                    // This reads the programs of all processes, which takes seconds.
                    if search.begins()
                        && let Err(cause) = thread::Builder::new().spawn_scoped(scope, || search.run(guard, ends))
                    {
                        search.0.store(IDLE, Ordering::SeqCst);
                        error!(%cause, "who was not guarded while programs did not run is not known: {cause}");
                    }
                }
            }
            last = found;
        }
        guard.set_canary(0);
    });
}

/// Reports a problem, and mends it.
fn mend(guard: &Guard, found: &Finding, alarm: &str) {
    match found {
        Finding::Gone(names) => {
            error!("{alarm}; their programs are attached again");
            if let Err(cause) = guard.attach_again(names) {
                error!(%cause, "the guard stays off there: {cause}; `tollgate guard stop`, then start it again");
            }
        }
        Finding::Ended => warn!("{alarm}"),
        _ => error!("{alarm}"),
    }
}

/// The search for who slipped out: one at a time, because searches have a map in common, and one more after it, however often
/// programs are detached and attached meanwhile.
#[derive(Default)]
struct Search(AtomicU8);

/// States of [`Search`].
const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const AGAIN: u8 = 2;

impl Search {
    /// Asks for a search. Whether a thread is to be started for it.
    fn begins(&self) -> bool {
        self.0.swap(AGAIN, Ordering::SeqCst) == IDLE
    }

    fn run(&self, guard: &Guard, ends: &AtomicBool) {
        while !ends.load(Ordering::SeqCst) {
            self.0.store(RUNNING, Ordering::SeqCst);
            find_slipped(guard);
            if self.0.compare_exchange(RUNNING, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                break;
            }
        }
    }
}

/// Finds processes that should be guarded and are not, because no program saw what they executed.
fn find_slipped(guard: &Guard) {
    let Some(database) = guard.read_database() else {
        return error!(
            "who was not guarded while programs did not run is not known, because {FILE} is not the database in force: load \
             it with `tollgate guard load`, and start the guard again"
        );
    };
    let before = guard.processes();
    match guard.adopt_running(&database) {
        Ok(()) => {
            let slipped = guard.processes().saturating_sub(before);
            info!("{slipped} processes that had not been guarded while programs did not run are guarded now");
        }
        Err(cause) => error!(%cause, "who was not guarded while programs did not run is not known: {cause}"),
    }
}

fn look(guard: &Guard, expected: &[String]) -> Finding {
    match (guard.look_for_links(expected), try_chmod()) {
        (Finding::Runs, Ok(())) => Finding::Off,
        (found, _) => found,
    }
}

impl Guard {
    /// Whether all of these programs are attached.
    pub(super) fn look_for_links(&self, expected: &[String]) -> Finding {
        let attached = self.attached();
        let gone: Vec<String> = expected.iter().filter(|name| !attached.contains(name)).cloned().collect();
        match gone.is_empty() {
            true => Finding::Runs,
            // Who ends the guard removes this first.
            false if !self.pins.build().exists() => Finding::Ended,
            false => Finding::Gone(gone),
        }
    }
}

/// Sets the set-user-id bit of a file in memory that nobody else has.
fn try_chmod() -> io::Result<()> {
    let file = std::fs::File::from(memfd_create(c"canary", MFdFlags::MFD_CLOEXEC)?);
    file.set_permissions(Permissions::from_mode(0o4700))
}
