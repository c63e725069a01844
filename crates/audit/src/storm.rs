//! Bounds audit storms: equal denials are merged, and a token bucket limits the rest. What is not logged is counted.
//!
//! Pure: the caller passes the time, from any clock that does not run backwards.

use std::{
    collections::{HashMap, hash_map},
    mem,
    time::Duration,
};

use super::{Denial, Entry, Lost, Reason};

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Denials per second in the long run.
    pub rate: u32,
    /// Denials at once after a quiet time; also how many different ones are remembered.
    pub burst: u32,
    /// How long a logged denial stands for those that equal it.
    pub window: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rate: 200, burst: 1000, window: Duration::from_secs(1) }
    }
}

/// What was logged recently.
#[derive(Debug)]
pub struct Storm {
    limits: Limits,
    /// Tokens left, in millionths.
    tokens: u64,
    filled: Duration,
    lately: HashMap<Denial, Kind>,
    over: u64,
    over_since: Duration,
}

/// Denials that differ only in time and process.
#[derive(Debug)]
struct Kind {
    since: Duration,
    more: u64,
    last: Denial,
}

const TOKEN: u64 = 1_000_000;

impl Storm {
    /// Begins with a full bucket.
    #[must_use]
    pub fn new(limits: Limits, now: Duration) -> Self {
        let tokens = u64::from(limits.burst) * TOKEN;
        Self { limits, tokens, filled: now, lately: HashMap::new(), over: 0, over_since: now }
    }

    /// Returns the denial if it is to be logged now. Otherwise it is counted, and [`Storm::due`] returns the count
    /// later.
    pub fn offer(&mut self, now: Duration, denial: Denial) -> Option<Denial> {
        self.fill(now);
        let room = self.lately.len() < self.limits.burst as usize;
        match self.lately.entry(kind(&denial)) {
            hash_map::Entry::Occupied(mut known) => {
                let kind = known.get_mut();
                kind.more += 1;
                kind.last = denial;
                None
            }
            hash_map::Entry::Vacant(place) if room && self.tokens >= TOKEN => {
                self.tokens -= TOKEN;
                place.insert(Kind { since: now, more: 0, last: denial.clone() });
                Some(denial)
            }
            hash_map::Entry::Vacant(_) => {
                if self.over == 0 {
                    self.over_since = now;
                }
                self.over += 1;
                None
            }
        }
    }

    /// The counts whose window has ended. The entry is the last denial that was merged.
    pub fn due(&mut self, now: Duration) -> Vec<Entry> {
        let window = self.limits.window;
        let old = |since: Duration| now.saturating_sub(since) >= window;
        let mut merged: Vec<Kind> = self
            .lately
            .extract_if(|_, kind| old(kind.since))
            .map(|(_, kind)| kind)
            .filter(|kind| kind.more > 0)
            .collect();
        merged.sort_by_key(|kind| kind.last.time);
        let mut entries: Vec<Entry> =
            merged.into_iter().map(|kind| Entry::Avc(Denial { repeated: kind.more, ..kind.last })).collect();
        if self.over > 0 && old(self.over_since) {
            entries.push(Entry::Lost(Lost { time: 0, count: mem::take(&mut self.over), reason: Reason::DaemonLimit }));
        }
        entries
    }

    /// Whether nothing is counted, so that nothing becomes due without a further denial.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.lately.is_empty() && self.over == 0
    }

    /// All counts that are left, at the end.
    pub fn finish(&mut self) -> Vec<Entry> {
        self.due(Duration::MAX)
    }

    fn fill(&mut self, now: Duration) {
        let passed = u64::try_from(now.saturating_sub(self.filled).as_micros()).unwrap_or(u64::MAX);
        let gained = passed.saturating_mul(u64::from(self.limits.rate));
        self.tokens = self.tokens.saturating_add(gained).min(u64::from(self.limits.burst) * TOKEN);
        self.filled = self.filled.max(now);
    }
}

/// The denial without what merged denials may differ in.
fn kind(denial: &Denial) -> Denial {
    Denial { time: 0, pid: 0, repeated: 0, ..denial.clone() }
}

#[cfg(test)]
mod tests {
    use tollgate_abi::enforcer::tg_event;

    use super::*;
    use crate::Untrusted;

    const LIMITS: Limits = Limits { rate: 10, burst: 20, window: Duration::from_secs(1) };

    fn denial(comm: &str, pid: u32) -> Denial {
        let mut denial = Denial::new(&tg_event::default(), 0, |_| None);
        denial.comm = Untrusted::new(comm);
        denial.pid = pid;
        denial.time = u64::from(pid);
        denial
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn counts(entries: &[Entry]) -> Vec<(u32, u64)> {
        let avc = |entry: &Entry| match entry {
            Entry::Avc(denial) => Some((denial.pid, denial.repeated)),
            _ => None,
        };
        entries.iter().filter_map(avc).collect()
    }

    #[test]
    fn merges_equal_denials_of_a_second_into_the_last() {
        let mut storm = Storm::new(LIMITS, at(0));
        assert_eq!(storm.offer(at(0), denial("a", 1)).unwrap().pid, 1);
        for pid in 2..=42 {
            assert_eq!(storm.offer(at(10), denial("a", pid)), None);
        }
        assert!(storm.offer(at(10), denial("b", 1)).is_some());
        assert!(storm.due(at(999)).is_empty());
        assert_eq!(counts(&storm.due(at(1000))), [(42, 41)]);
        assert!(storm.finish().is_empty());
        assert!(storm.offer(at(1001), denial("a", 43)).is_some());
    }

    #[test]
    fn counts_what_is_above_the_rate_and_tells_again_after_quiet() {
        let mut storm = Storm::new(LIMITS, at(0));
        let passed = (0..50).filter(|n| storm.offer(at(0), denial(&format!("c{n}"), 1)).is_some()).count();
        assert_eq!(passed, 20);
        assert!(storm.due(at(999)).is_empty());
        let lost = storm.due(at(1000));
        assert_eq!(lost, [Entry::Lost(Lost { time: 0, count: 30, reason: Reason::DaemonLimit })]);
        let passed = (0..50).filter(|n| storm.offer(at(1000), denial(&format!("d{n}"), 1)).is_some()).count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn remembers_no_more_kinds_than_a_burst() {
        let mut storm = Storm::new(Limits { rate: u32::MAX, ..LIMITS }, at(0));
        for n in 0..1000 {
            storm.offer(at(n), denial(&format!("c{n}"), 1));
        }
        assert!(storm.lately.len() <= 20, "{}", storm.lately.len());
    }

    #[test]
    fn loses_no_denial_uncounted_in_random_storms() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..50 {
            let mut storm = Storm::new(LIMITS, at(0));
            let (mut now, mut offered, mut accounted) = (0, 0u64, 0u64);
            let count = |entries: Vec<Entry>| -> u64 {
                let one = |entry: &Entry| match entry {
                    Entry::Avc(denial) => denial.repeated,
                    Entry::Lost(lost) => lost.count,
                    Entry::Load(_) => 0,
                };
                entries.iter().map(one).sum()
            };
            for _ in 0..2000 {
                now += random.u64(..20);
                offered += 1;
                accounted += u64::from(storm.offer(at(now), denial(&format!("c{}", random.u64(..60)), 1)).is_some());
                if random.u64(..10) == 0 {
                    accounted += count(storm.due(at(now)));
                }
            }
            accounted += count(storm.finish());
            assert_eq!(accounted, offered);
        }
    }

    #[test]
    fn bears_a_clock_that_goes_back_or_far_ahead() {
        let mut storm = Storm::new(LIMITS, at(5000));
        storm.offer(at(4000), denial("a", 1));
        storm.offer(Duration::MAX, denial("b", 1));
        storm.offer(at(0), denial("c", 1));
        assert_eq!(storm.tokens, 18 * TOKEN);
    }
}
