//! Processes that left their confinement while hooks did not run. They are found, and then confined again, killed, or
//! reported.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsFd, AsRawFd},
};

use libbpf_rs::{MapCore, MapFlags};
use tollgate_abi::{
    bytes_of,
    enforcer::{SECINITSID_UNLABELED, TG_SID_MACHINE, tg_lineage, tg_slipped},
};
use tollgate_client::{
    after_gap::AfterGap,
    pidfd,
    status::{Kind, Slipped},
};
use tracing::error;

use super::{Enforcer, EnforcerError, map_error};
use crate::{
    canary::{self, Gap},
    contexts::Sid,
    lineage::{self, Origin, Tasks},
    programs,
};

const SLIPPED: &str = "slipped";
/// How often the search is repeated. A process may fork just before it is confined.
const MAX_ROUNDS: u32 = 16;
/// How many tasks are labelled at once: the size of the map.
const BATCH: usize = 1 << 16;
/// The unit in which proc shows start times (USER_HZ), in nanoseconds.
const TICK: u64 = 10_000_000;

/// A task, and the label that it lacks.
#[derive(Debug, Clone, Copy)]
struct Lost {
    task: tg_lineage,
    sid: Sid,
}

impl Enforcer {
    /// Handles a gap that has ended: drops cached state that hooks did not keep up to date, and finds processes that
    /// may have left their confinement. A process that was only unwatched, and is not known to have lost its label, is
    /// reported and goes on.
    pub fn after_gap(&mut self, gap: &Gap) -> Result<Vec<Slipped>, EnforcerError> {
        let chosen = if gap.kind == Kind::Off { self.options.after_gap } else { AfterGap::Tell };
        let mut found: BTreeMap<u32, Lost> = BTreeMap::new();
        let mut to = gap.to;
        for _ in 0..MAX_ROUNDS {
            let mut fresh = self.lost(gap.from, to, gap.kind == Kind::Off)?;
            fresh.retain(|lost| !found.contains_key(&lost.task.task));
            if fresh.is_empty() {
                break;
            }
            self.treat(chosen, &fresh)?;
            found.extend(fresh.into_iter().map(|lost| (lost.task.task, lost)));
            // Processes that these have made meanwhile.
            to = canary::now();
        }
        if gap.kind == Kind::Off {
            // Credentials are assigned again, whether or not a process was found.
            lineage::relabel(&self.options.pins)?;
        }
        self.state.forget();
        Ok(self.grouped(chosen, found.values()))
    }

    /// The processes that would be found if hooks ran again now.
    pub fn lost_since(&mut self, from: u64) -> Result<Vec<Slipped>, EnforcerError> {
        let lost = self.lost(from, canary::now(), true)?;
        Ok(self.grouped(AfterGap::Tell, lost.iter()))
    }

    /// Tasks that have no label and do not certainly belong to the machine; and tasks of the machine that execute the
    /// program of a domain.
    fn lost(&self, from: u64, to: u64, off: bool) -> Result<Vec<Lost>, EnforcerError> {
        let live: Vec<Sid> = self.state.live().into_iter().filter(|sid| *sid != 0).collect();
        // The label of the only confined domain there is, or one that is allowed next to nothing.
        let unknown = match live[..] {
            [] => None,
            [only] => Some(only),
            [..] => Some(SECINITSID_UNLABELED),
        };
        let tasks = Tasks::look(&self.options.pins)?;
        let unlabelled = tasks.unlabelled(&(from..=to), off).into_iter();
        let found = unlabelled.filter_map(|(task, origin)| match origin {
            Origin::Of(sid) => Some(Lost { task: *task, sid }),
            Origin::Unknown => unknown.map(|sid| Lost { task: *task, sid }),
            Origin::Machine => (task.plain != 0).then_some(Lost { task: *task, sid: TG_SID_MACHINE }),
        });
        Ok(found.collect())
    }

    fn treat(&self, chosen: AfterGap, lost: &[Lost]) -> Result<(), EnforcerError> {
        // Those of the machine only lose the label of a task that was at their address, whatever is chosen.
        let (mut labelled, lost): (Vec<Lost>, Vec<Lost>) = lost.iter().partition(|lost| lost.sid == TG_SID_MACHINE);
        if chosen == AfterGap::Kill {
            lost.iter().for_each(|lost| kill(&lost.task));
        }
        // Also processes that are killed, because they may not end at once.
        if chosen != AfterGap::Tell {
            labelled.extend(lost);
        }
        for some in labelled.chunks(BATCH) {
            self.confine(some)?;
        }
        Ok(())
    }

    fn confine(&self, lost: &[Lost]) -> Result<(), EnforcerError> {
        let map = programs::map(&self.options.pins, SLIPPED)?;
        let keys = lost.iter().map(|lost| tg_slipped { began: lost.task.began, task: lost.task.task, reserved: 0 });
        let keys: Vec<tg_slipped> = keys.collect();
        for (key, lost) in keys.iter().zip(lost) {
            let put = map.update(bytes_of(key), &lost.sid.to_ne_bytes(), MapFlags::ANY);
            put.map_err(map_error("put processes to confine in a map"))?;
        }
        let labelled = lineage::relabel(&self.options.pins);
        for key in &keys {
            // It may have been removed by somebody else already.
            let _ = map.delete(bytes_of(key));
        }
        self.state.forget();
        Ok(labelled?)
    }

    /// Groups processes with the same name and context.
    fn grouped<'l>(&mut self, fate: AfterGap, lost: impl Iterator<Item = &'l Lost>) -> Vec<Slipped> {
        self.learn();
        let mut groups: BTreeMap<(String, Sid), Vec<u32>> = BTreeMap::new();
        let lost = lost.filter(|lost| lost.sid != TG_SID_MACHINE && lost.task.task == lost.task.process);
        for Lost { task, sid } in lost {
            groups.entry((name(task), *sid)).or_default().push(task.process);
        }
        let group =
            |((name, sid), processes)| Slipped { name, context: self.contexts.text(sid).to_owned(), fate, processes };
        groups.into_iter().map(group).collect()
    }

    /// Processes of the machine from the gap that execute the program of a domain, which they would have entered had
    /// hooks run.
    pub fn not_entered(&mut self, gap: &Gap) -> Result<Vec<Slipped>, EnforcerError> {
        let tasks = Tasks::look(&self.options.pins)?;
        let machines = tasks.unlabelled(&(gap.from..=gap.to), gap.kind == Kind::Off).into_iter();
        let machines = machines.filter(|(task, origin)| *origin == Origin::Machine && task.domain != 0);
        let lost: Vec<Lost> = machines.map(|(task, _)| Lost { task: *task, sid: task.domain }).collect();
        Ok(self.grouped(AfterGap::Tell, lost.iter()))
    }
}

fn name(task: &tg_lineage) -> String {
    let bytes: Vec<u8> = task.name.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).escape_default().to_string()
}

/// Kills the process of a task, unless another one has its number by now.
fn kill(task: &tg_lineage) {
    let killed = || -> io::Result<()> {
        let process = pidfd::open(task.process.cast_signed())?;
        if task.task == task.process && began(task.process).is_none_or(|began| began != task.began / TICK) {
            return Ok(());
        }
        // SAFETY: the descriptor is open, and no other argument is a pointer that is followed.
        match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_fd().as_raw_fd(), libc::SIGKILL, 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    match killed() {
        Err(cause) if cause.raw_os_error() != Some(libc::ESRCH) => {
            error!(%cause, "process {} left its confinement and was not killed: {cause}", task.process);
        }
        _ => {}
    }
}

/// When a process was started, in ticks since boot: field 22 of its stat, the 20th after its name.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_when_a_process_was_started() {
        let now = canary::now() / TICK;
        let own = began(std::process::id()).unwrap();
        assert!(own <= now && now - own < 360_000 * 24, "{own} {now}");
        assert_eq!(began(u32::MAX), None);
    }
}
