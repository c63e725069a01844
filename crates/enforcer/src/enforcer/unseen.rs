//! Files that came into memory while hooks did not run. They have no label there, and get one when hooks run again.

use nix::time::{ClockId, clock_gettime};

use super::{Enforcer, EnforcerError, labelling::Part};
use crate::{
    canary::{self, Gap},
    labels::object::Moment,
};

/// A file's times are those of the last tick, which may have been before the gap. This is the tick of the slowest
/// kernels, in nanoseconds.
const TICK: Moment = 10_000_000;

/// What was done about files without a label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many files have a label now.
    pub labelled: u64,
    /// How many files are unlabelled, because they were made or moved during the gap.
    pub lost: u64,
    /// What could not be labelled, with the reasons.
    pub messages: Vec<String>,
}

impl Enforcer {
    /// Labels files that no hook has labelled during a gap that has ended. A file that has a label keeps it.
    pub fn label_unseen(&mut self, gap: &Gap) -> Result<Seen, EnforcerError> {
        // File systems that were mounted meanwhile are labelled as they would have been.
        let mut messages = self.catch_up();
        let clock =
            clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |now| now.tv_sec() * 1_000_000_000 + now.tv_nsec());
        let booted = clock - Moment::try_from(canary::now()).unwrap_or(Moment::MAX);
        let moment = |since_boot: u64| booted.saturating_add(Moment::try_from(since_boot).unwrap_or(Moment::MAX));
        let report = self.label_files(Part::Unseen(moment(gap.from) - TICK, moment(gap.to)))?;
        messages.extend(report.messages);
        Ok(Seen { labelled: report.unseen.saturating_sub(report.lost), lost: report.lost, messages })
    }
}
