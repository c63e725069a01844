//! How long nodes took, and how much memory the store.

use std::{collections::BTreeMap, fmt, fs, time::Duration};

use anyhow::Context;

/// What was heard of nodes during one step.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// After how long each was told.
    pub(super) told: BTreeMap<usize, Duration>,
    /// After how long each had taken it, and said so.
    pub(super) looked: BTreeMap<usize, Duration>,
    /// How many times one of them could not.
    pub(super) failures: usize,
    /// How many never did.
    pub(super) missing: usize,
}

/// How long the middle one and the last one took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spread {
    middle: Duration,
    pub(super) last: Duration,
}

impl Spread {
    pub(super) fn of(times: &BTreeMap<usize, Duration>) -> Option<Self> {
        let mut times: Vec<Duration> = times.values().copied().collect();
        times.sort_unstable();
        Some(Self { middle: *times.get(times.len() / 2)?, last: *times.last()? })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "half after {:.2} s, last after {:.2} s", self.middle.as_secs_f64(), self.last.as_secs_f64())
    }
}

/// The memory that processes have, in bytes.
pub(super) fn memory(processes: &[u32]) -> anyhow::Result<u64> {
    let one = |process: &u32| {
        let path = format!("/proc/{process}/status");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {path}; name a process that runs"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kibibytes.map(|kibibytes| kibibytes * 1024).with_context(|| format!("{path} names no memory"))
    };
    processes.iter().map(one).sum()
}
