//! One round of looking after labels: from the kernel's map to the threads that write them, and back with the results.

use std::{
    fs, io, mem,
    os::fd::{AsFd, BorrowedFd},
    time::Instant,
};

use tollgate_abi::enforcer::{TG_INODE_DURABLE, tg_label_value, tg_superblock};
use tracing::warn;

use super::{
    super::{
        Enforcer, EnforcerError,
        object::{labelling, mountinfo},
    },
    Durable, WRITE_TIMEOUT,
};
use crate::{
    contexts::Sid,
    labels::{
        backlog::Unwritten,
        durable::{Dirty, Outcome, Written},
        identity::Identity,
        maps::{KernelMaps, Maps, When, is_of},
        note::{Place, Uuid},
        object::Object,
        writers::Done,
    },
    shares::Holder,
};

/// One round of looking after labels.
pub(super) struct Pass<'e> {
    pub(super) enforcer: &'e mut Enforcer,
    maps: KernelMaps,
    pub(super) written: Written,
    pub(super) now: Instant,
}

impl Enforcer {
    pub(super) fn pass(&mut self) -> Pass<'_> {
        let maps = self.kernel_maps();
        Pass { maps, enforcer: self, written: Written::default(), now: Instant::now() }
    }
}

/// The error for a file system that does not answer.
pub(super) fn hangs() -> io::Error {
    let text = "the file system does not answer: it is frozen (`fsfreeze -u`), or hangs; try again when it does";
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl Pass<'_> {
    /// Takes the labels that have become dirty.
    pub(super) fn take(&mut self) -> Result<(), EnforcerError> {
        let enforcer = &mut *self.enforcer;
        if !mem::take(&mut enforcer.durable.look) && !enforcer.state.label_rings() {
            return Ok(());
        }
        enforcer.state.answer_label_rings();
        if enforcer.state.take_labels_missed() {
            enforcer.take_over_labels()?;
        }
        for (key, label) in self.maps.take_unwritten().map_err(labelling)? {
            // If the map no longer has its label, the file is gone.
            let Some(kept) = self.maps.entry(key).map_err(labelling)? else { continue };
            let noted = enforcer.durable.notes.has(Place::of(label.uuid, key.into()));
            enforcer.durable.backlog.add(key.into(), Unwritten { sid: kept.sid, ..label }, noted);
        }
        Ok(())
    }

    /// Starts to write what is due. Returns whether there was anything.
    pub(super) fn dispatch(&mut self) -> Result<bool, EnforcerError> {
        let mut begun = false;
        for device in self.enforcer.durable.backlog.ready(self.now) {
            if self.enforcer.durable.writers.since(device).is_some() {
                continue;
            }
            match self.maps.superblock(device).map_err(labelling)? {
                Some(known) => begun |= self.begin(device, &known)?,
                None => self.leave(device, None),
            }
        }
        Ok(begun)
    }

    fn begin(&mut self, device: u32, known: &tg_superblock) -> Result<bool, EnforcerError> {
        let taken = self.enforcer.durable.backlog.take(device, self.now);
        let all = self.enforcer.durable.backlog.is_safe(device, &taken);
        let (mut labels, mut left) = (Vec::with_capacity(taken.len()), Vec::new());
        for (file, label) in taken {
            let kept = self.maps.entry(file.into()).map_err(labelling)?.filter(|kept| kept.sid == label.sid);
            match (kept, self.text(label.sid)) {
                (None, _) => self.enforcer.durable.settled(file, label.sid),
                (Some(kept), _) if !is_of(&kept, known) => left.push((file, label)),
                (_, Some(context)) => labels.push(Dirty { file, sid: label.sid, context }),
                (_, None) => self.fail(file, label.sid, &io::Error::other(format!("SID {} has no context", label.sid))),
            }
        }
        for (file, _) in &left {
            self.enforcer.durable.backlog.remove(*file);
        }
        self.part_with(&left);
        if labels.is_empty() {
            return Ok(false);
        }
        let path = mountinfo();
        let mountinfo = fs::read(&path).map_err(|cause| EnforcerError::Io { what: "read", path, cause })?;
        let again: Vec<(Identity, Sid)> = labels.iter().map(|label| (label.file, label.sid)).collect();
        if let Err(cause) = self.enforcer.durable.writers.write(device, labels, mountinfo, all) {
            again.into_iter().for_each(|(file, sid)| self.fail(file, sid, &cause));
        }
        Ok(true)
    }

    fn text(&mut self, sid: Sid) -> Option<String> {
        if !self.enforcer.contexts.has(sid) {
            self.enforcer.learn();
        }
        let contexts = &self.enforcer.contexts;
        contexts.has(sid).then(|| contexts.text(sid).to_owned())
    }

    /// Takes the results of writes, and waits for writes that are under way, but not for those that hang.
    pub(super) fn hear_until(&mut self, until: Instant) {
        while self.hear_one(self.now) {}
        while self.enforcer.durable.writers.is_awaited(self.now, WRITE_TIMEOUT) && self.hear_one(until) {}
    }

    pub(super) fn hear_one(&mut self, until: Instant) -> bool {
        let heard = self.enforcer.durable.writers.next(until);
        let some = heard.is_some();
        heard.into_iter().for_each(|(_, done)| self.settle(done));
        some
    }

    /// Waits until a file system can be written to.
    pub(super) fn free(&mut self, device: u32, overlay: bool, until: Instant) -> io::Result<()> {
        let abandoned = |durable: &Durable| durable.abandoned.values().any(|(_, _, other)| overlay && *other);
        while self.hear_one(self.now) {}
        loop {
            let since = self.enforcer.durable.writers.since(device);
            if since.is_none() && !abandoned(&self.enforcer.durable) {
                return Ok(());
            }
            if since.is_none_or(|since| since.elapsed() >= WRITE_TIMEOUT) || !self.hear_one(until) {
                return Err(hangs());
            }
        }
    }

    pub(super) fn settle(&mut self, done: Done) {
        match done {
            Done::Labels(labels) => labels.into_iter().for_each(|(label, outcome)| self.one(&label, outcome)),
            Done::One(number, result) => self.late(number, result.is_ok()),
        }
    }

    fn one(&mut self, label: &Dirty, outcome: Outcome) {
        let cleaned = match outcome {
            Outcome::Written => match self.clean(label) {
                // The map takes memory without waiting for it. The label is in its file, and is written once more.
                Err(cause) if cause.raw_os_error() == Some(libc::ENOMEM) => {
                    let now = self.now;
                    return self.enforcer.durable.backlog.postpone(label.file, label.sid, now);
                }
                cleaned => cleaned.map(|()| self.written.written += 1),
            },
            Outcome::Unsupported => self.clean(label).map(|()| self.written.unsupported += 1),
            Outcome::Stale => self.stale(label),
            Outcome::Later => {
                let now = self.now;
                return self.enforcer.durable.backlog.postpone(label.file, label.sid, now);
            }
            Outcome::Failed(cause) => Err(cause),
        };
        if let Err(cause) = cleaned {
            self.fail(label.file, label.sid, &cause);
        }
    }

    /// The label in force has been written. A newer one will be.
    fn clean(&mut self, label: &Dirty) -> io::Result<()> {
        let key = label.file.into();
        if let Some(kept) = self.maps.entry(key)?.filter(|kept| kept.sid == label.sid) {
            self.maps.set_entry(key, tg_label_value { dirty: 0, ..kept }, When::Present)?;
        }
        self.enforcer.durable.settled(label.file, label.sid);
        Ok(())
    }

    /// The file was not found. The programs remove the label of a deleted file, so while they have the label, the file
    /// exists.
    fn stale(&mut self, label: &Dirty) -> io::Result<()> {
        let recalled = self.enforcer.durable.recalled.contains(&label.file);
        if !recalled && self.maps.entry(label.file.into())?.is_some() {
            let believed = self.enforcer.durable.backlog.miss(label.file, label.sid, self.now);
            return if believed { Err(io::Error::from_raw_os_error(libc::ESTALE)) } else { Ok(()) };
        }
        self.maps.remove_entry(label.file.into())?;
        self.enforcer.durable.settled(label.file, label.sid);
        self.written.gone += 1;
        Ok(())
    }

    fn fail(&mut self, file: Identity, sid: Sid, cause: &io::Error) {
        let durable = &mut self.enforcer.durable;
        durable.backlog.fail(file, sid, self.now);
        self.written.failures += 1;
        // Only once per file system. `status` counts them all.
        if durable.reported.insert(file.device) {
            let (major, minor) = (file.device >> 20, file.device & 0xf_ffff);
            let message = format!(
                "inode {} of {major}:{minor}: {cause}; this label and others that cannot be written there are noted and retried",
                file.inode
            );
            durable.unreported.push(message);
        }
    }

    /// A label was written that no client waits for any more. Another one is in force, which must be written again.
    fn late(&mut self, number: u64, written: bool) {
        let Some((file, device, overlay)) = self.enforcer.durable.abandoned.remove(&number) else { return };
        if overlay {
            return self.enforcer.state.set_new_label(0, 0);
        }
        if written && let Err(cause) = self.write_again(file.as_fd(), device) {
            warn!(%cause, "an outdated label stays in the attribute of a file: {cause}");
        }
    }

    fn write_again(&mut self, file: BorrowedFd<'_>, device: u32) -> io::Result<()> {
        let object = Object::new(file, device)?;
        let Some(mut label) = self.maps.inode(file)?.filter(|label| label.sid != 0) else { return Ok(()) };
        let share = self.maps.share(Holder::Machine);
        let value = tg_label_value { sid: label.sid, dirty: 1, share, ..Default::default() };
        self.maps.set_entry(object.identity().into(), value, When::Always)?;
        label.flags |= TG_INODE_DURABLE;
        self.maps.set_inode(file, label, When::Present)?;
        self.enforcer.durable.look();
        Ok(())
    }

    /// Notes the labels of a file system that is gone, and removes them from the map, except those of the file system
    /// that has its device now.
    pub(super) fn leave(&mut self, device: u32, mounted: Option<u32>) {
        let labels = self.enforcer.durable.backlog.remove_all(device);
        let stays = |file: Identity| {
            let kept = self.maps.entry(file.into()).ok().flatten();
            mounted.is_some() && kept.map(|kept| kept.mounted) == mounted
        };
        let (stay, labels): (Vec<_>, Vec<_>) = labels.into_iter().partition(|(file, _)| stays(*file));
        stay.into_iter().for_each(|(file, label)| self.enforcer.durable.backlog.add(file, label, false));
        self.part_with(&labels);
    }

    /// Notes these labels, which are of a file system that is gone, and removes them from the map.
    fn part_with(&mut self, labels: &[(Identity, Unwritten)]) {
        let lost = self.note_down(labels.iter().copied());
        for (file, _) in labels {
            self.enforcer.durable.recalled.remove(file);
            if let Err(cause) = self.maps.remove_entry((*file).into()) {
                warn!(%cause, "a label of a file system that is gone stays in the map: {cause}");
            }
        }
        if lost > 0 {
            self.enforcer.durable.lost += lost as u64;
            let message =
                format!("{lost} labels are lost, because their file system is gone and has no UUID to note them by");
            self.enforcer.durable.unreported.push(message);
        }
    }

    /// Notes what could not be written, and what waits for file systems that hang.
    pub(super) fn note(&mut self) {
        let durable = &mut self.enforcer.durable;
        durable.hear(self.now);
        durable.tidy(self.now);
        let mut labels = durable.backlog.take_failed();
        for device in durable.writers.hanging(self.now, WRITE_TIMEOUT) {
            labels.extend(durable.backlog.unnoted(device));
        }
        self.note_down(labels.into_iter());
    }

    pub(super) fn note_all(&mut self) {
        let labels = self.enforcer.durable.backlog.all_unnoted();
        self.note_down(labels.into_iter());
    }

    /// Notes labels. Returns how many cannot be noted.
    fn note_down(&mut self, labels: impl Iterator<Item = (Identity, Unwritten)>) -> usize {
        let (mut lines, mut files, mut lost) = (String::new(), Vec::new(), 0);
        for (file, label) in labels {
            let place = Place::of(label.uuid, file);
            if self.enforcer.durable.notes.has(place) {
                continue;
            }
            let context = self.text(label.sid).filter(|_| label.uuid != Uuid::default());
            let line = context.and_then(|context| self.enforcer.durable.notes.add(place, &context));
            match line {
                Some(line) => (lines.push_str(&line), files.push(file)),
                None => {
                    lost += 1;
                    continue;
                }
            };
        }
        let durable = &mut self.enforcer.durable;
        if !durable.unnoted.is_empty() {
            // The journal may end in part of a line.
            durable.unnoted.extend(files);
        } else if let Some(notebook) = durable.notebook.as_mut().filter(|_| !files.is_empty()) {
            durable.ordered.push_back((notebook.append(lines), files));
        }
        lost
    }
}
