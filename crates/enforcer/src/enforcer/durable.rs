//! Labels that are to be written to files: from the kernel's map to threads that write, and, where that fails, to a note on
//! disk.

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

use super::{Enforcer, EnforcerError, checkpoints::is_ordered_there, object::labelling};
use crate::{
    contexts::Sid,
    labels::{
        backlog::{Backlog, Unwritten},
        durable::Written,
        identity::Identity,
        maps::Maps,
        note::{Notes, Place},
        notebook::Notebook,
        recall::Recall,
        writers::{Done, Writers},
    },
};

/// A file system that writes nothing for so long hangs: nobody waits for it, and its labels are noted.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long who writes all labels waits for one file system that seems to hang.
const LONG_PATIENCE: Duration = Duration::from_secs(10);
/// How long a daemon that ends writes labels.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// How long new labels are waited for: most are written before.
const MOMENT: Duration = Duration::from_millis(50);
const BRIEFLY: Duration = Duration::from_millis(2);
/// When a note that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// What is to be written, and what is about it.
#[derive(Debug)]
pub(super) struct Durable {
    backlog: Backlog,
    writers: Writers,
    notes: Notes,
    notebook: Option<Notebook>,
    /// Orders to write notes, and the files that they are of.
    ordered: VecDeque<(u64, Vec<Identity>)>,
    /// Files whose notes could not be written, and when that is tried again.
    unnoted: Vec<Identity>,
    again: Instant,
    /// Files whose labels were noted before this daemon began: one that is not found is no more.
    recalled: HashSet<Identity>,
    /// Labels that somebody has waited for, and no longer does.
    abandoned: HashMap<u64, (OwnedFd, u32, bool)>,
    /// Labels of file systems that are gone, of which nothing could be noted.
    lost: u64,
    /// The map may have labels that nobody has rung for.
    look: bool,
    told: HashSet<u32>,
    /// What failed, until somebody tells it: also what was heard of while something else was waited for.
    pub(super) untold: Vec<String>,
}

impl Durable {
    /// With what a note in a folder says.
    pub(super) fn open(folder: &Path) -> Result<Self, EnforcerError> {
        let writers = Writers::new().map_err(labelling)?;
        let (notebook, notes) = match Notebook::open(folder) {
            Ok((notebook, notes, refused)) => {
                if refused > 0 {
                    eprintln!("tollgate: {refused} lines of {}/unwritten say nothing", folder.display());
                }
                (Some(notebook), notes)
            }
            Err(cause) => {
                let folder = folder.display();
                eprintln!("tollgate: labels that cannot be written to files cannot be noted in {folder}: {cause}");
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
            told: HashSet::new(),
            untold: Vec::new(),
        })
    }

    /// Can be read from when labels have been written.
    pub(super) fn wakes(&self) -> BorrowedFd<'_> {
        self.writers.wakes()
    }

    /// Labels that could not be written, and stay to be; with those that are lost.
    pub(super) fn failures(&self) -> u64 {
        self.backlog.failed() as u64 + self.lost
    }

    /// The map is to be looked at, though nobody rings.
    pub(super) fn look(&mut self) {
        self.look = true;
    }

    /// The contexts that are noted, each once.
    pub(super) fn contexts(&self) -> HashSet<String> {
        self.notes.all().map(|(_, context)| context.to_owned()).collect()
    }

    /// What is noted, in SIDs.
    pub(super) fn recall(&self, mut sid: impl FnMut(&str) -> Option<Sid>) -> Recall {
        let all = self.notes.all().map(|(place, context)| (place, sid(context).unwrap_or(SECINITSID_UNLABELED)));
        Recall::new(all)
    }

    /// Takes what a walk has found of what is noted.
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

    fn forget(&mut self, place: Place) {
        if let (Some(line), Some(notebook)) = (self.notes.remove(place), &mut self.notebook) {
            // One that stays is of a file that has an attribute.
            notebook.append(line);
        }
    }

    /// Removes a label that needs no more care, with its note.
    fn settled(&mut self, file: Identity, sid: Sid) {
        if let Some((label, _)) = self.backlog.done(file, sid) {
            self.recalled.remove(&file);
            self.forget(Place::of(label.uuid, file));
        }
    }

    /// Has the journal written anew where most of it no longer holds, or a part of it could not be written.
    fn tidy(&mut self, now: Instant) {
        let Some(notebook) = &mut self.notebook else { return };
        if !self.unnoted.is_empty() && now >= self.again {
            self.ordered.push_back((notebook.replace(self.notes.journal()), mem::take(&mut self.unnoted)));
        } else if let Some(journal) = self.notes.compacted() {
            notebook.replace(journal);
        }
    }

    /// Hears which notes are on disk.
    fn hear(&mut self, now: Instant) {
        while let Some((number, result)) = self.notebook.as_mut().and_then(Notebook::done) {
            let files = match self.ordered.front() {
                Some((first, _)) if *first == number => self.ordered.pop_front().unwrap_or_default().1,
                _ => Vec::new(),
            };
            match result {
                Ok(()) => files.into_iter().for_each(|file| self.backlog.noted(file)),
                Err(cause) => {
                    eprintln!("tollgate: labels that cannot be written to files cannot be noted either: {cause}");
                    self.unnoted.extend(files);
                    self.again = now + AGAIN;
                }
            }
        }
    }
}

impl Enforcer {
    /// Writes labels that hooks have noted to the attributes of their files, where they outlive the machine's run. Waits for
    /// what can be written.
    pub fn write_labels(&mut self) -> Result<Written, EnforcerError> {
        self.write_labels_for(LONG_PATIENCE, None)
    }

    /// What came of labels that could not be written, since this was asked.
    pub fn untold_labels(&mut self) -> Vec<String> {
        mem::take(&mut self.durable.untold)
    }

    /// Labels the folder of notes as the policy itself: who writes there gives labels.
    pub(super) fn guard_notes(&mut self) {
        let folder = self.options.notes.as_ref().to_owned();
        for path in [folder.join("unwritten"), folder] {
            let guarded = fs::File::open(&path).map_err(labelling).and_then(|file| {
                let known = self.label(file.as_fd())? == SECINITSID_SECURITY;
                if known { Ok(()) } else { self.set_label(file.as_fd(), SECINITSID_SECURITY).map(drop) }
            });
            if let Err(cause) = guarded {
                eprintln!("tollgate: {} is not guarded: {cause}", path.display());
            }
        }
    }

    /// Writes labels before this daemon ends, as long as it may take, and notes the others.
    pub fn write_last_labels(&mut self) {
        let end = Instant::now() + LAST_PATIENCE;
        if let Err(cause) = self.write_labels_for(PATIENCE, Some(end)) {
            eprintln!("tollgate: labels: {cause}");
        }
        self.untold_labels().iter().for_each(|failure| eprintln!("tollgate: labels: {failure}"));
        let idle = |enforcer: &Self| enforcer.durable.notebook.as_ref().is_none_or(Notebook::is_idle);
        while !idle(self) && Instant::now() < end + PATIENCE {
            std::thread::sleep(MOMENT);
            self.durable.hear(Instant::now());
        }
    }

    /// Whether all labels of a file system are on disk: in their files, or noted.
    pub fn nothing_unwritten(&mut self, device: u32) -> Result<bool, EnforcerError> {
        self.durable.look();
        self.tend_labels()?;
        Ok(self.durable.backlog.is_safe(device, &[]))
    }

    /// Labels that could not be written to their files so far, or ever.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.durable.failures()
    }

    /// Can be read from when labels have been written ([`Self::catch_up`]).
    pub fn labels_written(&self) -> BorrowedFd<'_> {
        self.durable.wakes()
    }

    /// Looks after labels: takes those that are new, and begins or ends what can be without waiting for long.
    pub(super) fn tend_labels(&mut self) -> Result<Written, EnforcerError> {
        let mut pass = self.pass()?;
        pass.take()?;
        pass.hear_until(pass.now);
        if pass.dispatch()? {
            let until = pass.now + MOMENT;
            pass.hear_until(until);
            pass.dispatch()?;
        }
        pass.note();
        Ok(pass.written)
    }

    fn write_labels_for(&mut self, patience: Duration, end: Option<Instant>) -> Result<Written, EnforcerError> {
        self.durable.look();
        let mut pass = self.pass()?;
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
            pass.hear_one(pass.now + MOMENT);
        }
        if end.is_some() {
            pass.note_all();
        }
        pass.note();
        Ok(pass.written)
    }

    /// Labels that are dirty and nowhere else: an earlier daemon has taken and not written them.
    pub(super) fn take_over_labels(&mut self) -> Result<(), EnforcerError> {
        let maps = self.kernel_maps()?;
        for (key, value) in maps.entries(&mut |_, value| value.dirty != 0).map_err(labelling)? {
            let uuid = maps.uuid(key.device).map_err(labelling)?.unwrap_or_default();
            let noted = self.durable.notes.has(Place::of(uuid, key.into()));
            self.durable.backlog.add(key.into(), Unwritten { sid: value.sid, uuid }, noted);
        }
        Ok(())
    }

    /// Another file system has this number, or none: what was not written is noted.
    pub(super) fn leave_device(&mut self, device: u32) -> Result<(), EnforcerError> {
        self.durable.look();
        let mut pass = self.pass()?;
        pass.take()?;
        pass.leave(device);
        Ok(())
    }

    /// Waits until the labels of these files, which have just become dirty, are on disk; not for long.
    pub(super) fn settle_labels(&mut self, device: u32, files: &[Identity]) -> io::Result<()> {
        let end = Instant::now() + LONG_PATIENCE;
        self.durable.look();
        loop {
            self.tend_labels().map_err(io::Error::other)?;
            if files.iter().all(|file| self.durable.backlog.is_on_disk(*file)) {
                return Ok(());
            }
            let since = self.durable.writers.since(device);
            if Instant::now() >= end || since.is_some_and(|since| since.elapsed() >= PATIENCE) {
                return Err(hangs());
            }
            // What could not be written is being noted.
            std::thread::sleep(BRIEFLY);
        }
    }

    /// Writes a label that somebody waits for to a file; not for long. `after_others`: those that were written before are to be
    /// on disk first.
    pub(super) fn write_label(
        &mut self,
        file: BorrowedFd<'_>,
        device: u32,
        sid: Sid,
        overlay: bool,
        after_others: bool,
    ) -> io::Result<()> {
        let sync = after_others && !is_ordered_there(device)?;
        let until = Instant::now() + if sync { LONG_PATIENCE } else { PATIENCE };
        let mut pass = self.pass().map_err(io::Error::other)?;
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
