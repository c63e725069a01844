//! The canary: a process that is allowed nothing, and keeps trying, one act after the other. If one of its acts succeeds,
//! hooks do not run.
//!
//! A thread of the daemon keeps it, because the daemon itself may be busy for a long time. Questions and answers go
//! through shared memory and a futex, so that no hook stands between them. A finding is reported at once, on standard
//! error. The daemon is woken to do the rest.

mod acts;
mod page;
mod watch;

use std::{
    fs, io,
    io::Write,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::{
    sys::{
        signal::{Signal, kill},
        wait::waitpid,
    },
    time::{ClockId, clock_gettime},
    unistd::Pid,
};
use tollgate_abi::{
    bytes_of,
    enforcer::{TG_SID_CANARY, tg_task},
};
use tracing::{error, info};

pub use self::watch::{Alarm, Change, Gap};
use self::{
    acts::ALWAYS,
    page::{Acts, Answer, Page},
    watch::Watch,
};
use crate::{
    programs::{self, Pins, ProgramsError},
    state::State,
};
use tollgate_client::{pidfd, status::Kind};

/// How often the canary tries: what it is granted is reported within a second. Each try wakes an idle processor.
const PERIOD: Duration = Duration::from_millis(800);
/// After how many tries it is looked at again which hooks have programs. If one has a program no more, its act is granted,
/// and that is looked at then.
const TURNS_PER_LOOK: u32 = 16;
/// How long its answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(600);
/// The switch on which all calls of BPF LSM programs depend.
const FTRACE: &str = "/proc/sys/kernel/ftrace_enabled";

/// The canary together with the thread that keeps it.
#[derive(Debug)]
pub struct Canary {
    shared: Arc<Mutex<Shared>>,
    wakes: UnixStream,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    watch: Watch,
    changes: Vec<Change>,
    ends: bool,
}

impl Canary {
    /// Starts the canary. Programs must be attached by then.
    pub fn start(pins: &Pins) -> Result<Self, ProgramsError> {
        let failed = |cause: io::Error| ProgramsError::Pins { path: pins.map("bss"), cause };
        let state = State::new(programs::map(pins, "bss")?.as_fd()).map_err(failed)?;
        let tasks = programs::map(pins, "tasks")?;
        let (wakes, wake) = UnixStream::pair().map_err(failed)?;
        for end in [&wakes, &wake] {
            end.set_nonblocking(true).map_err(failed)?;
        }
        let watch = Watch::new(state.canary(), now());
        let shared = Arc::new(Mutex::new(Shared { watch, ..Shared::default() }));
        let (pins, shared_too, slept) = (pins.clone(), Arc::clone(&shared), slept());
        let mut keeper =
            Keeper { pins, state, tasks, wake, shared: shared_too, bird: None, attached: ALWAYS, turn: 0, slept };
        let thread = thread::Builder::new().name("canary".into()).spawn(move || keeper.keep()).map_err(failed)?;
        Ok(Self { shared, wakes, thread: Some(thread) })
    }

    /// Becomes readable when there are changes.
    #[must_use]
    pub fn wakes(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    /// What has changed since the last call.
    pub fn changes(&self) -> Vec<Change> {
        // Reading does not block. A wake-up that comes meanwhile is seen below, or wakes the daemon again.
        while io::Read::read(&mut &self.wakes, &mut [0; 64]).is_ok_and(|count| count > 0) {}
        std::mem::take(&mut lock(&self.shared).changes)
    }

    /// A problem that lasts: why hooks do not run, or may not run.
    #[must_use]
    pub fn alarm(&self) -> Option<Alarm> {
        lock(&self.shared).watch.alarm().cloned()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        lock(&self.shared).ends = true;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread needs no report: enforcement or the daemon is ending.
            let _ = thread.join();
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds since boot.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// How many nanoseconds the machine has been suspended since it was started, to the millisecond.
fn slept() -> u64 {
    let awake = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    now().saturating_sub(u64::try_from(awake.as_nanos()).unwrap_or(u64::MAX)) / 1_000_000 * 1_000_000
}

/// The thread that keeps the canary.
struct Keeper {
    pins: Pins,
    state: State,
    tasks: MapHandle,
    wake: UnixStream,
    shared: Arc<Mutex<Shared>>,
    bird: Option<Bird>,
    /// The acts that hooks checked when that was last looked at, and how often the canary has tried.
    attached: Acts,
    turn: u32,
    /// How long the machine had been suspended since it was started.
    slept: u64,
}

/// The canary's process. It is killed when this is dropped.
struct Bird {
    process: Pid,
    page: Page,
    /// Acts that succeed when nothing is enforced.
    able: Acts,
}

impl Drop for Bird {
    fn drop(&mut self) {
        // The process is our child, so its number belongs to no other process until it has been waited for.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

impl Keeper {
    fn keep(&mut self) {
        while !lock(&self.shared).ends {
            let asked = now();
            let slept = slept();
            lock(&self.shared).watch.slept(slept.saturating_sub(std::mem::replace(&mut self.slept, slept)));
            let found = self.ask();
            self.note(asked, found);
            thread::park_timeout(PERIOD);
        }
        self.bird = None;
    }

    /// Lets the canary try one of its acts. `Ok`: whether it was granted. `Err`: why there is no answer.
    fn ask(&mut self) -> Result<bool, String> {
        if self.turn.is_multiple_of(TURNS_PER_LOOK) {
            self.attached = self.attached();
        }
        self.turn = self.turn.wrapping_add(1);
        if self.attempt(acts::one_of(self.attached, self.turn))?.granted == 0 {
            return Ok(false);
        }
        // A hook may have been detached meanwhile, because the policy no longer needs it.
        self.attached = self.attached();
        let granted = self.attempt(self.attached)?.granted;
        Ok(granted & self.attached() != 0)
    }

    /// Lets the canary try those of these acts that it is able to. At least one of them succeeds or is denied.
    fn attempt(&mut self, acts: Acts) -> Result<Answer, String> {
        if self.bird.is_none() {
            self.bird = Some(self.hatch()?);
        }
        let Some(bird) = &self.bird else { return Err("there is none".to_owned()) };
        let wanted = if acts & bird.able == 0 { ALWAYS } else { acts & bird.able };
        match bird.page.ask(wanted).and_then(|number| bird.page.answer(number, ANSWER_TIMEOUT)) {
            // Its fork failed, and its task storage was lost with that (tg_make_task): it counts as the machine's now.
            Some(Answer { granted, .. }) if granted != 0 && !self.is_confined(bird.process) => {
                self.bird = None;
                Err("it has lost its label; another one takes its place".to_owned())
            }
            Some(Answer { granted: 0, denied: 0 }) => Err("its acts neither succeed nor are denied".to_owned()),
            Some(answer) => Ok(answer),
            None => {
                self.bird = None;
                Err(format!(
                    "it has not answered for {ANSWER_TIMEOUT:?}: frozen, stopped, or killed; another one takes its place"
                ))
            }
        }
    }

    /// The acts that must be denied while hooks run.
    fn attached(&self) -> Acts {
        acts::of_hooks(|hook| programs::is_attached(&self.pins, hook)) | ALWAYS
    }

    fn hatch(&self) -> Result<Bird, String> {
        let failed = |cause: io::Error| format!("it could not be started: {cause}");
        let page = Page::new().map_err(failed)?;
        let process = acts::fork(&page).map_err(failed)?;
        let mut bird = Bird { process, page, able: 0 };
        let able = bird.page.answer(0, ANSWER_TIMEOUT).map(|answer| answer.granted);
        bird.able = able.filter(|able| able & ALWAYS != 0).ok_or("it did not start")?;
        self.confine(process).map_err(failed)?;
        Ok(bird)
    }

    fn confine(&self, process: Pid) -> io::Result<()> {
        let own = pidfd::open(process.as_raw())?;
        let task = tg_task { sid: TG_SID_CANARY, ..tg_task::default() };
        self.tasks.update(&own.as_raw_fd().to_ne_bytes(), bytes_of(&task), MapFlags::ANY).map_err(io::Error::other)?;
        // The state before is remembered in the kernel, for the next daemon.
        self.state.forget();
        Ok(())
    }

    fn is_confined(&self, process: Pid) -> bool {
        let own = pidfd::open(process.as_raw());
        let task = own.ok().and_then(|own| self.tasks.lookup(&own.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok());
        task.flatten().is_some_and(|task| task.starts_with(&TG_SID_CANARY.to_ne_bytes()))
    }

    /// Reports what has changed.
    fn note(&mut self, asked: u64, found: Result<bool, String>) {
        let answered = now();
        let change = {
            let mut shared = lock(&self.shared);
            let change = match found {
                Ok(false) => {
                    self.state.set_canary_denied(asked);
                    shared.watch.denied(asked, answered)
                }
                Ok(true) => {
                    self.state.set_canary_granted(answered);
                    shared.watch.raise(Kind::Off, answered, || why(&self.pins))
                }
                Err(silence) => shared.watch.raise(Kind::Silent, answered, || silence),
            };
            shared.changes.extend(change.clone());
            change
        };
        let Some(change) = change else { return };
        // If only no daemon was there to watch, it is reported later, and only if somebody is found.
        if !matches!(change, Change::Over(Gap { kind: Kind::Unwatched, .. })) {
            match change {
                Change::Raised(_) => error!("{change}"),
                Change::Over(_) => info!("{change}"),
            }
        }
        // If the pipe has no room, the daemon has been woken already.
        let _ = self.wake.write(&[1]);
    }
}

/// Why hooks do not run, and the remedy.
fn why(pins: &Pins) -> String {
    if fs::read_to_string(FTRACE).is_ok_and(|text| text.trim() == "0") {
        return "kernel.ftrace_enabled is 0, so the kernel calls no program: `sysctl kernel.ftrace_enabled=1`"
            .to_owned();
    }
    let again = "`tollgate stop --force`, then start enforcement again";
    match programs::attached(pins) {
        Ok(attached) if attached.iter().any(|hook| hook == acts::FORK) => {
            format!("links are pinned below {}, but their programs were detached: {again}", pins.root().display())
        }
        Ok(_) => format!("links are gone from {}: {again}", pins.root().display()),
        Err(cause) => format!("the links are gone ({cause}): {again}"),
    }
}
