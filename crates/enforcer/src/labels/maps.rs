//! Where the kernel finds labels: inode storage, which is in force, and the map `labels`, which outlives the inode in
//! memory.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use tollgate_abi::enforcer::{TG_SID_MACHINE, tg_inode, tg_label_key, tg_label_value};

use crate::labels::{Label, Origin, Sid, Sink, object::Object};

/// When an entry is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// In any case.
    Always,
    /// Where there is none.
    Absent,
    /// Where there is one.
    Present,
}

/// The two maps. What writes tells whether it wrote, for [`When`] may forbid it.
pub trait Maps {
    /// The label in force of the file of a descriptor.
    fn inode(&self, file: BorrowedFd<'_>) -> io::Result<Option<tg_inode>>;
    /// Sets it.
    fn set_inode(&mut self, file: BorrowedFd<'_>, value: tg_inode, when: When) -> io::Result<bool>;
    /// A durable label.
    fn entry(&self, key: tg_label_key) -> io::Result<Option<tg_label_value>>;
    /// Sets it.
    fn set_entry(&mut self, key: tg_label_key, value: tg_label_value, when: When) -> io::Result<bool>;
    /// Removes it, if it is there.
    fn remove_entry(&mut self, key: tg_label_key) -> io::Result<()>;
    /// All durable labels that `wanted` picks. What the kernel adds meanwhile may be missing.
    fn entries(
        &self,
        wanted: &mut dyn FnMut(&tg_label_key, &tg_label_value) -> bool,
    ) -> io::Result<Vec<(tg_label_key, tg_label_value)>>;
}

/// The maps of the running enforcer.
#[derive(Debug)]
pub struct KernelMaps {
    /// `inodes`.
    pub inodes: MapHandle,
    /// `labels`.
    pub labels: MapHandle,
}

/// Entries that one system call reads.
const BATCH: u32 = 4096;

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
        let value = self.inodes.lookup(&file.as_raw_fd().to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
        Ok(value.and_then(|bytes| {
            let [sid, class, task_sid, node] = words(&bytes)?;
            Some(tg_inode { sid, class, task_sid, node })
        }))
    }

    fn set_inode(&mut self, file: BorrowedFd<'_>, value: tg_inode, when: When) -> io::Result<bool> {
        let tg_inode { sid, class, task_sid, node } = value;
        let value = [sid, class, task_sid, node].map(u32::to_ne_bytes).concat();
        written(self.inodes.update(&file.as_raw_fd().to_ne_bytes(), &value, when.flags()))
    }

    fn entry(&self, key: tg_label_key) -> io::Result<Option<tg_label_value>> {
        let value = self.labels.lookup(&key_bytes(key), MapFlags::ANY).map_err(io::Error::other)?;
        Ok(value.and_then(|bytes| value_of(&bytes)))
    }

    fn set_entry(&mut self, key: tg_label_key, value: tg_label_value, when: When) -> io::Result<bool> {
        let bytes = [value.sid, value.dirty].map(u32::to_ne_bytes).concat();
        written(self.labels.update(&key_bytes(key), &bytes, when.flags()))
    }

    fn remove_entry(&mut self, key: tg_label_key) -> io::Result<()> {
        written(self.labels.delete(&key_bytes(key))).map(|_| ())
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

/// Whether it was written: what `when` forbids is no failure.
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
    [&key.inode.to_ne_bytes()[..], &key.device.to_ne_bytes(), &key.generation.to_ne_bytes()].concat()
}

fn key_of(bytes: &[u8]) -> Option<tg_label_key> {
    let [_, _, device, generation] = words(bytes)?;
    let inode = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
    Some(tg_label_key { inode, device, generation })
}

fn value_of(bytes: &[u8]) -> Option<tg_label_value> {
    let [sid, dirty] = words(bytes)?;
    Some(tg_label_value { sid, dirty })
}

/// Labels files in the maps.
#[derive(Debug)]
pub struct MapSink<'m, M> {
    /// The maps.
    pub maps: &'m mut M,
}

impl<M: Maps> Sink for MapSink<'_, M> {
    fn label(&mut self, object: &Object<'_>, label: Label) -> io::Result<()> {
        let mut sid = label.sid;
        if label.is_own(object) {
            let key = object.identity().into();
            let value = tg_label_value { sid, dirty: u32::from(label.origin != Origin::Attribute) };
            // One that is there was written by a hook since, or by a daemon before us: it holds.
            if !self.maps.set_entry(key, value, When::Absent)? {
                sid = self.maps.entry(key)?.map_or(sid, |entry| entry.sid);
            }
        }
        let value = tg_inode { sid, class: 0, task_sid: TG_SID_MACHINE, node: label.node };
        self.maps.set_inode(object.file, value, When::Always).map(|_| ())
    }

    fn hold(&mut self, object: &Object<'_>, sid: Sid) -> io::Result<()> {
        let value = tg_inode { sid, class: 0, task_sid: TG_SID_MACHINE, node: 0 };
        self.maps.set_inode(object.file, value, When::Absent).map(|_| ())
    }
}
