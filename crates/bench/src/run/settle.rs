//! Waits until the kernel's work after boot is over. Deferred initialisation, self-tests and RCU callbacks take seconds on
//! newer kernels, and would be counted as the workload's.

use std::{
    collections::HashMap,
    fs, io,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{Error, counter::Counter, error::Context, job::Settled};

/// The machine is observed in windows of this length.
const WINDOW: Duration = Duration::from_millis(100);

/// How many windows in a row must be quiet.
const QUIET_WINDOWS: u32 = 5;

/// When a kernel counts as quiet, and the time limit of the wait.
struct Patience {
    /// The most that all other tasks together may run in a quiet window.
    quiet: Duration,
    /// The wait ends after this time.
    longest: Duration,
}

impl Patience {
    /// On the instruction clock an idle guest jumps over the wait. On the wall clock the wait takes the host's time, too, and
    /// medians of many rounds tolerate what still runs.
    fn of(counter: Counter) -> Self {
        match counter {
            Counter::Instructions => Self { quiet: Duration::from_micros(200), longest: Duration::from_secs(60) },
            Counter::Wall => Self { quiet: Duration::from_millis(1), longest: Duration::from_secs(3) },
        }
    }
}

/// The most tasks that the report names.
const MAX_SHOWN: usize = 5;

/// Waits, and reports how long and because of which tasks.
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

/// Waits, and returns the result in one line, for a guest's agent, which has no report for it.
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

/// A task's name, and its run time since it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    name: String,
    ran: Duration,
}

/// The tasks of a moment by their process number, without this one.
pub(super) type Tasks = HashMap<u32, Task>;

/// Reads all processes except this one. Threads of other processes are not separated: there are none in a guest.
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
            // The task has ended meanwhile.
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

/// The run time of one task between two looks; all of it for a new task.
fn ran_by(pid: u32, task: &Task, before: &Tasks) -> Duration {
    let earlier = before.get(&pid).map_or(Duration::ZERO, |earlier| earlier.ran);
    task.ran.saturating_sub(earlier)
}

/// The run time of all tasks between two looks. A task that ended in between is not counted: the next window is quiet without
/// it.
fn ran(before: &Tasks, after: &Tasks) -> Duration {
    after.iter().map(|(pid, task)| ran_by(*pid, task, before)).sum()
}

/// The tasks with the longest run times between two looks, as `NAME MILLISECONDS`.
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
