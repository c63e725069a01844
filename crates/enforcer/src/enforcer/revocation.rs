//! Revocation: permissions that a policy takes away are taken from processes that used them before. From the moment the
//! policy is in force, and as long as a process holds a file that the policy denies, each read and write is checked.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    time::{Duration, Instant},
};

use tollgate_abi::enforcer::tg_held;
use tollgate_client::{pidfd, status::Revoked};
use tracing::warn;

use super::{Enforcer, EnforcerError, task_of};
use crate::{
    needs::USE,
    programs::{self, Loading},
    revocation::Held,
    survival,
};

/// Domains with this attribute are killed when memory that they have mapped is taken away.
const KILLED: &str = "killed_when_revoked";
/// The minimum time between two scans of all processes, and the same as a multiple of a scan's duration.
const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(10);
const SCAN_INTERVAL_FACTOR: u32 = 50;

/// What processes hold, and when to scan again.
#[derive(Debug, Default)]
pub(super) struct Pending {
    held: Held,
    again: Option<Instant>,
    killed: u64,
}

impl Enforcer {
    /// Checks open files at each use from now on. This comes before the policy that permitted them ends.
    pub(super) fn revalidate(&mut self) -> Result<(), EnforcerError> {
        let own = &self.options.hooks;
        let pins = &self.options.pins;
        if !own.is_empty() && !own.iter().any(|hook| hook == USE)
            || programs::attached(pins)?.iter().any(|hook| hook == USE)
        {
            return Ok(());
        }
        if self.revalidation.is_empty() {
            self.revalidation = survival::load(pins, &[USE.to_owned()], &Loading::default())?;
        }
        Ok(self.revalidation.iter().try_for_each(|object| programs::attach(pins, object))?)
    }

    /// Scans for what is held against the policy in force. Returns the hook that is needed for it.
    pub(super) fn look_at_held(&mut self) -> Result<Option<String>, EnforcerError> {
        let began = Instant::now();
        let held = Held::look(&self.options.pins)?;
        self.pending.killed += self.kill(&held);
        let pause = MIN_SCAN_INTERVAL.max(began.elapsed() * SCAN_INTERVAL_FACTOR);
        let is_held = !held.is_empty();
        self.pending.again = is_held.then(|| Instant::now() + pause);
        self.pending.held = held;
        Ok(is_held.then(|| USE.to_owned()))
    }

    /// Scans again if it is due. When nothing is held any more, reads and writes are no longer checked.
    pub fn look_again(&mut self) -> Result<(), EnforcerError> {
        if self.pending.again.is_none_or(|again| Instant::now() < again) { Ok(()) } else { self.settle_held() }
    }

    /// Keeps checking open files only if something is held.
    pub(super) fn settle_held(&mut self) -> Result<(), EnforcerError> {
        let mut needed = self.needed()?;
        needed.extend(self.look_at_held()?);
        self.detach_all_but(&needed)
    }

    /// How much is held that the policy in force denies.
    #[must_use]
    pub fn revoked(&self) -> Revoked {
        self.pending.held.count()
    }

    /// Number of processes that were killed because memory was taken away.
    #[must_use]
    pub fn killed(&self) -> u64 {
        self.pending.killed
    }

    /// Kills processes whose domain the policy wants killed. Returns how many.
    fn kill(&self, held: &Held) -> u64 {
        let is_killed = |held: &&tg_held| {
            self.generation.get(held.source).is_some_and(|context| self.generation.has_attribute(context.type_, KILLED))
        };
        let mut killed: Vec<u32> = Vec::new();
        for held in held.memory().filter(is_killed) {
            if killed.contains(&held.process) {
                continue;
            }
            match self.kill_process(held) {
                Ok(()) => killed.push(held.process),
                Err(cause) if cause.raw_os_error() == Some(libc::ESRCH) => {}
                Err(cause) => {
                    let process = held.process;
                    warn!(process, %cause, "process {process} keeps memory that was taken away: {cause}");
                }
            }
        }
        killed.len() as u64
    }

    /// Kills a process, unless another one has its number by now.
    fn kill_process(&self, held: &tg_held) -> io::Result<()> {
        let process = pidfd::open(held.process.cast_signed())?;
        let task = task_of(&self.options.pins, &self.maps.tasks, process.as_fd()).map_err(io::Error::other)?;
        if task.is_none_or(|task| task.sid != held.source) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // SAFETY: the descriptor is open, and no other argument is a pointer that is followed.
        match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), libc::SIGKILL, 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
