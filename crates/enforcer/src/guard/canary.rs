//! The guard's canary: a thread that tries a call which is always denied, and looks for the links. If the call succeeds, or a
//! link is gone, somebody has detached programs.

use std::{
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    sys::memfd::{MFdFlags, memfd_create},
    unistd::gettid,
};
use tracing::{error, info};

use super::{Guard, GuardError};

/// How often it tries.
const PERIOD: Duration = Duration::from_millis(250);

/// What it has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// All programs run.
    Runs,
    /// No program runs.
    Off,
    /// These do not.
    Gone(Vec<String>),
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Canary {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Canary {
    /// Starts it. What it finds is logged at once.
    pub fn start() -> Result<Option<Self>, GuardError> {
        let Some(guard) = Guard::adopt()? else { return Ok(None) };
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let thread = thread::Builder::new().name("guard-canary".into()).spawn(move || watch(&guard, &ended));
        let thread = thread.inspect_err(|cause| error!(%cause, "the guard is not watched: {cause}")).ok();
        Ok(Some(Self { ends, thread }))
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

fn watch(guard: &Guard, ends: &AtomicBool) {
    guard.set_canary(gettid().as_raw().cast_unsigned());
    let (expected, mut last) = (guard.attached(), Finding::Runs);
    while !ends.load(Ordering::SeqCst) {
        let found = look(guard, &expected);
        if found != last {
            match &found {
                Finding::Runs => info!("the guard's programs run again"),
                Finding::Off => error!(
                    "the guard is off: the kernel runs none of its programs. If kernel.ftrace_enabled is 0, set it to 1; \
                     else `tollgate guard stop`, then start it again"
                ),
                Finding::Gone(names) => error!(
                    "the guard is off at {} hooks, whose links are gone: {}; `tollgate guard stop`, then start it again",
                    names.len(),
                    names.join(" ")
                ),
            }
            last = found;
        }
        thread::park_timeout(PERIOD);
    }
    guard.set_canary(0);
}

fn look(guard: &Guard, expected: &[String]) -> Finding {
    let attached = guard.attached();
    let gone: Vec<String> = expected.iter().filter(|name| !attached.contains(name)).cloned().collect();
    match try_chmod() {
        // Who ends the guard removes all links first.
        _ if attached.is_empty() => Finding::Gone(gone),
        Ok(()) => Finding::Off,
        Err(_) if gone.is_empty() => Finding::Runs,
        Err(_) => Finding::Gone(gone),
    }
}

/// Sets the set-user-id bit of a file in memory that nobody else has.
fn try_chmod() -> io::Result<()> {
    let file = std::fs::File::from(memfd_create(c"canary", MFdFlags::MFD_CLOEXEC)?);
    file.set_permissions(Permissions::from_mode(0o4700))
}
