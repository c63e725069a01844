//! The time that each kernel of a study took.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};

/// Time per kernel, so far in this run.
#[derive(Debug)]
pub(crate) struct Pace {
    guests: usize,
    kernels: BTreeMap<String, Needed>,
    /// The processor time of all child processes that had ended when the last boot was over.
    processor: Duration,
}

/// The time of one kernel.
#[derive(Debug)]
struct Needed {
    first: Instant,
    last: Instant,
    processor: Duration,
    boots: usize,
}

impl Pace {
    /// Created before the first boot; `guests` run at a time.
    pub(crate) fn new(guests: usize) -> Self {
        Self { guests, kernels: BTreeMap::new(), processor: processor() }
    }

    /// A boot of this kernel has begun.
    pub(crate) fn started(&mut self, kernel: &str) {
        let now = Instant::now();
        let fresh = || Needed { first: now, last: now, processor: Duration::ZERO, boots: 0 };
        self.kernels.entry(kernel.to_owned()).or_insert_with(fresh);
    }

    /// A boot of this kernel is over, and its guest has ended.
    pub(crate) fn finished(&mut self, kernel: &str) {
        self.ended(kernel, Instant::now(), processor());
    }

    fn ended(&mut self, kernel: &str, now: Instant, processor: Duration) {
        let Some(needed) = self.kernels.get_mut(kernel) else { return };
        needed.last = now;
        needed.boots += 1;
        // At the change from one kernel to the next, a guest of the one may be counted for the other.
        needed.processor += processor.saturating_sub(self.processor);
        self.processor = processor;
    }

    /// One line per kernel, in the order of names; none if nothing was measured.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |(kernel, needed): (&String, &Needed)| {
            let (wall, processor) = (spelled(needed.last - needed.first), spelled(needed.processor));
            let Needed { boots, .. } = needed;
            format!(
                "{kernel}: {boots} boots in {wall}, {processor} of processor time, {} guests at a time",
                self.guests
            )
        };
        self.kernels.iter().filter(|(_, needed)| needed.boots > 0).map(line).collect()
    }
}

/// Processor time of all child processes that have ended.
fn processor() -> Duration {
    let of = |time: TimeVal| {
        Duration::new(
            u64::try_from(time.tv_sec()).unwrap_or_default(),
            1000 * u32::try_from(time.tv_usec()).unwrap_or_default(),
        )
    };
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(|usage| of(usage.user_time()) + of(usage.system_time()))
        .unwrap_or_default()
}

/// A time in words, to the second.
fn spelled(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_each_kernel_took_and_nothing_of_one_that_never_ended_a_boot() {
        let mut pace = Pace { guests: 2, kernels: BTreeMap::new(), processor: Duration::from_secs(5) };
        pace.started("6.1");
        let first = pace.kernels["6.1"].first;
        pace.ended("6.1", first + Duration::from_secs(60), Duration::from_secs(85));
        pace.ended("6.1", first + Duration::from_millis(121_600), Duration::from_secs(100));
        pace.started("6.12");
        let expected = "6.1: 2 boots in 2 min 2 s, 1 min 35 s of processor time, 2 guests at a time";
        assert_eq!(pace.lines(), [expected]);
        let second = pace.kernels["6.12"].first;
        pace.ended("6.12", second + Duration::from_secs(9), Duration::from_secs(108));
        assert_eq!(pace.lines()[1], "6.12: 1 boots in 9 s, 8 s of processor time, 2 guests at a time");
    }
}
