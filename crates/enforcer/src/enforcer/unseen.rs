//! What came into memory while hooks did not run: it has no label there, and is labelled once they run again.

use nix::time::{ClockId, clock_gettime};

use super::{Enforcer, EnforcerError, labelling::Part};
use crate::{
    canary::{self, Gap},
    labels::object::Moment,
};

/// Files' times are those of the last tick, which may have been before the gap: that of the slowest kernels.
const TICK: Moment = 10_000_000;

/// What was done about files that had no label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// So many have one now.
    pub labelled: u64,
    /// So many are unlabelled: they were made meanwhile, or moved.
    pub lost: u64,
    /// What could not be labelled.
    pub told: Vec<String>,
}

impl Enforcer {
    /// Labels what no hook has labelled in a gap that is over; what has a label keeps it.
    pub fn label_unseen(&mut self, gap: &Gap) -> Result<Seen, EnforcerError> {
        // What was mounted meanwhile is labelled as it would have been.
        let mut told = self.catch_up();
        let clock =
            clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |now| now.tv_sec() * 1_000_000_000 + now.tv_nsec());
        let booted = clock - Moment::try_from(canary::now()).unwrap_or(Moment::MAX);
        let moment = |since_boot: u64| booted.saturating_add(Moment::try_from(since_boot).unwrap_or(Moment::MAX));
        let report = self.label_files(Part::Unseen(moment(gap.from) - TICK, moment(gap.to)))?;
        told.extend(report.told);
        Ok(Seen { labelled: report.unseen.saturating_sub(report.lost), lost: report.lost, told })
    }
}
