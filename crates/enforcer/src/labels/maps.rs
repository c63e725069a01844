//! Where the kernel finds labels: in inode storage, which is in force, and in the map `labels`, which outlives the
//! inode in memory.

use std::{
    collections::{BTreeSet, HashSet},
    io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::Arc,
};

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use nix::sys::statfs::fstatfs;
use tollgate_abi::bytes_of;
use tollgate_abi::enforcer::{
    TG_FS_XATTR, TG_SUPERBLOCK_NEW, TG_SUPERBLOCK_WALKED, tg_inode, tg_label_key, tg_label_value, tg_superblock,
    tg_unwritten,
};
use tollgate_client::shares::Room;

use crate::{
    contexts::bare,
    labels::{Sid, backlog::Unwritten, identity::Identity, note::Uuid, walked::Walked},
    programs::{self, Pins},
    shares::{Holder, Place, Shares},
    state::State,
};

/// When an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Only if there is none.
    Absent,
    /// Only if there is one.
    Present,
}

/// The maps of labels. Each method that writes returns whether it wrote, because [`When`] may forbid it.
pub trait Maps {
    /// The label in force of the file of a descriptor.
    fn inode(&self, file: BorrowedFd<'_>) -> io::Result<Option<tg_inode>>;
    /// Sets the label in force.
    fn set_inode(&mut self, file: BorrowedFd<'_>, value: tg_inode, when: When) -> io::Result<bool>;
    /// A durable label.
    fn entry(&self, key: tg_label_key) -> io::Result<Option<tg_label_value>>;
    /// Sets a durable label. A new entry takes a place in the share `value.share`; an existing entry stays in its
    /// share. A dirty entry is returned by [`Self::take_unwritten`].
    fn set_entry(&mut self, key: tg_label_key, value: tg_label_value, when: When) -> io::Result<bool>;
    /// Removes a durable label, if it is there.
    fn remove_entry(&mut self, key: tg_label_key) -> io::Result<()>;
    /// The share of a holder who takes a place for a label.
    fn share(&self, holder: Holder) -> Place;
    /// Records that a label found no room in a share: its holder's files whose label is not written down have none.
    fn leave_out(&mut self, share: Place);
    /// The UUID of a file system that is mounted anywhere.
    fn uuid(&self, device: u32) -> io::Result<Option<Uuid>>;
    /// The number of a file system that is new to the machine; `None`: it is not new.
    fn made_since(&self, device: u32) -> io::Result<Option<u32>>;
    /// Marks the labels of a file system as known.
    fn set_walked(&mut self, device: u32) -> io::Result<()>;
    /// Takes the labels that have become dirty since the last call.
    fn take_unwritten(&mut self) -> io::Result<Vec<(tg_label_key, Unwritten)>>;
    /// All durable labels for which `wanted` is true. What the kernel adds meanwhile may be missing.
    fn entries(
        &self,
        wanted: &mut dyn FnMut(&tg_label_key, &tg_label_value) -> bool,
    ) -> io::Result<Vec<(tg_label_key, tg_label_value)>>;
}

/// The maps of the running enforcer.
#[derive(Debug)]
pub struct KernelMaps {
    /// Labels in force, in inode storage. A plain inode has none until it is asked about.
    pub inodes: Arc<MapHandle>,
    /// Durable labels.
    pub labels: Arc<MapHandle>,
    /// Durable labels that have become dirty.
    pub unwritten: Arc<MapHandle>,
    /// Directories in which something was made.
    pub active: Arc<MapHandle>,
    /// File systems, by device.
    pub superblocks: Arc<MapHandle>,
    /// Those of them that were walked.
    pub walked: Walked,
    /// File systems that were labelled, or seen, by UUID.
    pub uuids: Arc<MapHandle>,
    /// Who holds how many places in `labels`.
    pub shares: Shares,
    /// The programs' variables.
    pub state: State,
}

/// How often to try again when a program changes an entry of `superblocks` at the same time.
const MAX_ATTEMPTS: u32 = 8;

/// How many entries one system call reads.
const BATCH: u32 = 4096;
const USED_UP: &str = "the share of labels of the file's owner, or of who asked, is used up (`tollgate status` tells who holds \
                       how much; `tollgate enforce --room labels=PLACES` makes more room)";

impl When {
    fn flags(self) -> MapFlags {
        match self {
            Self::Always => MapFlags::ANY,
            Self::Absent => MapFlags::NO_EXIST,
            Self::Present => MapFlags::EXIST,
        }
    }
}

impl Maps for KernelMaps {
    fn inode(&self, file: BorrowedFd<'_>) -> io::Result<Option<tg_inode>> {
        let stored = || self.inodes.lookup(&file.as_raw_fd().to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other);
        let mut value = stored()?;
        if value.as_deref().and_then(words).is_none_or(|[sid, ..]: [u32; 5]| sid == 0) {
            self.settle(file);
            value = stored()?;
        }
        Ok(value.and_then(|bytes| {
            let [sid, class, task_sid, node, flags] = words(&bytes)?;
            Some(tg_inode { sid, class, task_sid, node, flags })
        }))
    }

    fn set_inode(&mut self, file: BorrowedFd<'_>, value: tg_inode, when: When) -> io::Result<bool> {
        if when != When::Always {
            self.settle(file);
        }
        let tg_inode { sid, class, task_sid, node, flags } = value;
        let value = [sid, class, task_sid, node, flags].map(u32::to_ne_bytes).concat();
        written(self.inodes.update(&file.as_raw_fd().to_ne_bytes(), &value, when.flags()))
    }

    fn entry(&self, key: tg_label_key) -> io::Result<Option<tg_label_value>> {
        let value = self.labels.lookup(&key_bytes(key), MapFlags::ANY).map_err(io::Error::other)?;
        Ok(value.and_then(|bytes| value_of(&bytes)))
    }

    fn set_entry(&mut self, key: tg_label_key, value: tg_label_value, when: When) -> io::Result<bool> {
        if value.dirty == 0 {
            return self.put_entry(&key_bytes(key), value, when);
        }
        // Until it is written, its file system may go, and another one get the device.
        let tg_superblock { uuid, number, .. } = self.superblock(key.device)?.unwrap_or_default();
        let done = self.put_entry(&key_bytes(key), tg_label_value { mounted: number, ..value }, when)?;
        if done {
            let unwritten = tg_unwritten { uuid, sid: value.sid };
            let put = self.unwritten.update(&key_bytes(key), bytes_of(&unwritten), MapFlags::ANY);
            self.state.ring_labels(put.is_err());
        }
        Ok(done)
    }

    fn remove_entry(&mut self, key: tg_label_key) -> io::Result<()> {
        let known = self.entry(key)?;
        if written(self.labels.delete(&key_bytes(key)))?
            && let Some(known) = known
        {
            self.shares.give(Room::Labels, known.share);
        }
        Ok(())
    }

    fn share(&self, holder: Holder) -> Place {
        self.shares.of(holder)
    }

    fn leave_out(&mut self, share: Place) {
        self.shares.leave_label(share);
    }

    fn uuid(&self, device: u32) -> io::Result<Option<Uuid>> {
        Ok(self.superblock(device)?.map(|found| found.uuid))
    }

    fn made_since(&self, device: u32) -> io::Result<Option<u32>> {
        let new = |found: &tg_superblock| found.flags & TG_SUPERBLOCK_NEW != 0;
        Ok(self.superblock(device)?.filter(new).map(|found| found.number))
    }

    fn take_unwritten(&mut self) -> io::Result<Vec<(tg_label_key, Unwritten)>> {
        let taken = self.unwritten.lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
        let taken = taken.map_err(io::Error::other)?;
        let labels = taken.filter_map(|(key, value)| {
            let (uuid, sid) = value.split_first_chunk::<16>()?;
            let [sid] = words(sid)?;
            Some((key_of(&key)?, Unwritten { sid, uuid: *uuid }))
        });
        Ok(labels.collect())
    }

    fn set_walked(&mut self, device: u32) -> io::Result<()> {
        // A program may write the entry at the same time.
        for _ in 0..MAX_ATTEMPTS {
            match self.superblock(device)? {
                Some(found) if was_walked(&found) => {
                    self.walked.add(device);
                    return self.meet(&found.uuid, found.number, When::Always);
                }
                Some(found) => {
                    let walked = tg_superblock { flags: found.flags | TG_SUPERBLOCK_WALKED, ..found };
                    self.put_superblock(device, &walked, When::Present)?;
                }
                None => {
                    let walked = tg_superblock { flags: TG_SUPERBLOCK_WALKED, ..Default::default() };
                    self.put_superblock(device, &walked, When::Absent)?;
                }
            };
        }
        Err(io::Error::other(format!("the entry of device {device} in superblocks keeps changing")))
    }

    fn entries(
        &self,
        wanted: &mut dyn FnMut(&tg_label_key, &tg_label_value) -> bool,
    ) -> io::Result<Vec<(tg_label_key, tg_label_value)>> {
        let all = self.labels.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(io::Error::other)?;
        let entries = all.filter_map(|(key, value)| Some((key_of(&key)?, value_of(&value)?)));
        Ok(entries.filter(|(key, value)| wanted(key, value)).collect())
    }
}

impl KernelMaps {
    /// Makes the label of a plain inode one that is in its storage.
    fn settle(&self, file: BorrowedFd<'_>) {
        self.state.settle(|| {
            let _refused = fstatfs(file);
        });
    }

    fn put_entry(&self, key: &[u8], value: tg_label_value, when: When) -> io::Result<bool> {
        if let Some(known) = self.labels.lookup(key, MapFlags::ANY).map_err(io::Error::other)? {
            let share = value_of(&known).map_or(value.share, |known| known.share);
            let value = tg_label_value { share, ..value };
            return match when {
                When::Absent => Ok(false),
                _ => written(self.labels.update(key, bytes_of(&value), MapFlags::EXIST)),
            };
        }
        if when == When::Present {
            return Ok(false);
        }
        if !self.shares.take(Room::Labels, value.share) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, USED_UP));
        }
        // A program may have written the entry first.
        let entered = written(self.labels.update(key, bytes_of(&value), MapFlags::NO_EXIST));
        if !matches!(entered, Ok(true)) {
            self.shares.give(Room::Labels, value.share);
        }
        entered
    }

    /// Takes the directories in which something was made since the last call, with their labels.
    pub fn take_active(&self) -> io::Result<Vec<(Identity, Sid)>> {
        let taken = self.active.lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
        let taken = taken.map_err(io::Error::other)?;
        let labels = taken.filter_map(|(key, value)| {
            let [sid] = words(&value)?;
            Some((key_of(&key)?.into(), sid))
        });
        Ok(labels.collect())
    }

    /// Those of the devices for which `wanted` is true whose file systems keep labels that are known.
    pub fn kept(&self, wanted: impl Fn(u32) -> bool) -> io::Result<Vec<u32>> {
        let find = |device| match wanted(device) {
            true => Ok(self.superblock(device)?.filter(was_walked).map(|found| found.behaviour == TG_FS_XATTR)),
            false => Ok(Some(false)),
        };
        let walked = self.walked.each(|| self.search_walked(), find)?;
        Ok(walked.into_iter().filter_map(|(device, is_kept)| is_kept.then_some(device)).collect())
    }

    /// The devices of file systems that were walked: all places of the map are looked at.
    fn search_walked(&self) -> io::Result<BTreeSet<u32>> {
        let all = self.superblocks.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(io::Error::other)?;
        let walked = all.filter(|(_, value)| superblock_of(value).as_ref().is_some_and(was_walked));
        Ok(walked.filter_map(|(key, _)| key.first_chunk().map(|device| u32::from_ne_bytes(*device))).collect())
    }

    /// What is known of a file system.
    pub fn superblock(&self, device: u32) -> io::Result<Option<tg_superblock>> {
        let key = u64::from(device).to_ne_bytes();
        let value = self.superblocks.lookup(&key, MapFlags::ANY).map_err(io::Error::other)?;
        Ok(value.as_deref().and_then(superblock_of))
    }

    /// Labels of this file system are known, here or in notes: what its files' attributes say is not all. `number`:
    /// that of `tg_superblock`; 0: it has none.
    pub fn meet(&self, uuid: &Uuid, number: u32, when: When) -> io::Result<()> {
        match *uuid == Uuid::default() {
            true => Ok(()),
            false => written(self.uuids.update(uuid, &number.to_ne_bytes(), when.flags())).map(drop),
        }
    }

    /// The UUID of the file system with a number, even if it is mounted no more; `None`: nothing is known of it.
    pub fn uuid_of(&self, number: u32) -> io::Result<Option<Uuid>> {
        let mut all = self.uuids.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(io::Error::other)?;
        let found = all.find(|(_, value)| number != 0 && words(value) == Some([number]));
        Ok(found.and_then(|(uuid, _)| uuid.try_into().ok()))
    }

    /// Gives all files of a file system one label, whatever their own are; 0: they have their own again. Returns whether
    /// the file system is one that programs have seen.
    pub fn set_context(&self, device: u32, context: Sid) -> io::Result<bool> {
        for _ in 0..MAX_ATTEMPTS {
            match self.superblock(device)? {
                Some(found) if found.address != 0 => {
                    if self.put_superblock(device, &tg_superblock { context, ..found }, When::Present)? {
                        return Ok(true);
                    }
                }
                _ => return Ok(false),
            }
        }
        Err(io::Error::other(format!("the entry of device {device} in superblocks keeps changing")))
    }

    fn put_superblock(&self, device: u32, value: &tg_superblock, when: When) -> io::Result<bool> {
        let key = u64::from(device).to_ne_bytes();
        written(self.superblocks.update(&key, bytes_of(value), when.flags()))
    }
}

fn was_walked(known: &tg_superblock) -> bool {
    known.flags & TG_SUPERBLOCK_WALKED != 0
}

/// Whether a label is of the file system that has its device now, and not of an earlier one.
pub fn is_of(label: &tg_label_value, known: &tg_superblock) -> bool {
    // A label without a number was read by a walk, before which those of earlier ones are removed.
    let walked = was_walked(known);
    if label.mounted == 0 { walked } else { label.mounted == known.number }
}

/// The files that have a label of their own, and one of these.
pub fn of_labels(pins: &Pins, wanted: &HashSet<Sid>) -> io::Result<Vec<Identity>> {
    let labels = programs::map(pins, "labels").map_err(io::Error::other)?;
    let all = labels.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(io::Error::other)?;
    let found = all.filter(|(_, value)| value_of(value).is_some_and(|value| wanted.contains(&bare(value.sid))));
    Ok(found.filter_map(|(key, _)| key_of(&key)).map(Identity::from).collect())
}

/// Whether an entry was written. What `when` forbids is no failure.
fn written(result: libbpf_rs::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(cause) if matches!(cause.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Ok(false),
        Err(cause) => Err(io::Error::other(cause)),
    }
}

fn words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let (words, _) = bytes.as_chunks::<4>();
    Some(<[[u8; 4]; N]>::try_from(words).ok()?.map(u32::from_ne_bytes))
}

fn key_bytes(key: tg_label_key) -> Vec<u8> {
    let tg_label_key { inode, subvolume, device, generation } = key;
    [&inode.to_ne_bytes()[..], &subvolume.to_ne_bytes(), &device.to_ne_bytes(), &generation.to_ne_bytes()].concat()
}

fn key_of(bytes: &[u8]) -> Option<tg_label_key> {
    let [_, _, _, _, device, generation] = words(bytes)?;
    let (numbers, _) = bytes.as_chunks::<8>();
    let [inode, subvolume] = [*numbers.first()?, *numbers.get(1)?].map(u64::from_ne_bytes);
    Some(tg_label_key { inode, subvolume, device, generation })
}

fn superblock_of(bytes: &[u8]) -> Option<tg_superblock> {
    let (first, uuid) = bytes.split_at_checked(32)?;
    let [low, high, generation, sid, behaviour, node, flags, number] = words(first)?;
    let address = u64::from(low) | u64::from(high) << 32;
    let (uuid, rest) = uuid.split_first_chunk()?;
    let [context, reserved] = words(rest)?;
    Some(tg_superblock { address, generation, sid, behaviour, node, flags, number, uuid: *uuid, context, reserved })
}

fn value_of(bytes: &[u8]) -> Option<tg_label_value> {
    let [sid, rest, mounted] = words(bytes)?;
    let [dirty, share] = [rest as u16, (rest >> 16) as u16];
    Some(tg_label_value { sid, dirty, share, mounted })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::labels::object::Object;

    /// The maps, without a kernel; inodes by number.
    #[derive(Debug, Default)]
    pub(crate) struct MemoryMaps {
        pub(crate) inodes: HashMap<u64, tg_inode>,
        pub(crate) labels: HashMap<Identity, tg_label_value>,
        pub(crate) room: Option<usize>,
        pub(crate) walked: std::collections::HashSet<u32>,
        pub(crate) unwritten: Vec<(tg_label_key, Unwritten)>,
        pub(crate) uuid: Uuid,
        pub(crate) made_since: Option<u32>,
    }

    fn allowed(when: When, there: bool) -> bool {
        when == When::Always || (when == When::Present) == there
    }

    impl Maps for MemoryMaps {
        fn inode(&self, file: BorrowedFd<'_>) -> io::Result<Option<tg_inode>> {
            Ok(self.inodes.get(&Object::anywhere(file)?.inode()).copied())
        }

        fn set_inode(&mut self, file: BorrowedFd<'_>, value: tg_inode, when: When) -> io::Result<bool> {
            let inode = Object::anywhere(file)?.inode();
            let may = allowed(when, self.inodes.contains_key(&inode));
            may.then(|| self.inodes.insert(inode, value));
            Ok(may)
        }

        fn entry(&self, key: tg_label_key) -> io::Result<Option<tg_label_value>> {
            Ok(self.labels.get(&Identity::from(key)).copied())
        }

        fn set_entry(&mut self, key: tg_label_key, value: tg_label_value, when: When) -> io::Result<bool> {
            let there = self.labels.contains_key(&Identity::from(key));
            if !there && self.room.is_some_and(|room| self.labels.len() >= room) {
                return Err(io::Error::from_raw_os_error(libc::E2BIG));
            }
            let may = allowed(when, there);
            may.then(|| self.labels.insert(Identity::from(key), value));
            if may && value.dirty != 0 {
                self.unwritten.push((key, Unwritten { sid: value.sid, uuid: self.uuid }));
            }
            Ok(may)
        }

        fn take_unwritten(&mut self) -> io::Result<Vec<(tg_label_key, Unwritten)>> {
            Ok(std::mem::take(&mut self.unwritten))
        }

        fn remove_entry(&mut self, key: tg_label_key) -> io::Result<()> {
            self.labels.remove(&Identity::from(key));
            Ok(())
        }

        fn share(&self, _: Holder) -> Place {
            0
        }

        fn leave_out(&mut self, _: Place) {}

        fn uuid(&self, _: u32) -> io::Result<Option<Uuid>> {
            Ok(Some(self.uuid))
        }

        fn made_since(&self, _: u32) -> io::Result<Option<u32>> {
            Ok(self.made_since)
        }

        fn set_walked(&mut self, device: u32) -> io::Result<()> {
            self.walked.insert(device);
            Ok(())
        }

        fn entries(
            &self,
            wanted: &mut dyn FnMut(&tg_label_key, &tg_label_value) -> bool,
        ) -> io::Result<Vec<(tg_label_key, tg_label_value)>> {
            let all = self.labels.iter().map(|(identity, value)| ((*identity).into(), *value));
            Ok(all.filter(|(key, value)| wanted(key, value)).collect())
        }
    }

    #[test]
    fn reads_what_it_writes_as_the_programs_do() {
        let (inode, subvolume) = (0x1122_3344_5566_7788, 0x0123_4567_89ab_cdef);
        let key = tg_label_key { inode, subvolume, device: 0x99aa_bbcc, generation: 0xddee_ff00 };
        let bytes = key_bytes(key);
        assert_eq!(bytes.len(), size_of::<tg_label_key>());
        assert_eq!(key_of(&bytes), Some(key));
        assert_eq!(bytes, tollgate_abi::bytes_of(&key));
        assert_eq!((key_of(&bytes[1..]), value_of(&bytes)), (None, None));
    }

    #[test]
    fn takes_no_label_of_an_earlier_file_system_for_one_of_the_present() {
        let known = |number, walked: bool| tg_superblock {
            number,
            flags: if walked { TG_SUPERBLOCK_WALKED } else { 0 },
            ..Default::default()
        };
        let label = |mounted| tg_label_value { mounted, ..Default::default() };
        for (mounted, number, walked, expected) in [
            (3, 3, false, true),
            (3, 3, true, true),
            (2, 3, false, false),
            (2, 3, true, false),
            (0, 3, false, false),
            (0, 3, true, true),
        ] {
            assert_eq!(is_of(&label(mounted), &known(number, walked)), expected, "{mounted} {number} {walked}");
        }
    }
}
