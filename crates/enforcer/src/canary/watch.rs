//! What the canary's answers mean one after the other: when hooks ran, and when they did not.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use tollgate_client::status::Kind;

/// A problem that lasts. Times are in nanoseconds since boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// What the canary found.
    pub kind: Kind,
    /// When hooks ran for the last time, as far as is known.
    pub since: u64,
    /// When the problem was noticed.
    pub noticed: u64,
    /// The reason, and the remedy.
    pub why: String,
}

/// A gap that has ended. Hooks ran before it and run again. Times are in nanoseconds since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// What the canary had found.
    pub kind: Kind,
    /// When hooks ran for the last time before the gap.
    pub from: u64,
    /// When hooks ran again.
    pub to: u64,
}

/// A change in what is known of hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A problem was noticed.
    Raised(Alarm),
    /// Hooks run again.
    Over(Gap),
}

/// What is known of hooks, from the answers so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last time at which hooks are known to have run.
    ran: u64,
    alarm: Option<Alarm>,
}

/// The longest time between two answers that is not reported. A daemon that takes over needs some time.
const MAX_UNREPORTED_GAP: Duration = Duration::from_secs(3);

impl Watch {
    /// Begins with what the daemon before knew: when hooks ran, and since when they did not; 0: never.
    pub(super) fn new((denied, granted): (u64, u64), now: u64) -> Self {
        if denied == 0 {
            return Self { ran: now, alarm: None };
        }
        let why = "an earlier daemon noticed it".to_owned();
        let alarm = (granted > 0).then_some(Alarm { kind: Kind::Off, since: denied, noticed: granted, why });
        Self { ran: denied, alarm }
    }

    /// The problem that lasts.
    pub(super) fn alarm(&self) -> Option<&Alarm> {
        self.alarm.as_ref()
    }

    /// The acts of that time were denied, which was known at `answered`.
    pub(super) fn denied(&mut self, asked: u64, answered: u64) -> Option<Change> {
        let from = std::mem::replace(&mut self.ran, asked);
        if let Some(Alarm { kind, since, .. }) = self.alarm.take() {
            return Some(Change::Over(Gap { kind, from: since, to: answered }));
        }
        let longest = u64::try_from(MAX_UNREPORTED_GAP.as_nanos()).unwrap_or(u64::MAX);
        let unwatched = asked.saturating_sub(from) > longest;
        unwatched.then_some(Change::Over(Gap { kind: Kind::Unwatched, from, to: answered }))
    }

    /// The machine was suspended for this time, in which nothing ran.
    pub(super) fn slept(&mut self, time: u64) {
        self.ran += time;
    }

    /// Notes a problem. A worse problem than the known one is reported again.
    pub(super) fn raise(&mut self, kind: Kind, noticed: u64, why: impl FnOnce() -> String) -> Option<Change> {
        let known = self.alarm.as_ref().map(|alarm| alarm.kind);
        if known.is_some_and(|known| known == Kind::Off || known == kind) {
            return None;
        }
        let alarm = Alarm { kind, since: self.ran, noticed, why: why() };
        self.alarm = Some(alarm.clone());
        Some(Change::Raised(alarm))
    }
}

impl Alarm {
    /// The problem in a few words.
    #[must_use]
    pub fn text(&self) -> &'static str {
        match self.kind {
            Kind::Off => "HOOKS DO NOT RUN: nothing is enforced",
            Kind::Silent | Kind::Unwatched => "not known whether hooks run: the canary does not answer",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |from: u64, to: u64| Duration::from_millis(to.saturating_sub(from).div_ceil(1_000_000));
        match self {
            Self::Raised(alarm) => {
                write!(f, "{}, for {:?} at most: {}", alarm.text(), span(alarm.since, alarm.noticed), alarm.why)
            }
            Self::Over(Gap { kind: Kind::Off, from, to }) => {
                write!(f, "hooks run again: they did not for {:?} at most", span(*from, *to))
            }
            Self::Over(Gap { kind: Kind::Silent, from, to }) => {
                write!(f, "hooks run: the canary answers again after {:?}", span(*from, *to))
            }
            Self::Over(Gap { kind: Kind::Unwatched, from, to }) => {
                write!(f, "hooks run; nobody watched them for {:?}: no daemon ran, or it was frozen", span(*from, *to))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn raise(watch: &mut Watch, kind: Kind, noticed: u64) -> Option<Change> {
        watch.raise(kind, noticed, || "why".to_owned())
    }

    #[test]
    fn tells_a_gap_from_the_last_denial_to_the_next() {
        let mut watch = Watch::new((0, 0), SECOND);
        assert_eq!(watch.denied(SECOND, SECOND + 1), None);
        assert_eq!(watch.denied(2 * SECOND, 2 * SECOND + 1), None);
        let raised = raise(&mut watch, Kind::Off, 2 * SECOND + SECOND / 4).unwrap();
        let text = raised.to_string();
        assert_eq!(text, "HOOKS DO NOT RUN: nothing is enforced, for 250ms at most: why");
        // It is reported once.
        assert_eq!(raise(&mut watch, Kind::Off, 3 * SECOND), None);
        assert_eq!(raise(&mut watch, Kind::Silent, 3 * SECOND), None);
        let over = watch.denied(9 * SECOND, 9 * SECOND + 5).unwrap();
        assert_eq!(over, Change::Over(Gap { kind: Kind::Off, from: 2 * SECOND, to: 9 * SECOND + 5 }));
        assert_eq!(watch.denied(10 * SECOND, 10 * SECOND), None);
    }

    #[test]
    fn takes_a_machine_that_sleeps_for_no_gap() {
        let mut watch = Watch::new((0, 0), SECOND);
        watch.slept(100 * SECOND);
        assert_eq!(watch.denied(102 * SECOND, 102 * SECOND), None);
    }

    #[test]
    fn tells_silence_and_what_is_worse() {
        let mut watch = Watch::new((0, 0), SECOND);
        assert!(matches!(raise(&mut watch, Kind::Silent, 2 * SECOND), Some(Change::Raised(_))));
        assert!(matches!(raise(&mut watch, Kind::Off, 3 * SECOND), Some(Change::Raised(_))));
        let over = watch.denied(4 * SECOND, 4 * SECOND).unwrap();
        assert_eq!(over, Change::Over(Gap { kind: Kind::Off, from: SECOND, to: 4 * SECOND }));
    }

    #[test]
    fn goes_on_where_an_earlier_daemon_has_ended() {
        // It had seen hooks off.
        let mut watch = Watch::new((5 * SECOND, 6 * SECOND), 20 * SECOND);
        assert_eq!(watch.alarm().map(|alarm| alarm.since), Some(5 * SECOND));
        let over = watch.denied(21 * SECOND, 21 * SECOND);
        assert_eq!(over, Some(Change::Over(Gap { kind: Kind::Off, from: 5 * SECOND, to: 21 * SECOND })));
        // It had seen nothing, and nobody has looked since.
        let mut watch = Watch::new((5 * SECOND, 0), 20 * SECOND);
        let over = watch.denied(20 * SECOND, 20 * SECOND);
        assert_eq!(over, Some(Change::Over(Gap { kind: Kind::Unwatched, from: 5 * SECOND, to: 20 * SECOND })));
        let mut watch = Watch::new((5 * SECOND, 0), 6 * SECOND);
        assert_eq!(watch.denied(6 * SECOND, 6 * SECOND), None);
    }
}
