//! The checks of each object manager of Tollgate's, by what answered them: the programs' own counts.
//!
//! They are mapped before this process is confined, because no confined process may open them.

use std::{
    io,
    num::NonZeroUsize,
    os::fd::AsFd,
    path::Path,
    ptr::{self, NonNull},
};

use libbpf_rs::MapHandle;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use serde::{Deserialize, Serialize};
use tollgate_abi::{
    MANAGERS,
    enforcer::{TG_MANAGERS, tg_state, tg_statistics},
    paths,
};

use crate::{
    Error,
    asked::{Asked, Record},
    error::Context,
};

/// The pin of the programs' global variables.
const STATE: &str = paths::PINNED_BSS;

/// The decisions in a workload's operations, including what restores things between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The number of operations.
    pub operations: u64,
    /// Object managers with at least one check.
    pub managers: Vec<Manager>,
    /// The checks one by one, as far as there was room for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
}

/// The checks of one object manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// The object manager's name.
    pub name: String,
    /// Checks that the access vector cache answered.
    pub cached: u64,
    /// Checks that the security server answered, by the policy's tables.
    pub tables: u64,
    /// Checks of both kinds that were denied.
    pub denied: u64,
}

/// The counts of all object managers.
pub(crate) type All = [tg_statistics; TG_MANAGERS as usize];

/// The counts, mapped, and the record of checks.
#[derive(Debug)]
pub(crate) struct Counts {
    state: NonNull<tg_state>,
    record: Record,
}

impl Counts {
    /// Maps the programs' counts. Only programs of this version have this layout.
    pub(crate) fn open() -> Result<Counts, Error> {
        let map = MapHandle::from_pinned_path(Path::new(STATE)).map_err(|cause| io::Error::other(cause.to_string()));
        let map = map.context(format!("open {STATE}"))?;
        // SAFETY: a new mapping, chosen by the kernel, which refuses one that is longer than the map.
        let memory = unsafe { mmap(None, MAPPING_LENGTH, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, map.as_fd(), 0) };
        Ok(Counts { state: memory.context(format!("map {STATE}"))?.cast(), record: Record::open()? })
    }

    /// The checks since they were last taken.
    pub(crate) fn asked(&self) -> Result<Asked, Error> {
        self.record.take()
    }

    /// All counts so far.
    pub(crate) fn read(&self) -> All {
        // SAFETY: the array lies in the mapping; a count that is read while it grows is an older or a newer one.
        unsafe { ptr::read_volatile(&raw const (*self.state.as_ptr()).statistic) }
    }
}

/// The mapping's length, of whole pages.
const MAPPING_LENGTH: NonZeroUsize = match NonZeroUsize::new(size_of::<tg_state>().next_multiple_of(4096)) {
    Some(length) => length,
    None => unreachable!(),
};

impl Drop for Counts {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `open` made, and nothing borrows from it.
        let _ = unsafe { munmap(self.state.cast(), MAPPING_LENGTH.get()) };
    }
}

/// The managers with checks between two readings.
pub(crate) fn managers(before: &All, after: &All) -> Vec<Manager> {
    let counts = before.iter().zip(after).zip(0..).filter(|((before, after), _)| after.asked > before.asked);
    let manager = |((before, after), number): ((&tg_statistics, &tg_statistics), u32)| Manager {
        name: MANAGERS.iter().find(|(own, _)| *own == number).map_or("others", |(_, name)| *name).to_owned(),
        cached: after.cached - before.cached,
        tables: after.tables - before.tables,
        denied: after.denied - before.denied,
    };
    counts.map(manager).collect()
}

#[cfg(test)]
mod tests {
    use tollgate_abi::enforcer::TG_MANAGER_PROCESS;

    use super::*;

    #[test]
    fn tells_what_came_since_of_those_who_were_asked() {
        let mut before = All::default();
        before[TG_MANAGER_PROCESS as usize] = tg_statistics { asked: 5, cached: 4, tables: 1, denied: 1 };
        before[0] = tg_statistics { asked: 7, cached: 7, tables: 0, denied: 0 };
        let mut after = before;
        after[TG_MANAGER_PROCESS as usize] = tg_statistics { asked: 9, cached: 6, tables: 3, denied: 1 };
        let expected = Manager { name: "processes".to_owned(), cached: 2, tables: 2, denied: 0 };
        assert_eq!(managers(&before, &after), [expected]);
    }
}
