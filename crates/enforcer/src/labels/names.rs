//! Files with several names. If all names of a file are in directories with its label, it needs no entry in the map of
//! labels.
//!
//! The kernel keeps that true from then on: a file without an entry has the label of every directory that it is in.

use std::collections::HashMap;

use tollgate_abi::enforcer::tg_label_key;

use crate::labels::{Label, Origin, Sid, identity::Identity, object::Object};

/// A file of which some names were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its label, which came from its first name.
    pub(super) sid: Sid,
    /// Uid of its owner.
    pub(super) owner: u32,
    /// Whether its attribute must be written.
    pub(super) dirty: bool,
    /// How many of its names were not seen yet.
    left: u64,
}

/// Files with several names that walks have seen, so far only in directories with their label.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<Identity, Seen>);

impl Names {
    /// Whether a file has several names and the label of a directory. The kernel cannot tell such a file's label by
    /// itself.
    pub(super) fn concerns(object: &Object<'_>, label: Label) -> bool {
        label.origin != Origin::FileSystem && object.links() > 1 && !object.is(libc::S_IFDIR)
    }

    /// A name of a file was seen. Returns the file's label, and whether that must be written down.
    pub(super) fn see(&mut self, object: &Object<'_>, label: Label) -> (Sid, bool) {
        let new = Seen {
            sid: label.sid,
            owner: object.owner(),
            dirty: label.origin != Origin::Attribute,
            left: object.links(),
        };
        let seen = self.0.entry(object.identity()).or_insert(new);
        seen.left = seen.left.saturating_sub(1);
        (seen.sid, label.directory != Some(seen.sid))
    }

    /// The files, of a device or of all, of which not all names were seen by the end of the walk. They are removed from
    /// here.
    pub(super) fn unseen(&mut self, device: Option<u32>) -> Vec<(tg_label_key, Seen)> {
        let of_it = |identity: &Identity| device.is_none_or(|device| device == identity.device);
        let all = self.0.extract_if(|identity, _| of_it(identity));
        all.filter(|(_, seen)| seen.left > 0).map(|(identity, seen)| (identity.into(), seen)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, fs::File, os::fd::AsFd};

    use super::*;

    fn label(sid: Sid, directory: Sid) -> Label {
        Label { sid, directory: Some(directory), node: 0, origin: Origin::Inherited }
    }

    #[test]
    fn needs_nothing_for_a_file_whose_names_are_all_in_directories_of_its_label() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
        let file = File::create(&paths[0]).unwrap();
        paths[1..].iter().for_each(|path| fs::hard_link(&paths[0], path).unwrap());
        let object = Object::new(file.as_fd(), 7).unwrap();
        let mut names = Names::default();
        assert!(Names::concerns(&object, label(5, 5)));
        for left in [2, 1, 0, 0] {
            assert_eq!(names.see(&object, label(5, 5)), (5, false));
            let unseen = Names(names.0.clone()).unseen(Some(7));
            assert_eq!(
                unseen.iter().map(|(_, seen)| seen.left).collect::<Vec<_>>(),
                [left; 1][usize::from(left == 0)..]
            );
        }
        // The first name counts, also where another is found after as many as there were.
        assert_eq!(names.see(&object, label(6, 6)), (5, true));
        assert_eq!((names.unseen(Some(8)).len(), names.0.len()), (0, 1));
        assert_eq!((names.unseen(None).len(), names.0.len()), (0, 0));
    }
}
