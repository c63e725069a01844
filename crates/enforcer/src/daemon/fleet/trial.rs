//! What the newest generation is tried for: how many denials there were before, and whether this node went back from it.

use std::{
    collections::VecDeque,
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tollgate_client::protocol::Mode;
use tollgate_fleet::{Hash, durable, stage};

/// The name of the file.
const FILE: &str = "trial";
/// Over how long denials are counted, and how often at most.
const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// The generation that this node put in force last, or tried in shadow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trial {
    /// Its hash.
    generation: String,
    /// Whether the machine became permissive for it.
    pub(super) permissive: bool,
    /// The machine's mode before.
    pub(super) was: Mode,
    /// Denials in the minute before.
    pub(super) before: u64,
    /// Why this node went back from it.
    pub(super) back: Option<String>,
}

impl Trial {
    pub(super) fn new(generation: Hash, mode: stage::Mode, was: Mode, before: u64) -> Self {
        let permissive = mode == stage::Mode::Permissive;
        Self { generation: generation.to_string(), permissive, was, before, back: None }
    }

    /// Reads the one that is kept. One that cannot be read is as if there were none: its generation is tried again.
    pub(super) fn read(kept: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(kept.join(FILE)).ok()?).ok()
    }

    pub(super) fn keep(&self, kept: &Path) -> io::Result<()> {
        durable::write(&kept.join(FILE), 0o600, &serde_json::to_vec(self)?)
    }

    pub(super) fn is_of(&self, generation: Hash) -> bool {
        self.generation == generation.to_string()
    }
}

/// The denials of the last minute.
#[derive(Debug, Default)]
pub(super) struct Denials(VecDeque<(Instant, u64)>);

impl Denials {
    /// Whether it is time to count again.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.0.back().is_none_or(|(last, _)| now.saturating_duration_since(*last) >= SECOND)
    }

    /// Takes how many there have been so far.
    pub(super) fn count(&mut self, now: Instant, so_far: u64) {
        self.0.push_back((now, so_far));
        // One that is a minute old stays: the others are counted from there.
        while self.0.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= MINUTE) {
            self.0.pop_front();
        }
    }

    /// How many there were in the last minute, or since counting began.
    pub(super) fn a_minute(&self) -> u64 {
        let ends = self.0.front().zip(self.0.back());
        ends.map_or(0, |((_, first), (_, last))| last.saturating_sub(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_denials_of_the_last_minute() {
        let (begun, mut denials) = (Instant::now(), Denials::default());
        for second in 0..200 {
            let now = begun + Duration::from_secs(second);
            assert!(denials.is_due(now) && !denials.is_due(begun) || second == 0);
            // One a second from the hundredth on.
            denials.count(now, 7 + second.saturating_sub(100));
            let expected = second.saturating_sub(100).min(60);
            assert_eq!(denials.a_minute(), expected, "after {second} seconds");
        }
    }
}
