//! Labels that a note has for files on file systems that are being labelled. They are in force before anybody can look
//! at the files, and must be written again.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use tollgate_abi::enforcer::tg_label_value;

use crate::{
    labels::{
        Origin, Sid,
        identity::Identity,
        maps::{Maps, When},
        note::{Place, Uuid},
        object::Object,
    },
    shares::Holder,
};

/// The noted labels, and which of their files were met.
#[derive(Debug, Default)]
pub struct Recall {
    noted: HashMap<Uuid, Vec<(Place, Sid)>>,
    /// By file system, the numbers of inodes for which a label is noted.
    devices: HashMap<u32, HashSet<u64>>,
    /// Labels that must be written, and where they are noted.
    pub recalled: Vec<(Identity, Sid, Place)>,
    /// Files that have an attribute by now.
    pub written: Vec<Identity>,
}

impl Recall {
    /// Begins with these labels.
    pub fn new(labels: impl Iterator<Item = (Place, Sid)>) -> Self {
        let mut recall = Self::default();
        labels.for_each(|(place, sid)| recall.noted.entry(place.uuid).or_default().push((place, sid)));
        recall
    }

    /// The label that is noted for a file. `origin` says where the file's own label comes from.
    pub fn find(&mut self, maps: &mut dyn Maps, object: &Object<'_>, origin: Origin) -> io::Result<Option<Sid>> {
        if self.noted.is_empty() || origin == Origin::FileSystem && !self.devices.contains_key(&object.device) {
            return Ok(None);
        }
        if !self.devices.contains_key(&object.device) {
            self.meet(maps, object)?;
        }
        if !self.devices.get(&object.device).is_some_and(|numbers| numbers.contains(&object.inode())) {
            return Ok(None);
        }
        let file = object.identity();
        match maps.entry(file.into())? {
            Some(_) if origin == Origin::Attribute => {
                maps.remove_entry(file.into())?;
                self.written.push(file);
                Ok(None)
            }
            found => Ok(found.map(|found| found.sid)),
        }
    }

    /// Puts the labels noted for a file system in the map of durable labels.
    fn meet(&mut self, maps: &mut dyn Maps, object: &Object<'_>) -> io::Result<()> {
        let uuid = maps.uuid(object.device)?.filter(|uuid| *uuid != Uuid::default());
        let numbers = self.devices.entry(object.device).or_default();
        let share = maps.share(Holder::Machine);
        for (place, sid) in uuid.and_then(|uuid| self.noted.get(&uuid)).into_iter().flatten() {
            let file = place.at(object.device);
            // An entry that exists was written by a hook since. It stays.
            if maps.set_entry(file.into(), tg_label_value { sid: *sid, dirty: 1, share }, When::Absent)? {
                self.recalled.push((file, *sid, *place));
            }
            numbers.insert(place.inode);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::labels::maps::tests::MemoryMaps;

    #[test]
    fn gives_a_file_the_label_that_was_noted_unless_it_has_an_attribute() {
        for (origin, expected) in [(Origin::Inherited, Some(40)), (Origin::Attribute, None)] {
            let file = tempfile::tempfile().unwrap();
            let object = Object::new(file.as_fd(), 7).unwrap();
            let mut maps = MemoryMaps { uuid: [1; 16], ..MemoryMaps::default() };
            let place = Place::of([1; 16], object.identity());
            let gone = Place { inode: place.inode + 1, ..place };
            let of_another = Place { uuid: [2; 16], ..place };
            let mut recall = Recall::new([(place, 40), (gone, 41), (of_another, 42)].into_iter());
            assert_eq!(recall.find(&mut maps, &object, origin).unwrap(), expected, "{origin:?}");
            let recalled: Vec<Sid> = recall.recalled.iter().map(|(_, sid, _)| *sid).collect();
            assert_eq!((recalled, recall.written.len()), (vec![40, 41], usize::from(expected.is_none())));
            assert_eq!(maps.labels.len(), 1 + usize::from(expected.is_some()));
        }
    }

    #[test]
    fn looks_at_nothing_where_nothing_is_noted() {
        let file = tempfile::tempfile().unwrap();
        let object = Object::new(file.as_fd(), 7).unwrap();
        let mut recall = Recall::default();
        assert_eq!(recall.find(&mut MemoryMaps::default(), &object, Origin::Inherited).unwrap(), None);
        assert!(recall.devices.is_empty());
    }
}
