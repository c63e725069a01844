//! The programs as they were compiled, once for each size that decision tables may have.
//!
//! A program masks each access to the tables with their size, so the size is part of it. The memory of a map is the kernel's
//! and is taken whole, so most policies get the smaller one.

use libbpf_rs::{MapCore, MapHandle, ObjectBuilder, OpenObject};
use tollgate_abi::{enforcer::tg_generation, tables::TG_CAPACITY};

use super::{GUARD, Pins, ProgramsError, listen, map};

/// Object files for tables of one size.
#[derive(Debug)]
pub(super) struct Compiled {
    /// The most bytes of tables, `TG_CAPACITY` of these programs.
    capacity: usize,
    /// `bpf/enforcer.bpf.c`.
    enforcer: &'static [u8],
    /// `bpf/datapath.bpf.c`.
    datapath: &'static [u8],
}

/// All, the smallest tables first.
static ALL: [Compiled; 2] = [
    Compiled {
        capacity: 4 << 20,
        enforcer: include_bytes!(concat!(env!("OUT_DIR"), "/enforcer-4.bpf.o")),
        datapath: include_bytes!(concat!(env!("OUT_DIR"), "/datapath-4.bpf.o")),
    },
    Compiled {
        capacity: TG_CAPACITY as usize,
        enforcer: include_bytes!(concat!(env!("OUT_DIR"), "/enforcer-32.bpf.o")),
        datapath: include_bytes!(concat!(env!("OUT_DIR"), "/datapath-32.bpf.o")),
    },
];

/// Any of them: their hooks are the same.
pub(super) fn any() -> &'static Compiled {
    &ALL[0]
}

/// Those for a policy with so many bytes of tables, of which a quarter more stays free for the policies to come.
fn of(bytes: usize) -> &'static Compiled {
    let fits = |compiled: &&Compiled| bytes + bytes / 4 <= compiled.capacity;
    ALL.iter().find(fits).unwrap_or(&ALL[ALL.len() - 1])
}

/// The size of the tables in a map of a generation.
pub(crate) fn capacity(generation: &MapHandle) -> usize {
    (generation.value_size() as usize).saturating_sub(size_of::<tg_generation>())
}

/// Those that belong to the pinned maps; if there are no maps, those for so many bytes of tables.
pub(super) fn beside(pins: &Pins, bytes: usize) -> Result<&'static Compiled, ProgramsError> {
    if !pins.map(TEMPLATE).exists() {
        return Ok(of(bytes));
    }
    let pinned = capacity(&map(pins, TEMPLATE)?);
    ALL.iter().find(|compiled| compiled.capacity == pinned).ok_or(ProgramsError::AnotherVersion)
}

/// Whether the pinned maps, if there are any, are those for a policy with so many bytes of tables.
pub(crate) fn are_for(pins: &Pins, bytes: usize) -> bool {
    beside(pins, bytes).is_ok_and(|pinned| pinned.capacity == of(bytes).capacity)
}

/// The map whose properties all maps of generations copy.
const TEMPLATE: &str = "generation_template";

impl Compiled {
    /// The programs of hooks.
    pub(super) fn enforcer(&self) -> Result<OpenObject, ProgramsError> {
        listen("read the programs", || self.open())
    }

    /// The same, by a thread whose errors somebody else reports.
    pub(super) fn open(&self) -> libbpf_rs::Result<OpenObject> {
        ObjectBuilder::default().name("tollgate")?.open_memory(self.enforcer)
    }

    /// What network devices run, with the same maps.
    pub(super) fn datapath(&self) -> Result<OpenObject, ProgramsError> {
        let open = || ObjectBuilder::default().name("tollgate")?.open_memory(self.datapath);
        listen("read the programs of network devices", open)
    }
}

/// The bytes of all programs.
pub(super) fn bytes() -> impl Iterator<Item = &'static u8> {
    ALL.iter().flat_map(|compiled| compiled.enforcer.iter().chain(compiled.datapath)).chain(GUARD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_maps_of_the_size_with_which_programs_mask() {
        for compiled in &ALL {
            let object = compiled.enforcer().unwrap();
            let template = object.maps().find(|map| map.name() == TEMPLATE).unwrap();
            assert_eq!(template.value_size() as usize, size_of::<tg_generation>() + compiled.capacity);
        }
    }

    #[test]
    fn leaves_room_for_the_policies_to_come() {
        assert_eq!(of(3 << 20).capacity, 4 << 20);
        assert_eq!(of(7 << 19).capacity, 32 << 20);
        assert_eq!(of(32 << 20).capacity, 32 << 20);
    }
}
