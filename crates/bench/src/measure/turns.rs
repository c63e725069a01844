//! The order in which tasks that wait for one another run.

use nix::errno::Errno;

use crate::{Error, error::Context};

/// The calling thread, and tasks that it creates from now on, run under `SCHED_BATCH` until this is dropped.
///
/// A task of that policy does not preempt the task that wakes it (`check_preempt_wakeup`, `wakeup_preempt_fair` in
/// kernel/sched/fair.c): each runs until it has to wait. Under `SCHED_OTHER` it depends on the run times of the two, so an
/// operation has two prices some 30 % apart and keeps to one of them for a while. With turns, an operation also ends with all
/// its tasks asleep, as at its start, and is measured whole.
#[derive(Debug)]
pub(crate) struct Turns {
    before: libc::c_int,
}

impl Turns {
    pub(crate) fn take() -> Result<Turns, Error> {
        // SAFETY: takes a number.
        let before = Errno::result(unsafe { libc::sched_getscheduler(0) }).context("get the scheduling policy")?;
        set_policy(libc::SCHED_BATCH).context("set the scheduling policy SCHED_BATCH")?;
        Ok(Turns { before })
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // From SCHED_BATCH back to SCHED_OTHER is always allowed, and workloads run under no other policy.
        let _ = set_policy(self.before);
    }
}

fn set_policy(policy: libc::c_int) -> nix::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call.
    Errno::result(unsafe { libc::sched_setscheduler(0, policy, &parameters) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> libc::c_int {
        // SAFETY: takes a number.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn sets_the_policy_for_as_long_as_it_lives() {
        let before = policy();
        let turns = Turns::take().unwrap();
        assert_eq!(policy(), libc::SCHED_BATCH);
        drop(turns);
        assert_eq!(policy(), before);
    }
}
