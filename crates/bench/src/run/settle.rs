//! Waits until the kernel's work after boot is over: deferred initialisation, self-tests and RCU callbacks go on for
//! seconds on newer kernels, and would be counted as the workload's.

use std::{
    collections::HashMap,
    fs, io,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{Error, counter::Counter, error::Context, job::Settled};

/// The machine is observed in windows of this length.
const WINDOW: Duration = Duration::from_millis(100);

/// So many windows in a row must be quiet.
const QUIET_WINDOWS: u32 = 5;

/// When a kernel counts as quiet, and for how long that is waited for.
struct Patience {
    /// What all other tasks together may run in a quiet window.
    quiet: Duration,
    /// The wait is given up after this.
    longest: Duration,
}

impl Patience {
    /// An idle guest jumps over the wait on the instruction clock. On the wall clock it passes for the host, too, and
    /// medians of many rounds bear what is still going on.
    fn of(counter: Counter) -> Self {
        match counter {
            Counter::Instructions => Self { quiet: Duration::from_micros(200), longest: Duration::from_secs(60) },
            Counter::Wall => Self { quiet: Duration::from_millis(1), longest: Duration::from_secs(3) },
        }
    }
}

/// The most tasks that the report names.
const MAX_SHOWN: usize = 5;

/// Waits, and reports for how long and for whom.
pub(super) fn settle(counter: Counter) -> Result<Settled, Error> {
    let patience = Patience::of(counter);
    let start = Instant::now();
    let first = look()?;
    let mut last = first.clone();
    let mut quiet = 0;
    while quiet < QUIET_WINDOWS && start.elapsed() < patience.longest {
        sleep(WINDOW);
        let now = look()?;
        quiet = if ran(&last, &now) < patience.quiet { quiet + 1 } else { 0 };
        last = now;
    }
    Ok(Settled {
        waited_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        quiet: quiet >= QUIET_WINDOWS,
        busiest: busiest(&first, &last),
    })
}

/// Waits, and says in a line what came of it: for a guest's agent, which has no report to put it in.
pub fn describe() -> String {
    match settle(Counter::Instructions) {
        Ok(settled) => {
            let seconds = settled.waited_ms as f64 / 1e3;
            let state = if settled.quiet { "quiet after" } else { "not quiet within" };
            format!("the kernel was {state} {seconds:.1} s; busiest (ms): {}", settled.busiest.join(", "))
        }
        Err(error) => format!("the kernel's work after boot was not waited for: {error}"),
    }
}

/// A task's name, and the time it has run since it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    name: String,
    ran: Duration,
}

/// The tasks of a moment by their process number, without this one.
pub(super) type Tasks = HashMap<u32, Task>;

/// Reads all processes but this one. A thread of another process is not seen apart: there are none in a guest.
pub(super) fn look() -> Result<Tasks, Error> {
    let mut tasks = Tasks::new();
    for entry in fs::read_dir("/proc").context("list /proc (is it mounted?)")? {
        let name = entry.context("list /proc")?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        match read_task(pid) {
            Ok(Some(task)) => drop(tasks.insert(pid, task)),
            Ok(None) => {
                return Err(Error::Unavailable(format!(
                    "/proc/{pid}/schedstat does not say how long the task ran; the kernel needs CONFIG_SCHED_INFO"
                )));
            }
            // It ended meanwhile.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => {}
            Err(error) => return Err(error).context(format!("read /proc/{pid}/schedstat")),
        }
    }
    Ok(tasks)
}

fn read_task(pid: u32) -> io::Result<Option<Task>> {
    let ran = parse_ran(&fs::read_to_string(format!("/proc/{pid}/schedstat"))?);
    let name = fs::read_to_string(format!("/proc/{pid}/comm"))?;
    Ok(ran.map(|ran| Task { name: name.trim_end().to_owned(), ran }))
}

/// The first of `schedstat`'s three numbers: nanoseconds on a processor.
fn parse_ran(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// What one task ran between two looks; all of it for a task that is new.
fn ran_by(pid: u32, task: &Task, before: &Tasks) -> Duration {
    let earlier = before.get(&pid).map_or(Duration::ZERO, |earlier| earlier.ran);
    task.ran.saturating_sub(earlier)
}

/// What all tasks ran between two looks. One that ended in between is not counted: the next window is as quiet without
/// it.
fn ran(before: &Tasks, after: &Tasks) -> Duration {
    after.iter().map(|(pid, task)| ran_by(*pid, task, before)).sum()
}

/// Those that ran most between two looks, as `NAME MILLISECONDS`.
fn busiest(before: &Tasks, after: &Tasks) -> Vec<String> {
    let mut shares: Vec<(Duration, &str)> =
        after.iter().map(|(pid, task)| (ran_by(*pid, task, before), task.name.as_str())).collect();
    shares.sort_unstable_by(|a, b| b.cmp(a));
    shares.retain(|(ran, _)| *ran >= Duration::from_millis(1));
    shares.truncate(MAX_SHOWN);
    shares.iter().map(|(ran, name)| format!("{name} {}", ran.as_millis())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(list: &[(u32, &str, u64)]) -> Tasks {
        list.iter()
            .map(|&(pid, name, ms)| (pid, Task { name: name.to_owned(), ran: Duration::from_millis(ms) }))
            .collect()
    }

    #[test]
    fn reads_the_time_on_a_processor() {
        assert_eq!(parse_ran("82023566 1200 77\n"), Some(Duration::from_nanos(82_023_566)));
        assert_eq!(parse_ran(""), None);
    }

    #[test]
    fn counts_new_tasks_whole_and_ended_ones_not() {
        let before = tasks(&[(1, "init", 10), (2, "ended", 50)]);
        let after = tasks(&[(1, "init", 13), (3, "new", 4)]);
        assert_eq!(ran(&before, &after), Duration::from_millis(7));
    }

    #[test]
    fn names_the_busiest_first_and_leaves_idle_ones_out() {
        let before = tasks(&[(1, "init", 10), (2, "kdamond.0", 0), (3, "idle", 5)]);
        let after = tasks(&[(1, "init", 13), (2, "kdamond.0", 82), (3, "idle", 5)]);
        assert_eq!(busiest(&before, &after), ["kdamond.0 82", "init 3"]);
    }

    #[test]
    fn sees_other_tasks_but_not_this_one() {
        let tasks = look().unwrap();
        assert!(!tasks.is_empty());
        assert!(!tasks.contains_key(&std::process::id()));
    }
}
