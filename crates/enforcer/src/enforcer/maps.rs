//! The maps that the daemon uses, and how it puts values into them.

use std::collections::HashSet;

use libbpf_rs::{MapCore, MapHandle};

use crate::programs::{self, Pins, ProgramsError};

/// The maps that the daemon uses, opened.
#[derive(Debug)]
pub struct Maps {
    /// What maps of generations are made after.
    pub template: MapHandle,
    /// The generations in force and before.
    pub generations: MapHandle,
    /// SIDs by context and generation.
    pub sids: MapHandle,
    /// Labels of tasks.
    pub tasks: MapHandle,
    /// Labels of inodes.
    pub inodes: MapHandle,
    /// File systems that have been seen.
    pub superblocks: MapHandle,
    /// Durable labels.
    pub labels: MapHandle,
    /// File systems by name.
    pub filesystems: MapHandle,
    /// Paths of `genfscon`.
    pub genfs: MapHandle,
    /// Events.
    pub events: MapHandle,
}

impl Maps {
    pub(super) fn open(pins: &Pins) -> Result<Self, ProgramsError> {
        let map = |name| programs::map(pins, name);
        Ok(Self {
            template: map("generation_template")?,
            generations: map("generations")?,
            sids: map("sids")?,
            tasks: map("tasks")?,
            inodes: map("inodes")?,
            superblocks: map("superblocks")?,
            labels: map("labels")?,
            filesystems: map("filesystems")?,
            genfs: map("genfs")?,
            events: map("events")?,
        })
    }
}

/// Removes what an earlier policy said.
pub(super) fn retain(map: &MapHandle, wanted: &HashSet<&[u8]>) {
    let old: Vec<Vec<u8>> = map.keys().filter(|key| !wanted.contains(key.as_slice())).collect();
    for key in old {
        // One that is gone already is gone.
        let _ = map.delete(&key);
    }
}

/// A value of a map as bytes.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    let pointer: *const T = value;
    // SAFETY: a plain value has no padding, so each byte of it is initialised.
    unsafe { std::slice::from_raw_parts(pointer.cast(), size_of::<T>()) }
}

/// Structures of integers without gaps, as maps hold them.
///
/// # Safety
///
/// The type must have no padding, and any bytes must be one of its values.
pub(crate) unsafe trait Plain {}

macro_rules! plain {
    ($($name:ident)*) => { $(
        // SAFETY: enforcer.h has it without gaps, of integers only.
        unsafe impl Plain for tollgate_abi::enforcer::$name {}
    )* };
}
plain!(tg_guarded tg_sid_key tg_fs_name tg_filesystem tg_genfs_key tg_genfs_value tg_task tg_inode tg_label_key tg_label_value tg_superblock);
