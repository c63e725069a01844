//! Puts the labels that a walk finds in the kernel's maps.

use std::io;

use nix::sys::statfs::fstatfs;
use tollgate_abi::enforcer::{
    SECINITSID_UNLABELED, TG_INODE_ACTIVE, TG_INODE_DURABLE, TG_SID_MACHINE, tg_inode, tg_label_key, tg_label_value,
};

use crate::{
    labels::{
        Label, Origin, Sid, Sink,
        maps::{Maps, When},
        names::{Names, Seen},
        object::Object,
        recall::Recall,
    },
    progress::Progress,
    shares::Holder,
};

/// Labels files in the maps.
#[derive(Debug)]
pub struct MapSink<'m, M> {
    pub(super) maps: &'m mut M,
    names: Names,
    /// Labels that could not be written to their files before.
    pub recall: Recall,
    /// The number of the file system that is walked, if it is new to the machine: what was made there since has its label
    /// written down, whatever that is.
    made_since: Option<u32>,
    progress: Progress,
}

impl<'m, M: Maps> MapSink<'m, M> {
    /// Labels files in these maps. What is noted in `recall` counts first.
    pub fn new(maps: &'m mut M, recall: Recall) -> Self {
        Self { maps, names: Names::default(), recall, made_since: None, progress: Progress::default() }
    }

    /// Reports how many files it has labelled.
    #[must_use]
    pub fn with(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Writes down the labels of files of which walks have not seen all names, on one device or on all.
    pub fn finish(&mut self, device: Option<u32>) -> io::Result<()> {
        let mut finished = Ok(());
        for (key, Seen { sid, owner, dirty, .. }) in self.names.unseen(device) {
            finished = finished.and(self.enter(key, sid, owner, dirty).map(drop));
        }
        finished
    }

    /// Writes a label down. Returns the label that is written there then, which may be another one.
    pub(super) fn enter(&mut self, key: tg_label_key, sid: Sid, owner: u32, dirty: bool) -> io::Result<Sid> {
        let share = self.maps.share(Holder::of_file(owner));
        let value = tg_label_value { sid, dirty: dirty.into(), share, mounted: self.made_since.unwrap_or_default() };
        match self.maps.set_entry(key, value, When::Absent) {
            Ok(true) => Ok(sid),
            // A hook, or an earlier daemon, has written it since. It stays.
            Ok(false) => Ok(self.maps.entry(key)?.map_or(sid, |entry| entry.sid)),
            Err(cause) => {
                self.maps.leave_out(share);
                Err(cause)
            }
        }
    }
}

impl<M: Maps> Sink for MapSink<'_, M> {
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<Sid> {
        self.progress.step();
        let inode = |sid, flags| tg_inode { sid, class: 0, task_sid: TG_SID_MACHINE, node: label.node, flags };
        if label.directory.is_none() {
            // From this system call on, the programs know the file system, even if no confined process has seen it.
            fstatfs(object.file)?;
            self.made_since = self.maps.made_since(object.device)?;
        }
        if let Some(noted) = self.recall.find(self.maps, object, label.origin)? {
            return self.maps.set_inode(object.file, inode(noted, TG_INODE_DURABLE), When::Always).map(|_| noted);
        }
        // A system call, which most files do without.
        let key = || tg_label_key::from(object.identity());
        let (sid, own) = match Names::concerns(object, label) {
            true => self.names.see(object, label),
            false => (label.sid, label.is_own(object)),
        };
        let value = if own {
            match self.enter(key(), sid, object.owner(), label.origin != Origin::Attribute) {
                Ok(sid) => inode(sid, TG_INODE_DURABLE),
                Err(cause) => {
                    // Until now it may have been taken for one with its directory's label.
                    self.maps.set_inode(object.file, inode(SECINITSID_UNLABELED, 0), When::Always)?;
                    return Err(cause);
                }
            }
        } else if (Names::concerns(object, label) || self.made_since.is_some())
            && let Some(entry) = self.maps.entry(key())?
        {
            inode(entry.sid, TG_INODE_DURABLE)
        } else {
            inode(sid, if label.origin == Origin::Attribute { TG_INODE_ACTIVE } else { 0 })
        };
        self.maps.set_inode(object.file, value, When::Always).map(|_| value.sid)
    }

    fn hold(&mut self, object: &Object<'_>, sid: Sid) -> io::Result<()> {
        let value = tg_inode { sid, task_sid: TG_SID_MACHINE, ..tg_inode::default() };
        self.maps.set_inode(object.file, value, When::Absent).map(|_| ())
    }

    fn complete(&mut self, device: u32) -> io::Result<()> {
        let finished = self.finish(Some(device));
        self.maps.set_walked(device)?;
        finished
    }

    fn complete_subvolume(&mut self, device: u32, subvolume: u64) -> io::Result<()> {
        let key = tg_label_key { inode: 0, subvolume, device, generation: 0 };
        self.maps.set_entry(key, tg_label_value::default(), When::Always).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;
    use crate::labels::maps::tests::MemoryMaps;

    fn put(maps: &mut MemoryMaps, directory: bool, label: Label) -> (io::Result<()>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        File::create(&path).unwrap();
        let file = File::open(if directory { folder.path() } else { &path }).unwrap();
        let object = Object::new(file.as_fd(), 7).unwrap();
        let result = MapSink::new(maps, Recall::default()).label(&object, label).map(drop);
        (result, object.inode())
    }

    fn label(sid: Sid, directory: Option<Sid>, origin: Origin) -> Label {
        Label { sid, directory, node: 0, origin }
    }

    #[test]
    fn writes_down_only_labels_that_are_not_the_directorys() {
        for (own, dirty, given) in [
            (false, 0, label(5, Some(5), Origin::Inherited)),
            (false, 0, label(5, Some(5), Origin::Attribute)),
            (false, 0, label(6, Some(5), Origin::FileSystem)),
            (true, 0, label(6, Some(5), Origin::Attribute)),
            (true, 1, label(6, Some(5), Origin::FileContexts)),
            (true, 1, label(6, None, Origin::Inherited)),
        ] {
            let mut maps = MemoryMaps::default();
            let (result, inode) = put(&mut maps, true, given);
            result.unwrap();
            assert_eq!(maps.inodes[&inode].sid, given.sid);
            let written: Vec<_> = maps.labels.into_values().collect();
            let expected = own.then_some(tg_label_value { sid: given.sid, dirty, ..Default::default() });
            assert_eq!(written, expected.into_iter().collect::<Vec<_>>(), "{given:?}");
        }
    }

    #[test]
    fn keeps_a_label_that_a_hook_has_written_down() {
        let mut maps = MemoryMaps::default();
        let folder = tempfile::tempdir().unwrap();
        let file = File::open(folder.path()).unwrap();
        let object = Object::new(file.as_fd(), 7).unwrap();
        let by_hook = tg_label_value { sid: 9, dirty: 1, ..Default::default() };
        maps.set_entry(object.identity().into(), by_hook, When::Absent).unwrap();
        let given = label(6, Some(5), Origin::FileContexts);
        MapSink::new(&mut maps, Recall::default()).label(&object, given).unwrap();
        assert_eq!(maps.inodes[&object.inode()].sid, 9);
        assert_eq!(maps.entry(object.identity().into()).unwrap(), Some(by_hook));
    }

    #[test]
    fn keeps_what_was_made_in_a_file_system_that_is_new_before_it_was_walked() {
        for (made_since, expected) in [(None, 5), (Some(3), 9)] {
            let mut maps = MemoryMaps { made_since, ..MemoryMaps::default() };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("made");
            let (root, made) = (File::open(folder.path()).unwrap(), File::create(&path).unwrap());
            let made = Object::new(made.as_fd(), 7).unwrap();
            let kept = tg_label_value { sid: 9, dirty: 1, mounted: 3, ..Default::default() };
            maps.set_entry(made.identity().into(), kept, When::Absent).unwrap();
            let mut sink = MapSink::new(&mut maps, Recall::default());
            let root = Object::new(root.as_fd(), 7).unwrap();
            sink.label(&root, label(5, None, Origin::FileSystem)).unwrap();
            assert_eq!(sink.label(&made, label(5, Some(5), Origin::FileContexts)).unwrap(), expected);
        }
    }

    #[test]
    fn leaves_a_file_without_label_when_the_map_is_full() {
        let mut maps = MemoryMaps { room: Some(0), ..MemoryMaps::default() };
        let (result, inode) = put(&mut maps, false, label(6, Some(5), Origin::FileContexts));
        assert!(result.is_err() && maps.inodes[&inode].sid == SECINITSID_UNLABELED);
    }

    #[test]
    fn labels_what_processes_hold_only_when_it_has_no_label() {
        let mut maps = MemoryMaps::default();
        let file = tempfile::tempfile().unwrap();
        let object = Object::anywhere(file.as_fd()).unwrap();
        for sid in [28, 5] {
            MapSink::new(&mut maps, Recall::default()).hold(&object, sid).unwrap();
        }
        assert_eq!((maps.inodes[&object.inode()].sid, maps.labels.len()), (28, 0));
    }
}
