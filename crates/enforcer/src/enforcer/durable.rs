//! Labels that must be written to files. They go from the kernel's map to threads that write them, or, if that fails,
//! to a note on disk.

mod pass;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs, io, mem,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use pass::hangs;
use tollgate_abi::enforcer::{SECINITSID_SECURITY, SECINITSID_UNLABELED};
use tracing::{error, warn};

use super::{Enforcer, EnforcerError, checkpoints::is_ordered_there, object::labelling};
use crate::{
    contexts::Sid,
    labels::{
        backlog::{Backlog, Unwritten},
        durable::Written,
        identity::Identity,
        maps::{Maps, When, is_of},
        note::{Notes, Place, Uuid},
        notebook::Notebook,
        recall::Recall,
        writers::{Done, Writers},
    },
};

/// A file system that completes no write for this long is taken to hang. Nobody waits for it, and its labels are noted.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a request to write all labels waits for one file system that seems to hang.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an ending daemon writes labels.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for new labels, most of which are written within it, and the interval at which to check.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(50);
const SETTLE_INTERVAL: Duration = Duration::from_millis(2);
/// After what time a note that could not be written is tried again.
const NOTE_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The labels that must be written, and what is known about them.
#[derive(Debug)]
pub(super) struct Durable {
    backlog: Backlog,
    writers: Writers,
    notes: Notes,
    notebook: Option<Notebook>,
    /// Numbers of orders to write notes, with the files that the notes are about.
    ordered: VecDeque<(u64, Vec<Identity>)>,
    /// Files whose notes could not be written, and when to try again.
    unnoted: Vec<Identity>,
    again: Instant,
    /// Files whose labels were noted before this daemon began. If one is not found, it no longer exists.
    recalled: HashSet<Identity>,
    /// Labels that a client waited for, and no longer does.
    abandoned: HashMap<u64, (OwnedFd, u32, bool)>,
    /// Number of labels that were lost: their file system is gone, and nothing could be noted about them.
    lost: u64,
    /// Whether the map may have labels that no event announced.
    look: bool,
    /// Devices for which a failure was reported. Others there are only counted.
    reported: HashSet<u32>,
    /// Failures that have not been reported yet, including those that came while something else was waited for.
    pub(super) unreported: Vec<String>,
}

impl Durable {
    /// Opens the notes in a directory.
    pub(super) fn open(folder: &Path) -> Result<Self, EnforcerError> {
        let writers = Writers::new().map_err(labelling)?;
        let (notebook, notes) = match Notebook::open(folder) {
            Ok((notebook, notes, refused)) => {
                if refused > 0 {
                    warn!("{refused} lines of {}/unwritten cannot be read", folder.display());
                }
                (Some(notebook), notes)
            }
            Err(cause) => {
                let folder = folder.display();
                error!(
                    path = %folder,
                    %cause,
                    "labels that cannot be written to files cannot be noted in {folder}: {cause}"
                );
                (None, Notes::default())
            }
        };
        Ok(Self {
            backlog: Backlog::default(),
            writers,
            notes,
            notebook,
            ordered: VecDeque::new(),
            unnoted: Vec::new(),
            again: Instant::now(),
            recalled: HashSet::new(),
            abandoned: HashMap::new(),
            lost: 0,
            look: true,
            reported: HashSet::new(),
            unreported: Vec::new(),
        })
    }

    /// Becomes readable when labels have been written.
    pub(super) fn wakes(&self) -> BorrowedFd<'_> {
        self.writers.wakes()
    }

    /// Number of labels that could not be written and are still to be, plus those that were lost.
    pub(super) fn failures(&self) -> u64 {
        self.backlog.failed() as u64 + self.lost
    }

    /// Requests a look at the map even without an event.
    pub(super) fn look(&mut self) {
        self.look = true;
    }

    /// The contexts in the notes, each once.
    pub(super) fn contexts(&self) -> HashSet<String> {
        self.notes.all().map(|(_, context)| context.to_owned()).collect()
    }

    /// The noted labels, as SIDs.
    pub(super) fn recall(&self, mut sid: impl FnMut(&str) -> Option<Sid>) -> Recall {
        let all = self.notes.all().map(|(place, context)| (place, sid(context).unwrap_or(SECINITSID_UNLABELED)));
        Recall::new(all)
    }

    /// Takes the result of a walk that looked for noted files.
    pub(super) fn recalled(&mut self, recall: Recall) {
        let written: HashSet<Identity> = recall.written.into_iter().collect();
        for (file, sid, place) in recall.recalled {
            if written.contains(&file) {
                self.forget(place);
            } else {
                self.backlog.add(file, Unwritten { sid, uuid: place.uuid }, true);
                self.recalled.insert(file);
            }
        }
    }

    /// Whether all labels of a file system survive a restart of the machine.
    fn survives(&self, device: u32) -> bool {
        let notes_survive = self.notebook.as_ref().is_some_and(Notebook::survives);
        if notes_survive { self.backlog.is_safe(device, &[]) } else { self.backlog.is_written(device) }
    }

    fn forget(&mut self, place: Place) {
        if let (Some(line), Some(notebook)) = (self.notes.remove(place), &mut self.notebook) {
            // A label that stays noted belongs to a file that has an attribute.
            notebook.append(line);
        }
    }

    /// Removes a label that needs no further care, together with its note.
    fn settled(&mut self, file: Identity, sid: Sid) {
        if let Some((label, _)) = self.backlog.done(file, sid) {
            self.recalled.remove(&file);
            self.forget(Place::of(label.uuid, file));
        }
    }

    /// Rewrites the journal if most of it is out of date, or if a part of it could not be written.
    fn tidy(&mut self, now: Instant) {
        let Some(notebook) = &mut self.notebook else { return };
        if !self.unnoted.is_empty() && now >= self.again {
            self.ordered.push_back((notebook.replace(self.notes.journal()), mem::take(&mut self.unnoted)));
        } else if let Some(journal) = self.notes.compacted() {
            notebook.replace(journal);
        }
    }

    /// Learns which notes are on disk.
    fn hear(&mut self, now: Instant) {
        while let Some((number, result)) = self.notebook.as_mut().and_then(Notebook::done) {
            let files = match self.ordered.front() {
                Some((first, _)) if *first == number => self.ordered.pop_front().unwrap_or_default().1,
                _ => Vec::new(),
            };
            match result {
                Ok(()) => files.into_iter().for_each(|file| self.backlog.noted(file)),
                Err(cause) => {
                    error!(%cause, "labels that cannot be written to files cannot be noted either: {cause}");
                    self.unnoted.extend(files);
                    self.again = now + NOTE_RETRY_INTERVAL;
                }
            }
        }
    }
}

impl Enforcer {
    /// Writes labels that hooks have noted to the attributes of their files, where they survive a restart of the
    /// machine. Waits as long as the file systems make progress.
    pub fn write_labels(&mut self) -> Result<Written, EnforcerError> {
        self.write_labels_for(SYNC_TIMEOUT, None)
    }

    /// Failures to write labels since the last call.
    pub fn unreported_labels(&mut self) -> Vec<String> {
        mem::take(&mut self.durable.unreported)
    }

    /// Labels the directory of the notes like the policy itself, because a process that writes there can set labels.
    pub(super) fn guard_notes(&mut self) {
        let folder = self.options.notes.as_ref().to_owned();
        for path in [folder.join("unwritten"), folder] {
            let guarded = fs::File::open(&path).map_err(labelling).and_then(|file| {
                let known = self.label(file.as_fd())? == SECINITSID_SECURITY;
                if known { Ok(()) } else { self.set_label(file.as_fd(), SECINITSID_SECURITY).map(drop) }
            });
            if let Err(cause) = guarded {
                warn!(%cause, "{} is not protected: {cause}", path.display());
            }
        }
    }

    /// Writes labels before this daemon ends, within a limited time, and notes the rest.
    pub fn write_last_labels(&mut self) {
        let end = Instant::now() + END_TIMEOUT;
        self.durable.backlog.hurry(Instant::now());
        if let Err(cause) = self.write_labels_for(WRITE_TIMEOUT, Some(end)) {
            warn!(%cause, "labels: {cause}");
        }
        self.unreported_labels().iter().for_each(|failure| warn!("labels: {failure}"));
        let idle = |enforcer: &Self| enforcer.durable.notebook.as_ref().is_none_or(Notebook::is_idle);
        while !idle(self) && Instant::now() < end + WRITE_TIMEOUT {
            std::thread::sleep(SETTLE_TIMEOUT);
            self.durable.hear(Instant::now());
        }
    }

    /// Whether all labels of a file system survive a restart of the machine, in their files or noted.
    pub fn nothing_unwritten(&mut self, device: u32) -> Result<bool, EnforcerError> {
        self.tend_labels()?;
        Ok(self.durable.survives(device))
    }

    /// Number of labels that are not written to their files yet, or never will be.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.durable.failures()
    }

    /// Becomes readable when labels have been written ([`Self::catch_up`]).
    pub fn labels_written(&self) -> BorrowedFd<'_> {
        self.durable.wakes()
    }

    /// Looks after labels: takes new ones, and starts or ends writes, without waiting long.
    pub(super) fn tend_labels(&mut self) -> Result<Written, EnforcerError> {
        let mut pass = self.pass();
        pass.take()?;
        pass.hear_until(pass.now);
        if pass.dispatch()? {
            let until = pass.now + SETTLE_TIMEOUT;
            pass.hear_until(until);
            pass.dispatch()?;
        }
        pass.note();
        Ok(pass.written)
    }

    fn write_labels_for(&mut self, patience: Duration, end: Option<Instant>) -> Result<Written, EnforcerError> {
        self.durable.look();
        let mut pass = self.pass();
        pass.take()?;
        loop {
            pass.now = Instant::now();
            pass.dispatch()?;
            let durable = &pass.enforcer.durable;
            let hanging = durable.writers.hanging(pass.now, patience).len();
            let over = end.is_some_and(|end| pass.now >= end);
            if over || durable.writers.running() == hanging {
                break;
            }
            pass.hear_one(pass.now + SETTLE_TIMEOUT);
        }
        if end.is_some() {
            pass.note_all();
        }
        pass.note();
        Ok(pass.written)
    }

    /// Takes labels that are dirty in the map and known nowhere else: an earlier daemon took them and did not write
    /// them.
    pub(super) fn take_over_labels(&mut self) -> Result<(), EnforcerError> {
        let maps = self.kernel_maps();
        // Of file systems that are gone, each searched for once.
        let mut gone: HashMap<u32, Uuid> = HashMap::new();
        for (key, value) in maps.entries(&mut |_, value| value.dirty != 0).map_err(labelling)? {
            let known = maps.superblock(key.device).map_err(labelling)?.filter(|known| is_of(&value, known));
            let uuid = match (known, gone.get(&value.mounted)) {
                (Some(known), _) => known.uuid,
                (None, Some(uuid)) => *uuid,
                (None, None) => {
                    let uuid = maps.uuid_of(value.mounted).map_err(labelling)?.unwrap_or_default();
                    *gone.entry(value.mounted).or_insert(uuid)
                }
            };
            let noted = self.durable.notes.has(Place::of(uuid, key.into()));
            self.durable.backlog.add(key.into(), Unwritten { sid: value.sid, uuid }, noted);
        }
        Ok(())
    }

    /// Called when a device number belongs to another file system now, or to none. Labels that were not written are
    /// noted. `mounted`: the number of the file system that has the device now, whose labels stay.
    pub(super) fn leave_device(&mut self, device: u32, mounted: Option<u32>) -> Result<(), EnforcerError> {
        self.durable.look();
        let mut pass = self.pass();
        pass.take()?;
        pass.leave(device, mounted);
        Ok(())
    }

    /// Tells the programs which file systems have notes: a file without an attribute may have a label there.
    pub(super) fn meet_noted(&self) -> Result<(), EnforcerError> {
        let maps = self.kernel_maps();
        let noted: HashSet<Uuid> = self.durable.notes.all().map(|(place, _)| place.uuid).collect();
        noted.iter().try_for_each(|uuid| maps.meet(uuid, 0, When::Absent)).map_err(labelling)
    }

    /// Waits briefly until the labels of these files, which have just become dirty, are on disk.
    pub(super) fn settle_labels(&mut self, device: u32, files: &[Identity]) -> io::Result<()> {
        let end = Instant::now() + SYNC_TIMEOUT;
        self.durable.look();
        loop {
            self.tend_labels().map_err(io::Error::other)?;
            if files.iter().all(|file| self.durable.backlog.is_on_disk(*file)) {
                return Ok(());
            }
            let since = self.durable.writers.since(device);
            if Instant::now() >= end || since.is_some_and(|since| since.elapsed() >= WRITE_TIMEOUT) {
                return Err(hangs());
            }
            // What could not be written is being noted.
            std::thread::sleep(SETTLE_INTERVAL);
        }
    }

    /// Writes a label that a client waits for to a file, waiting briefly. With `after_others`, labels that were written
    /// before must be on disk first.
    pub(super) fn write_label(
        &mut self,
        file: BorrowedFd<'_>,
        device: u32,
        sid: Sid,
        overlay: bool,
        after_others: bool,
    ) -> io::Result<()> {
        let sync = after_others && !is_ordered_there(device)?;
        let until = Instant::now() + if sync { SYNC_TIMEOUT } else { WRITE_TIMEOUT };
        let mut pass = self.pass();
        pass.free(device, overlay, until)?;
        let durable = &mut pass.enforcer.durable;
        let (context, state) = (pass.enforcer.contexts.text(sid), &pass.enforcer.state);
        let copy = file.try_clone_to_owned()?;
        let number = durable.writers.write_one(device, copy, context, sync, |thread| {
            if overlay {
                state.set_new_label(sid, thread);
            }
        })?;
        loop {
            match pass.enforcer.durable.writers.next(until) {
                Some((_, Done::One(done, result))) if done == number => {
                    if overlay {
                        pass.enforcer.state.set_new_label(0, 0);
                    }
                    return result;
                }
                Some((_, done)) => pass.settle(done),
                None => {
                    let copy = file.try_clone_to_owned()?;
                    pass.enforcer.durable.abandoned.insert(number, (copy, device, overlay));
                    return Err(hangs());
                }
            }
        }
    }
}
