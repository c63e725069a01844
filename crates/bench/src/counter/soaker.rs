//! A process that uses all time in which no other task runs.

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    time::{ClockId, clock_getcpuclockid, clock_gettime},
    unistd::{ForkResult, Pid, fork, getpid, getppid},
};

use super::pass_time;
use crate::{Error, error::Context};

/// A forked process under `SCHED_IDLE` that spins until this is dropped or the calling thread dies. The only processor then
/// never idles, and idle time becomes the soaker's run time. It is exact to the nanosecond whenever another task reads it,
/// because the scheduler accounts for a task when it takes the processor from it.
#[derive(Debug)]
pub(crate) struct Soaker {
    pid: Pid,
    clock: ClockId,
}

impl Soaker {
    /// Starts it. Memory shared with it is copied when it is written to, so warm up again.
    pub(crate) fn start() -> Result<Soaker, Error> {
        let parent = getpid();
        // SAFETY: the child makes system calls and spins; it never returns from here and never unwinds.
        let pid = match unsafe { fork() }.context("fork a process that soaks up idle time")? {
            ForkResult::Child => soak(parent.as_raw()),
            ForkResult::Parent { child } => child,
        };
        // From here on the drop ends the process, even after an error.
        let mut soaker = Soaker { pid, clock: ClockId::CLOCK_PROCESS_CPUTIME_ID };
        give_way(pid).context("give the process that soaks up idle time the policy SCHED_IDLE")?;
        soaker.clock = clock_getcpuclockid(pid).context("find the CPU clock of the process that soaks up idle time")?;
        Ok(soaker)
    }

    /// Nanoseconds of its run time since the start.
    pub(crate) fn soaked(&self) -> Result<u64, Error> {
        let ran = clock_gettime(self.clock).context("read the CPU clock of the process that soaks up idle time")?;
        Ok(std::time::Duration::from(ran).as_nanos() as u64)
    }

    /// Fails if it has ended, because the processor may then have idled.
    pub(crate) fn confirm(&self) -> Result<(), Error> {
        match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => Ok(()),
            ended => Err(Error::Unavailable(format!(
                "the process that soaks up idle time ended early ({ended:?}): is the machine short of memory?"
            ))),
        }
    }
}

impl Drop for Soaker {
    fn drop(&mut self) {
        // Both can only fail if it ended by itself and `confirm` has reaped it.
        let _ = kill(self.pid, Signal::SIGKILL);
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}

/// Any other task preempts one under SCHED_IDLE as soon as it wakes (`check_preempt_wakeup`, `wakeup_preempt_fair` in
/// kernel/sched/fair.c).
fn give_way(pid: Pid) -> nix::Result<()> {
    let lowest = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call.
    Errno::result(unsafe { libc::sched_setscheduler(pid.as_raw(), libc::SCHED_IDLE, &lowest) }).map(drop)
}

/// The main loop of the soaker. `extern "C"`, so that a panic ends the process instead of unwinding into its copy of the
/// caller.
extern "C" fn soak(parent: libc::pid_t) -> ! {
    // Handlers were inherited with the memory, and must not run here.
    let ready = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)
        .and_then(|()| prctl::set_pdeathsig(Signal::SIGKILL));
    if ready.is_err() || getppid().as_raw() != parent {
        // SAFETY: _exit runs nothing of the copied program.
        unsafe { libc::_exit(1) }
    }
    loop {
        pass_time();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        thread::sleep,
        time::{Duration, Instant},
    };

    fn soaks_within(soaker: &Soaker, longest: Duration) -> bool {
        let (start, before) = (Instant::now(), soaker.soaked().unwrap());
        while start.elapsed() < longest {
            sleep(Duration::from_millis(5));
            if soaker.soaked().unwrap() > before {
                return true;
            }
        }
        false
    }

    #[test]
    fn soaks_up_time_under_the_lowest_policy() {
        let soaker = Soaker::start().unwrap();
        assert!(soaks_within(&soaker, Duration::from_secs(20)));
        // SAFETY: takes a number.
        assert_eq!(unsafe { libc::sched_getscheduler(soaker.pid.as_raw()) }, libc::SCHED_IDLE);
        assert!(soaker.confirm().is_ok());
    }

    #[test]
    fn leaves_no_process_when_dropped() {
        let soaker = Soaker::start().unwrap();
        let pid = soaker.pid;
        drop(soaker);
        assert_eq!(kill(pid, None), Err(Errno::ESRCH));
    }

    #[test]
    fn reports_a_soaker_that_ended_early() {
        let soaker = Soaker::start().unwrap();
        kill(soaker.pid, Signal::SIGKILL).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while soaker.confirm().is_ok() {
            assert!(Instant::now() < deadline, "the end was not seen");
            sleep(Duration::from_millis(5));
        }
    }
}
