//! Labels of files that came into memory while hooks did not run. They have none there, and get one; all others keep
//! theirs.
//!
//! A file that was made meanwhile may have been given a label of its own, which nobody has noted. It is unlabelled, and
//! so is a file that may have come from another directory, unless its label is still in memory.

use std::{io, ops::RangeInclusive};

use tollgate_abi::enforcer::{TG_INODE_DURABLE, TG_SID_MACHINE, tg_inode, tg_label_key};

use crate::labels::{
    Label, Origin, Sid, Sink,
    map_sink::MapSink,
    maps::{Maps, When},
    object::{Moment, Object},
};

/// Labels files that have no label.
#[derive(Debug)]
pub struct Unseen<'s, 'm, M> {
    sink: &'s mut MapSink<'m, M>,
    /// When hooks did not run.
    gap: RangeInclusive<Moment>,
    /// How many files had no label.
    pub labelled: u64,
}

impl<'s, 'm, M: Maps> Unseen<'s, 'm, M> {
    /// Begins. Labels go to `sink`.
    pub fn new(sink: &'s mut MapSink<'m, M>, gap: RangeInclusive<Moment>) -> Self {
        Self { sink, gap, labelled: 0 }
    }

    /// Whether a file without an attribute was made in the gap. Its label would otherwise be taken from its directory.
    fn is_made(&self, object: &Object<'_>, origin: Origin) -> bool {
        let changed = object.changed();
        origin == Origin::Lost && self.gap.contains(&changed.born.unwrap_or(changed.at))
    }

    /// A file that no hook saw move to a directory with another label keeps its own, as inode_rename ensures.
    fn keep(&mut self, object: &Object<'_>, known: tg_inode, label: Label) -> io::Result<()> {
        let noted =
            known.flags & TG_INODE_DURABLE != 0 || matches!(label.origin, Origin::Attribute | Origin::FileSystem);
        if noted || label.directory.is_none_or(|directory| directory == known.sid) {
            return Ok(());
        }
        self.sink.enter(object.identity().into(), known.sid, object.owner(), true)?;
        let flags = known.flags | TG_INODE_DURABLE;
        self.sink.maps.set_inode(object.file, tg_inode { flags, ..known }, When::Present).map(drop)
    }
}

impl<M: Maps> Sink for Unseen<'_, '_, M> {
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid> {
        let known = self.sink.maps.inode(object.file)?.filter(|known| known.sid != 0);
        if let Some(known) = known.filter(|_| !self.is_made(object, label.origin)) {
            return self.keep(object, known, label).map(|()| known.sid);
        }
        self.labelled += 1;
        let key: tg_label_key = object.identity().into();
        let noted = if label.origin == Origin::FileSystem { None } else { self.sink.maps.entry(key)? };
        let Some(noted) = noted else { return self.sink.label(object, label) };
        let value =
            tg_inode { sid: noted.sid, task_sid: TG_SID_MACHINE, flags: TG_INODE_DURABLE, ..tg_inode::default() };
        self.sink.maps.set_inode(object.file, value, When::Always).map(|_| noted.sid)
    }

    /// Nobody knows for what it was made, so it stays as it is.
    fn hold(&mut self, _: &Object<'_>, _: Sid) -> io::Result<()> {
        Ok(())
    }

    fn complete(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn complete_subvolume(&mut self, device: u32, subvolume: u64) -> io::Result<()> {
        self.sink.complete_subvolume(device, subvolume)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use tollgate_abi::enforcer::SECINITSID_UNLABELED;

    use super::*;
    use crate::labels::{maps::tests::MemoryMaps, recall::Recall};

    /// Labels a new file, which is `known` in memory, in a directory of label 5.
    fn labelled(known: Option<tg_inode>, label: Label, gap: RangeInclusive<Moment>) -> (MemoryMaps, tg_inode) {
        let (folder, mut maps) = (tempfile::tempdir().unwrap(), MemoryMaps::default());
        let file = File::create(folder.path().join("file")).unwrap();
        let object = Object::anywhere(file.as_fd()).unwrap();
        maps.inodes.extend(known.map(|known| (object.inode(), known)));
        let mut sink = MapSink::new(&mut maps, Recall::default());
        let sid = Unseen::new(&mut sink, gap).label(&object, label).unwrap();
        let found = maps.inodes[&object.inode()];
        assert_eq!(found.sid, sid);
        (maps, found)
    }

    fn known(sid: Sid, flags: u32) -> Option<tg_inode> {
        Some(tg_inode { sid, flags, ..tg_inode::default() })
    }

    fn label(sid: Sid, origin: Origin) -> Label {
        Label { sid, directory: Some(5), node: 0, origin }
    }

    const BEFORE: RangeInclusive<Moment> = 0..=1;
    const ALWAYS: RangeInclusive<Moment> = 0..=Moment::MAX;

    #[test]
    fn labels_what_has_no_label_and_leaves_others_theirs() {
        for none in [None, known(0, 0)] {
            assert_eq!(labelled(none, label(5, Origin::Inherited), BEFORE).1.sid, 5);
        }
        let (maps, found) = labelled(known(5, 0), label(5, Origin::Inherited), BEFORE);
        assert_eq!((maps.labels.len(), found.flags), (0, 0));
    }

    #[test]
    fn writes_down_the_label_of_what_was_moved_unless_that_is_done() {
        for (flags, entries) in [(0, 1), (TG_INODE_DURABLE, 0)] {
            let (maps, found) = labelled(known(9, flags), label(5, Origin::Inherited), BEFORE);
            assert_eq!((found.sid, found.flags, maps.labels.len()), (9, TG_INODE_DURABLE, entries));
            assert!(maps.labels.values().all(|entry| entry.sid == 9 && entry.dirty == 1));
        }
    }

    #[test]
    fn takes_the_label_away_that_a_later_look_gave_what_was_made_meanwhile() {
        let lost = label(SECINITSID_UNLABELED, Origin::Lost);
        for (gap, sid) in [(ALWAYS, SECINITSID_UNLABELED), (BEFORE, 5)] {
            assert_eq!(labelled(known(5, 0), lost, gap).1.sid, sid);
        }
    }
}
