//! Gaps in which hooks did not run: what the canary reports, and what is done about it.

use std::{
    collections::VecDeque,
    os::fd::{AsRawFd, RawFd},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tollgate_audit::{Dispatcher, Reason};
use tollgate_client::status::{AlarmStatus, GapStatus, Kind, Slipped};
use tracing::{error, warn};

use super::machine::Ready;
use crate::{
    canary::{self, Canary, Change, Gap},
    enforcer::{Enforcer, Seen},
    programs::{Pins, ProgramsError},
};

/// How many gaps that have ended are remembered.
const MAX_REMEMBERED: usize = 8;

/// The canary, and what it has reported.
#[derive(Debug)]
pub(super) struct Gaps {
    /// `None` while enforcement ends.
    canary: Option<Canary>,
    over: VecDeque<GapStatus>,
    seen: u64,
}

impl Gaps {
    /// Starts the canary.
    pub(super) fn watch(pins: &Pins) -> Result<Self, ProgramsError> {
        Ok(Self { canary: Some(Canary::start(pins)?), over: VecDeque::new(), seen: 0 })
    }

    /// Ends the canary.
    pub(super) fn end(&mut self) {
        self.canary = None;
    }

    /// Starts it again because enforcement could not be ended.
    pub(super) fn resume(&mut self, pins: &Pins) {
        match Canary::start(pins) {
            Ok(canary) => self.canary = Some(canary),
            Err(cause) => error!(%cause, "no canary checks whether hooks run: {cause}"),
        }
    }

    pub(super) fn wakes(&self) -> Option<RawFd> {
        self.canary.as_ref().map(|canary| canary.wakes().as_raw_fd())
    }

    /// Handles the changes that the canary has found.
    pub(super) fn look(&mut self, enforcer: &mut Enforcer, audit: &mut Dispatcher, ready: &Ready) {
        // This comes before the changes are read. A gap that has ended by now is handled below.
        enforcer.hold_checkpoints(
            self.canary.as_ref().and_then(Canary::alarm).is_some_and(|alarm| alarm.kind == Kind::Off),
        );
        let canary = self.canary.as_ref().filter(|_| ready.has(self.wakes()));
        let changes = canary.map(Canary::changes).unwrap_or_default();
        for change in changes {
            match change {
                Change::Raised(alarm) if alarm.kind == Kind::Off => audit.lost(Reason::HooksOff, 1),
                Change::Raised(_) => {}
                Change::Over(gap) => self.end_of(&gap, enforcer, audit),
            }
        }
    }

    fn end_of(&mut self, gap: &Gap, enforcer: &mut Enforcer, audit: &mut Dispatcher) {
        let processes = |what, found: Result<Vec<Slipped>, _>| {
            found.unwrap_or_else(|cause| {
                warn!(%cause, "{what} is not known: {cause}");
                Vec::new()
            })
        };
        let slipped = processes("which processes left their confinement", enforcer.after_gap(gap));
        let not_entered = processes("which processes did not enter their domain", enforcer.not_entered(gap));
        if gap.kind == Kind::Off {
            enforcer.state().set_canary_granted(0);
            label_unseen(gap, enforcer);
        }
        for some in &slipped {
            warn!("while hooks did not run: {some}");
            audit.lost(Reason::HooksOff, some.processes.len() as u64);
        }
        for some in &not_entered {
            warn!("while hooks did not run, a domain was not entered: {some}: restart them");
        }
        // A daemon that took over and found nobody has nothing to report.
        if gap.kind == Kind::Unwatched && slipped.is_empty() {
            return;
        }
        self.seen += 1;
        self.over.truncate(MAX_REMEMBERED - 1);
        let (from, to) = (time(gap.from), time(gap.to));
        self.over.push_front(GapStatus { kind: gap.kind, from, to, slipped, not_entered });
    }

    /// The problem that lasts.
    pub(super) fn alarm(&self, enforcer: &mut Enforcer) -> Option<AlarmStatus> {
        let alarm = self.canary.as_ref()?.alarm()?;
        let slipped = enforcer.lost_since(alarm.since).unwrap_or_else(|cause| {
            warn!(%cause, "which processes left their confinement is not known: {cause}");
            Vec::new()
        });
        let text = format!("{}: {}", alarm.text(), alarm.why);
        Some(AlarmStatus { kind: alarm.kind, since: time(alarm.since), text, slipped })
    }

    /// The gaps that have ended, the last one first.
    pub(super) fn over(&self) -> Vec<GapStatus> {
        self.over.iter().cloned().collect()
    }

    /// How many gaps there were.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }
}

/// Labels files that came into memory during a gap.
fn label_unseen(gap: &Gap, enforcer: &mut Enforcer) {
    match enforcer.label_unseen(gap) {
        Ok(Seen { labelled, lost, messages }) => {
            messages.iter().for_each(|failure| warn!("not labelled: {failure}"));
            warn!(
                "while hooks did not run, {labelled} files came into memory: they have labels by now; {lost} were made \
                 or moved, and are unlabelled: `tollgate label lost`"
            );
        }
        Err(cause) => {
            warn!(%cause, "files that came into memory while hooks did not run are not labelled: {cause}")
        }
    }
}

/// Turns nanoseconds since boot into seconds since 1970.
fn time(since_boot: u64) -> u64 {
    let ago = Duration::from_nanos(canary::now().saturating_sub(since_boot));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(ago).as_secs()
}
