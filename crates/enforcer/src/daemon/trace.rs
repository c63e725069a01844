//! The last packets that were denied or dropped, for `tollgate net trace`.

use std::collections::VecDeque;

use tollgate_abi::enforcer::{TG_EVENT_PACKET, TG_OBJECT_PACKET, tg_event};
use tollgate_audit::{Denial, booted};
use tollgate_client::network::{FATES, Traced};

/// How many are kept. Who reads every second misses none of an audited storm (1,000 events per second).
const KEPT: usize = 2048;

/// Packets that were denied or dropped, the last ones.
#[derive(Debug, Default)]
pub(super) struct Trace {
    last: u64,
    entries: VecDeque<Traced>,
}

impl Trace {
    /// Takes an event, if it is about a packet. `context` returns the text of a SID.
    pub(super) fn event(&mut self, event: &tg_event, context: impl FnMut(u32) -> Option<String>) {
        if event.object != TG_OBJECT_PACKET {
            return;
        }
        let denial = Denial::new(event, booted(), context);
        let dropped = event.kind == TG_EVENT_PACKET;
        let fate = FATES.iter().find(|fate| dropped && fate.number == event.number);
        let text = if dropped { denial.object.to_string().trim_start().to_owned() } else { denial.to_string() };
        self.last += 1;
        let fate = fate.map(|fate| fate.name.to_owned());
        self.entries.push_back(Traced { number: self.last, time: denial.time, fate, text });
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }

    /// Those after the one with this number.
    pub(super) fn after(&self, number: u64) -> Vec<Traced> {
        self.entries.iter().filter(|entry| entry.number > number).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_abi::enforcer::{TG_DROPPED_FORGED, TG_EVENT_AVC, TG_OBJECT_INODE};

    use super::*;

    fn event(kind: u32, object: u32) -> tg_event {
        tg_event { kind, object, number: TG_DROPPED_FORGED, ..tg_event::default() }
    }

    #[test]
    fn keeps_packets_and_nothing_else() {
        let mut trace = Trace::default();
        trace.event(&event(TG_EVENT_AVC, TG_OBJECT_INODE), |_| None);
        trace.event(&event(TG_EVENT_PACKET, TG_OBJECT_PACKET), |_| None);
        trace.event(&event(TG_EVENT_AVC, TG_OBJECT_PACKET), |_| None);
        let fates: Vec<Option<String>> = trace.after(0).into_iter().map(|entry| entry.fate).collect();
        assert_eq!(fates, [Some("dropped_forged".to_owned()), None]);
        assert_eq!(trace.after(1).len(), 1);
        assert!(trace.after(2).is_empty());
    }

    #[test]
    fn forgets_the_oldest() {
        let mut trace = Trace::default();
        (0..KEPT + 3).for_each(|_| trace.event(&event(TG_EVENT_PACKET, TG_OBJECT_PACKET), |_| None));
        let kept = trace.after(0);
        assert_eq!((kept.len(), kept[0].number), (KEPT, 4));
    }
}
