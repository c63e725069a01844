//! What is offered and not believed, such as a forged manifest. Whoever offers it gets an error, and the audit a record:
//! one per second at most, with the number of the others, so that no agent fills the log.

use std::{
    mem,
    time::{Duration, Instant},
};

use tollgate_audit::Load;
use tollgate_client::protocol::Refusal;
use tracing::warn;

use super::Fleet;
use crate::daemon::machine::Machine;

/// The least time between two records.
const PAUSE: Duration = Duration::from_secs(1);

/// Offers that were not believed, and are not recorded yet.
#[derive(Debug, Default)]
pub(super) struct Disbelieved {
    recorded: Option<Instant>,
    /// How many, and why the last one was not.
    count: u64,
    why: String,
}

impl Disbelieved {
    fn add(&mut self, why: String) {
        self.count += 1;
        self.why = why;
    }

    /// What is recorded now; `None`: nothing, or not yet.
    fn due(&mut self, now: Instant) -> Option<String> {
        let is_soon = self.recorded.is_some_and(|last| now.saturating_duration_since(last) < PAUSE);
        if self.count == 0 || is_soon {
            return None;
        }
        self.recorded = Some(now);
        let (others, why) = (mem::take(&mut self.count) - 1, mem::take(&mut self.why));
        Some(if others == 0 { why } else { format!("{why} ({others} more before it)") })
    }
}

impl Fleet {
    /// Counts an offer that is not believed, and returns why.
    pub(super) fn disbelieve(&mut self, machine: &mut dyn Machine, refusal: Refusal) -> Refusal {
        self.disbelieved.add(refusal.text.clone());
        self.record_disbelieved(machine, Instant::now());
        refusal
    }

    /// Records what is due.
    pub(super) fn record_disbelieved(&mut self, machine: &mut dyn Machine, now: Instant) {
        let Some(why) = self.disbelieved.due(now) else { return };
        warn!("what was offered as the fleet's is refused: {why}");
        machine.record(Load { time: 0, generation: None, mode: None, success: false, cause: Some(why) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_one_offer_per_second_and_counts_all() {
        let (mut offers, begun) = (Disbelieved::default(), Instant::now());
        let mut recorded = Vec::new();
        for tenth in 0..25 {
            let now = begun + Duration::from_millis(100 * tenth);
            if tenth < 15 {
                offers.add(format!("offer {tenth}"));
            }
            recorded.extend(offers.due(now));
        }
        assert_eq!(recorded, ["offer 0", "offer 10 (9 more before it)", "offer 14 (3 more before it)"]);
    }
}
