//! Labels that must be written to their files, and when. New ones are written at once; those that could not be written
//! are tried again later. Only a file system that has gone makes it go through all labels.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use crate::labels::{Sid, identity::Identity, note::Uuid};

/// How many labels are written together. It is limited so that a new label never waits long.
pub const BATCH: usize = 1024;
/// How long a label waits that could not be written, at first and at most. The time doubles with each attempt.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);

/// A label that must be written to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwritten {
    /// SID of the label.
    pub sid: Sid,
    /// UUID of the file system of the file.
    pub uuid: Uuid,
}

#[derive(Debug)]
struct Entry {
    label: Unwritten,
    place: When,
    delay: Duration,
    /// Whether a write was tried and the file was not found.
    missed: bool,
    /// Whether a write was tried and failed.
    failed: bool,
    noted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    New(u64),
    Trying,
    Waiting(Instant),
}

/// The labels of one file system.
#[derive(Debug, Default)]
struct Queue {
    new: BTreeMap<u64, Identity>,
    waiting: BTreeSet<(Instant, Identity)>,
    /// Labels that would be lost if the machine failed now.
    unnoted: HashSet<Identity>,
}

/// The labels that must be written.
#[derive(Debug, Default)]
pub struct Backlog {
    queues: BTreeMap<u32, Queue>,
    entries: HashMap<Identity, Entry>,
    /// Labels that could not be written since the last call of `take_failed`.
    failures: Vec<Identity>,
    failed: usize,
    added: u64,
}

impl Backlog {
    /// Adds a label, in place of an older one of the file. `noted`: it is on disk elsewhere.
    pub fn add(&mut self, file: Identity, label: Unwritten, noted: bool) {
        self.remove(file);
        self.added += 1;
        let queue = self.queues.entry(file.device).or_default();
        queue.new.insert(self.added, file);
        if !noted {
            queue.unnoted.insert(file);
        }
        let entry =
            Entry { label, place: When::New(self.added), delay: MIN_RETRY_DELAY, missed: false, failed: false, noted };
        self.entries.insert(file, entry);
    }

    /// Removes a label that was written, or whose file is gone. Returns it, and whether it was noted; `None`: it is not
    /// here.
    pub fn remove(&mut self, file: Identity) -> Option<(Unwritten, bool)> {
        let entry = self.entries.remove(&file)?;
        let queue = self.queues.entry(file.device).or_default();
        match entry.place {
            When::New(number) => drop(queue.new.remove(&number)),
            When::Waiting(due) => drop(queue.waiting.remove(&(due, file))),
            When::Trying => {}
        }
        queue.unnoted.remove(&file);
        self.failed -= usize::from(entry.failed);
        Some((entry.label, entry.noted))
    }

    /// File systems of which something is to be written now.
    pub fn ready(&self, now: Instant) -> Vec<u32> {
        let is_due = |queue: &Queue| queue.waiting.first().is_some_and(|(due, _)| *due <= now);
        let ready = self.queues.iter().filter(|(_, queue)| !queue.new.is_empty() || is_due(queue));
        ready.map(|(device, _)| *device).collect()
    }

    /// The labels of a file system that are to be written now, new ones first. They count as being tried from here on.
    /// If [`Self::is_safe`] but for these, all others are on disk, in their files or elsewhere.
    pub fn take(&mut self, device: u32, now: Instant) -> Vec<(Identity, Unwritten)> {
        let Some(queue) = self.queues.get_mut(&device) else { return Vec::new() };
        let mut taken = Vec::new();
        while taken.len() < BATCH {
            let due = queue.waiting.first().copied().filter(|(due, _)| *due <= now);
            let Some((number, file)) = queue.new.first_key_value().map(|(number, file)| (*number, *file)) else {
                let Some((due, file)) = due else { break };
                queue.waiting.remove(&(due, file));
                taken.push(file);
                continue;
            };
            queue.new.remove(&number);
            taken.push(file);
        }
        let trying = |file: Identity| {
            let entry = self.entries.get_mut(&file)?;
            entry.place = When::Trying;
            Some((file, entry.label))
        };
        taken.into_iter().filter_map(trying).collect()
    }

    /// The label that was tried, unless another one has replaced it.
    fn tried(&mut self, file: Identity, sid: Sid) -> Option<&mut Entry> {
        self.entries.get_mut(&file).filter(|entry| entry.place == When::Trying && entry.label.sid == sid)
    }

    /// A label that was tried was written, or its file is gone. Returns it, and whether it was noted.
    pub fn done(&mut self, file: Identity, sid: Sid) -> Option<(Unwritten, bool)> {
        self.tried(file, sid)?;
        self.remove(file)
    }

    /// A label that was tried waits until others are written.
    pub fn postpone(&mut self, file: Identity, sid: Sid, now: Instant) {
        let others = self.queues.get(&file.device).is_some_and(|queue| !queue.new.is_empty());
        self.wait(file, sid, if others { now } else { now + MIN_RETRY_DELAY });
    }

    fn wait(&mut self, file: Identity, sid: Sid, due: Instant) {
        let Some(entry) = self.tried(file, sid) else { return };
        entry.place = When::Waiting(due);
        self.queues.entry(file.device).or_default().waiting.insert((due, file));
    }

    /// The file of a label that was tried was not found. Returns whether that is certain, because it was not found
    /// before either. While a file is being deleted, it is not found for a moment before the programs notice.
    pub fn miss(&mut self, file: Identity, sid: Sid, now: Instant) -> bool {
        let Some(entry) = self.tried(file, sid) else { return false };
        let believed = std::mem::replace(&mut entry.missed, true);
        if !believed {
            self.wait(file, sid, now + MIN_RETRY_DELAY);
        }
        believed
    }

    /// A label that was tried could not be written. It is tried again after twice the time before.
    pub fn fail(&mut self, file: Identity, sid: Sid, now: Instant) {
        let Some(entry) = self.tried(file, sid) else { return };
        let due = now + entry.delay;
        entry.delay = (entry.delay * 2).min(MAX_RETRY_DELAY);
        let first = !std::mem::replace(&mut entry.failed, true);
        self.failed += usize::from(first);
        self.failures.push(file);
        self.wait(file, sid, due);
    }

    /// Records that a label is on disk elsewhere.
    pub fn noted(&mut self, file: Identity) {
        if let Some(entry) = self.entries.get_mut(&file) {
            entry.noted = true;
            self.queues.entry(file.device).or_default().unnoted.remove(&file);
        }
    }

    /// Takes the labels that could not be written since the last call, and that are nowhere on disk.
    pub fn take_failed(&mut self) -> Vec<(Identity, Unwritten)> {
        let failures = std::mem::take(&mut self.failures).into_iter();
        let label = |file| self.entries.get(&file).filter(|entry| !entry.noted).map(|entry| (file, entry.label));
        failures.filter_map(label).collect()
    }

    /// All labels that are nowhere on disk.
    pub fn all_unnoted(&self) -> Vec<(Identity, Unwritten)> {
        self.queues.keys().flat_map(|device| self.unnoted(*device)).collect()
    }

    /// The labels of a file system that are nowhere on disk.
    pub fn unnoted(&self, device: u32) -> impl Iterator<Item = (Identity, Unwritten)> {
        let files = self.queues.get(&device).into_iter().flat_map(|queue| &queue.unnoted);
        files.filter_map(|file| Some((*file, self.entries.get(file)?.label)))
    }

    /// Whether the labels of a file system are on disk, in their files or elsewhere, except those given.
    #[must_use]
    pub fn is_safe(&self, device: u32, except: &[(Identity, Unwritten)]) -> bool {
        self.queues.get(&device).is_none_or(|queue| {
            let unnoted = except.iter().filter(|(file, _)| queue.unnoted.contains(file)).count();
            queue.unnoted.len() == unnoted
        })
    }

    /// Whether the labels of a file system are in their files.
    #[must_use]
    pub fn is_written(&self, device: u32) -> bool {
        self.entries.keys().all(|file| file.device != device)
    }

    /// Makes all labels due that wait for another try.
    pub fn hurry(&mut self, now: Instant) {
        for queue in self.queues.values_mut() {
            for (due, file) in std::mem::take(&mut queue.waiting) {
                let due = due.min(now);
                queue.waiting.insert((due, file));
                if let Some(entry) = self.entries.get_mut(&file) {
                    entry.place = When::Waiting(due);
                }
            }
        }
    }

    /// Whether the label of a file is on disk, in the file or elsewhere.
    #[must_use]
    pub fn is_on_disk(&self, file: Identity) -> bool {
        self.entries.get(&file).is_none_or(|entry| entry.noted)
    }

    /// Removes all labels of a file system that has gone.
    pub fn remove_all(&mut self, device: u32) -> Vec<(Identity, Unwritten)> {
        let files = self.entries.keys().filter(|file| file.device == device).copied();
        let files: Vec<Identity> = files.collect();
        let removed = files.into_iter().filter_map(|file| Some((file, self.remove(file)?.0))).collect();
        self.queues.remove(&device);
        removed
    }

    /// How many labels could not be written when last tried.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64) -> Identity {
        Identity { device: 7, inode, subvolume: 0, generation: 1 }
    }

    const LABEL: Unwritten = Unwritten { sid: 40, uuid: [1; 16] };

    #[test]
    fn gives_a_new_label_first_however_many_cannot_be_written() {
        let (mut backlog, now) = (Backlog::default(), Instant::now());
        (0..100_000).for_each(|inode| backlog.add(file(inode), LABEL, false));
        let mut taken = 0;
        while !backlog.ready(now).is_empty() {
            for (file, label) in backlog.take(7, now) {
                backlog.fail(file, label.sid, now);
                taken += 1;
            }
        }
        assert_eq!((taken, backlog.failed()), (100_000, 100_000));
        backlog.add(file(200_000), LABEL, false);
        assert_eq!(backlog.take(7, now), [(file(200_000), LABEL)], "nothing else is looked at");
        backlog.remove(file(200_000));
        let later = now + MIN_RETRY_DELAY;
        backlog.add(file(200_001), LABEL, false);
        let taken = backlog.take(7, later);
        assert_eq!((taken.len(), taken[0].0), (BATCH, file(200_001)), "with them it is the first");
    }

    #[test]
    fn tries_everything_at_once_before_the_end() {
        let (mut backlog, now) = (Backlog::default(), Instant::now());
        backlog.add(file(1), LABEL, false);
        backlog.take(7, now);
        assert!(!backlog.miss(file(1), LABEL.sid, now) && backlog.ready(now).is_empty());
        backlog.hurry(now);
        assert_eq!(backlog.take(7, now), [(file(1), LABEL)]);
        backlog.noted(file(1));
        assert!(backlog.is_safe(7, &[]) && !backlog.is_written(7) && backlog.is_written(8));
        assert!(backlog.done(file(1), LABEL.sid).is_some() && backlog.is_written(7));
    }

    #[test]
    fn waits_longer_each_time_for_what_cannot_be_written() {
        let (mut backlog, mut now) = (Backlog::default(), Instant::now());
        backlog.add(file(1), LABEL, false);
        let mut delays = Vec::new();
        for _ in 0..12 {
            let [(taken, label)] = backlog.take(7, now)[..] else { panic!("it is due") };
            backlog.fail(taken, label.sid, now);
            assert_eq!(backlog.take(7, now), []);
            let (due, _) = *backlog.queues[&7].waiting.first().unwrap();
            delays.push((due - now).as_secs());
            now = due;
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    }

    #[test]
    fn believes_that_a_file_is_not_found_when_it_is_not_found_twice() {
        let (mut backlog, now) = (Backlog::default(), Instant::now());
        backlog.add(file(1), LABEL, false);
        assert!(!backlog.miss(file(1), LABEL.sid, now), "it was not tried");
        backlog.take(7, now);
        backlog.add(file(2), LABEL, false);
        assert!(!backlog.miss(file(1), LABEL.sid, now));
        assert_eq!(backlog.take(7, now), [(file(2), LABEL)], "it is tried again later");
        assert_eq!(backlog.failed(), 0);
        assert_eq!(backlog.take(7, now + MIN_RETRY_DELAY), [(file(1), LABEL)]);
        assert!(backlog.miss(file(1), LABEL.sid, now));
    }

    #[test]
    fn holds_a_label_until_it_is_written_noted_or_replaced() {
        let (mut backlog, now) = (Backlog::default(), Instant::now());
        backlog.add(file(1), LABEL, false);
        assert!(!backlog.is_safe(7, &[]) && backlog.is_safe(8, &[]));
        assert!(!backlog.is_on_disk(file(1)) && backlog.is_on_disk(file(2)));
        let taken = backlog.take(7, now);
        assert!(backlog.is_safe(7, &taken));
        let newer = Unwritten { sid: 41, ..LABEL };
        backlog.add(file(1), newer, false);
        // What was tried before it says nothing of it.
        backlog.fail(file(1), LABEL.sid, now);
        assert_eq!((backlog.failed(), backlog.take(7, now)), (0, vec![(file(1), newer)]));
        backlog.fail(file(1), newer.sid, now);
        assert_eq!(backlog.unnoted(7).collect::<Vec<_>>(), [(file(1), newer)]);
        backlog.noted(file(1));
        assert!(backlog.is_safe(7, &[]) && backlog.is_on_disk(file(1)) && backlog.failed() == 1);
        assert_eq!(backlog.done(file(1), newer.sid), None, "it was not tried again");
        assert_eq!(backlog.remove(file(1)), Some((newer, true)));
        assert_eq!((backlog.remove(file(1)), backlog.failed(), backlog.remove_all(7)), (None, 0, vec![]));
    }
}
