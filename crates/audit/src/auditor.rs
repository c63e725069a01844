//! Writes each log entry when it is due.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::{
    Denial, Entry, Load, Lost, Reason,
    sink::Sink,
    storm::{Limits, Storm},
};

/// Merges equal denials and writes them to the sink.
#[derive(Debug)]
pub(super) struct Auditor {
    sink: Sink,
    storm: Storm,
    started: Instant,
}

impl Auditor {
    /// An auditor that writes to `sink`.
    pub(super) fn new(sink: Sink, limits: Limits) -> Self {
        let started = Instant::now();
        Self { sink, storm: Storm::new(limits, started.elapsed()), started }
    }

    /// Takes a denial. It is written now, or counted with others that equal it.
    pub(super) fn denial(&mut self, denial: Denial) {
        if let Some(denial) = self.storm.offer(self.started.elapsed(), denial) {
            self.sink.write(&Entry::Avc(denial));
        }
    }

    /// Writes that `count` events were lost.
    pub(super) fn lost(&mut self, reason: Reason, count: u64) {
        if count > 0 {
            self.sink.write(&Entry::Lost(Lost { time: now(), count, reason }));
        }
    }

    /// Writes what became of a generation.
    pub(super) fn load(&mut self, load: Load) {
        self.sink.write(&Entry::Load(Load { time: now(), ..load }));
    }

    /// Writes the counts of merged denials that are due.
    pub(super) fn tick(&mut self) {
        let due = self.storm.due(self.started.elapsed());
        self.write(due);
    }

    /// Whether nothing becomes due without a further denial.
    pub(super) fn is_calm(&self) -> bool {
        self.storm.is_calm()
    }

    /// The sink that it writes to.
    pub(super) fn sink(&self) -> &Sink {
        &self.sink
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
    /// Writes the counts that are not due yet.
    fn drop(&mut self) {
        let rest = self.storm.finish();
        self.write(rest);
    }
}

/// The time now, in milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tollgate_abi::enforcer::tg_event;

    use super::*;
    use crate::sink::JSON;

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
        let denial = Denial::new(&tg_event { denied: 1, class: 8, ..tg_event::default() }, 0, |_| None);
        let entries = left(|auditor| {
            (0..5).for_each(|_| auditor.denial(denial.clone()));
            auditor.tick();
        });
        let [Entry::Avc(first), Entry::Avc(rest)] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((first.repeated, rest.repeated), (0, 4));
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
