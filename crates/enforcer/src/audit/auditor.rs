//! The daemon's audit: events in, entries out.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use tollgate_abi::enforcer::tg_event;

use super::{
    Denial, Entry, Lost, Reason,
    sink::{Errors, Sink},
    storm::{Limits, Storm},
};

/// Turns events into entries, merges them, and writes them. In a thread of its own: the kernel's audit may make it wait.
#[derive(Debug)]
pub struct Auditor {
    sink: Sink,
    storm: Storm,
    started: Instant,
}

impl Auditor {
    /// That writes to `sink`.
    #[must_use]
    pub fn new(sink: Sink, limits: Limits) -> Self {
        let started = Instant::now();
        Self { sink, storm: Storm::new(limits, started.elapsed()), started }
    }

    /// An event of kind TG_EVENT_AVC; `context` gives a SID's text in the generation of the event.
    pub fn event(&mut self, event: &tg_event, context: impl FnMut(u32) -> Option<String>) {
        let denial = Denial::new(event, booted(), context);
        if let Some(denial) = self.storm.offer(self.started.elapsed(), denial) {
            self.sink.write(&Entry::Avc(denial));
        }
        self.tick();
    }

    /// So many events that nobody has seen, such as the kernel's counters tell.
    pub fn lost(&mut self, reason: Reason, count: u64) {
        if count > 0 {
            self.sink.write(&Entry::Lost(Lost { time: now(), count, reason }));
        }
    }

    /// Writes the counts of merged denials that are due; call it a few times a second.
    pub fn tick(&mut self) {
        let due = self.storm.due(self.started.elapsed());
        self.write(due);
    }

    /// Writes that failed.
    #[must_use]
    pub fn errors(&self) -> &Errors {
        self.sink.errors()
    }

    /// Whether the kernel's audit takes the records.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.sink.is_kernel()
    }

    fn write(&mut self, entries: Vec<Entry>) {
        for mut entry in entries {
            if let Entry::Lost(lost) = &mut entry {
                lost.time = now();
            }
            self.sink.write(&entry);
        }
    }
}

impl Drop for Auditor {
    /// Tells the counts that are not due yet.
    fn drop(&mut self) {
        let rest = self.storm.finish();
        self.write(rest);
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// When the machine booted, in nanoseconds since 1970, by the clock as it is set now.
fn booted() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let up = clock_gettime(ClockId::CLOCK_BOOTTIME).map(std::time::Duration::from).unwrap_or_default();
    u64::try_from(since.saturating_sub(up).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::audit::sink::JSON;

    /// The entries that a stay of an auditor leaves.
    fn left(stay: impl FnOnce(&mut Auditor)) -> Vec<Entry> {
        let folder = tempfile::tempdir().unwrap();
        let mut auditor = Auditor::new(Sink::files(folder.path()).unwrap(), Limits::default());
        stay(&mut auditor);
        drop(auditor);
        let text = fs::read_to_string(folder.path().join(JSON)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn tells_at_the_end_what_it_has_merged() {
        let up = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap();
        let time = std::time::Duration::from(up).as_nanos() as u64;
        let event = tg_event { denied: 1, class: 8, time, ..tg_event::default() };
        let entries = left(|auditor| (0..5).for_each(|_| auditor.event(&event, |sid| Some(sid.to_string()))));
        let [Entry::Avc(first), Entry::Avc(rest)] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((first.repeated, rest.repeated), (0, 4));
        assert!(now().abs_diff(first.time) < 60_000, "{first:?}");
    }

    #[test]
    fn tells_losses_with_their_time_and_none_where_none_were() {
        let entries = left(|auditor| {
            auditor.lost(Reason::RingBuffer, 0);
            auditor.lost(Reason::KernelLimit, 3);
        });
        let [Entry::Lost(lost)] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((lost.count, lost.reason), (3, Reason::KernelLimit));
        assert!(now().abs_diff(lost.time) < 60_000);
    }
}
