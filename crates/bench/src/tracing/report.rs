//! The counts, as they are printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Calls by hook, per run or operation.
pub type Asked = BTreeMap<String, f64>;

/// A system call, or the page faults of user code.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallReport {
    /// Its name in `syscall_64.tbl`, or `page fault`.
    pub call: String,
    /// How often it was called; page faults are not counted.
    pub count: f64,
    /// How often each hook was called in it, or later because of it.
    pub hooks: Asked,
    /// The same by the calling function, if that was requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub callers: BTreeMap<String, Asked>,
}

/// The tracer's results.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) lost: u64,
    /// How often a probe was passed and could not be recorded.
    pub(super) missed: u64,
    pub(super) pending: u64,
    pub(super) running: u64,
    pub(super) hooks: Asked,
    pub(super) calls: Vec<CallReport>,
    pub(super) deferred: Asked,
    pub(super) untraceable: Vec<String>,
}

/// The counts of a command, or of a workload's operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of the format.
    pub schema: u32,
    /// `uname -r` of the kernel.
    pub kernel: String,
    /// The method of counting.
    pub source: String,
    /// The command, with its arguments; none for a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The workload's selection; none for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The number of runs of the command, or of operations, of which the counts are the mean.
    pub runs: u64,
    /// The exit status of each run of the command, or 128 + the signal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<i32>,
    /// Records that the kernel could not keep. If there are any, counts are too low.
    pub lost: u64,
    /// How often the kernel could not record that an object was created, released or freed, because it was recording another
    /// such event. Up to this many hooks of deferred work may be missing, or be `deferred`.
    #[serde(default)]
    pub missed: u64,
    /// Objects that a call has released and whose end did not come in time: their hooks are missing.
    pub pending: u64,
    /// Tasks that still ran at the end, and were counted until then.
    #[serde(default)]
    pub running: u64,
    /// Instructions of a run, or of an operation, without tracing: the median; absent on other clocks.
    pub cost: Option<f64>,
    /// Calls of each hook in all.
    pub hooks: Asked,
    /// The same by system call, sorted.
    pub calls: Vec<CallReport>,
    /// Calls in `hooks` that belong to no system call.
    pub deferred: Asked,
    /// Hooks of this kernel that no traceable function calls.
    pub untraceable: Vec<String>,
}

impl Report {
    pub(super) fn new(kernel: String, runs: u64, cost: Option<f64>, tally: Tally) -> Self {
        let Tally { lost, missed, pending, running, hooks, calls, deferred, untraceable } = tally;
        let source = "function tracer".to_owned();
        Self {
            schema: 1,
            kernel,
            source,
            command: None,
            workload: None,
            runs,
            status: Vec::new(),
            lost,
            missed,
            pending,
            running,
            cost,
            hooks,
            calls,
            deferred,
            untraceable,
        }
    }

    /// Removes the calling functions.
    pub fn without_callers(mut self) -> Self {
        self.calls.iter_mut().for_each(|call| call.callers.clear());
        self
    }
}

impl Report {
    /// The sum with another run.
    pub(super) fn plus(mut self, other: Report) -> Report {
        self.lost += other.lost;
        self.missed += other.missed;
        self.pending += other.pending;
        self.running += other.running;
        add(&mut self.hooks, other.hooks);
        add(&mut self.deferred, other.deferred);
        for call in other.calls {
            match self.calls.iter_mut().find(|own| own.call == call.call) {
                Some(own) => {
                    own.count += call.count;
                    add(&mut own.hooks, call.hooks);
                    call.callers.into_iter().for_each(|(hook, asked)| add(own.callers.entry(hook).or_default(), asked));
                }
                None => self.calls.push(call),
            }
        }
        self.calls.sort_by(|one, other| one.call.cmp(&other.call));
        self
    }

    /// The mean over this many runs.
    pub(super) fn over(mut self, runs: f64) -> Report {
        let divide = |asked: &mut Asked| asked.values_mut().for_each(|count| *count /= runs);
        divide(&mut self.hooks);
        divide(&mut self.deferred);
        for call in &mut self.calls {
            call.count /= runs;
            divide(&mut call.hooks);
            call.callers.values_mut().for_each(divide);
        }
        self
    }
}

fn add(to: &mut Asked, more: Asked) {
    more.into_iter().for_each(|(name, count)| *to.entry(name).or_default() += count);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(call: &str, hook: &str, count: f64) -> Report {
        let asked = Asked::from([(hook.to_owned(), count)]);
        let callers = [(hook.to_owned(), Asked::from([("vfs_open".to_owned(), count)]))].into();
        let call = CallReport { call: call.to_owned(), count, hooks: asked.clone(), callers };
        Report::new("6.1".to_owned(), 1, None, Tally { hooks: asked, calls: vec![call], ..Tally::default() })
    }

    #[test]
    fn gives_the_mean_of_runs() {
        let mean = report("openat", "file_open", 3.0).plus(report("openat", "file_open", 1.0)).over(2.0);
        assert_eq!((mean.hooks["file_open"], mean.calls.len(), mean.calls[0].count), (2.0, 1, 2.0));
        assert_eq!((mean.calls[0].hooks["file_open"], mean.calls[0].callers["file_open"]["vfs_open"]), (2.0, 2.0));
        let mean = report("openat", "file_open", 4.0).plus(report("chmod", "path_chmod", 2.0)).over(2.0);
        assert_eq!((mean.hooks["file_open"], mean.hooks["path_chmod"]), (2.0, 1.0));
        assert_eq!(mean.calls.iter().map(|call| call.call.as_str()).collect::<Vec<_>>(), ["chmod", "openat"]);
        assert!(mean.without_callers().calls.iter().all(|call| call.callers.is_empty()));
    }
}
