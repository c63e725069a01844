//! What processes hold that the policy in force denies: files that were opened, and memory that files were mapped to, when
//! another policy permitted it.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
};

use serde::{Deserialize, Serialize};
use tollgate_abi::enforcer::tg_held;

use crate::programs::{Pins, ProgramsError};

/// The iterators of `bpf/programs/revocation.h`.
const ITERATORS: [&str; 2] = ["held_files", "held_memory"];

/// What is held.
#[derive(Debug, Clone, Default)]
pub struct Held(Vec<tg_held>);

/// How much is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Descriptors: what is done by them is denied.
    pub descriptors: u64,
    /// Mappings of files: memory, which is used without asking.
    pub mappings: u64,
    /// Processes that have either.
    pub processes: u64,
}

impl Held {
    /// Looks at all processes.
    pub fn look(pins: &Pins) -> Result<Self, ProgramsError> {
        let mut held = Vec::new();
        for iterator in ITERATORS {
            let path = pins.inquiry(iterator);
            let mut bytes = Vec::new();
            let read = File::open(&path).and_then(|mut iterator| iterator.read_to_end(&mut bytes));
            read.and_then(|_| parse(&bytes, &mut held)).map_err(|cause| ProgramsError::Pins { path, cause })?;
        }
        Ok(Self(held))
    }

    /// Whether nobody holds anything, as far as is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is known to be held: threads with contexts of their own are not known.
    fn denied(&self) -> impl Iterator<Item = &tg_held> {
        self.0.iter().filter(|held| held.denied != 0)
    }

    /// What of it is memory.
    pub fn memory(&self) -> impl Iterator<Item = &tg_held> {
        self.denied().filter(|held| held.memory != 0)
    }

    /// How much it is.
    #[must_use]
    pub fn count(&self) -> Revoked {
        let processes: BTreeSet<u32> = self.denied().map(|held| held.process).collect();
        let mappings = self.memory().count() as u64;
        Revoked { descriptors: self.denied().count() as u64 - mappings, mappings, processes: processes.len() as u64 }
    }
}

/// The records that an iterator has written.
fn parse(bytes: &[u8], held: &mut Vec<tg_held>) -> io::Result<()> {
    let records = bytes.chunks_exact(size_of::<tg_held>());
    if !records.remainder().is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "half a record"));
    }
    // SAFETY: the structure consists of integers, of which all bytes are values, and there are as many bytes.
    held.extend(records.map(|record| unsafe { record.as_ptr().cast::<tg_held>().read_unaligned() }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(process: u32, memory: u32, denied: u32) -> tg_held {
        tg_held { process, memory, denied, ..tg_held::default() }
    }

    #[test]
    fn counts_what_is_held_and_by_how_many() {
        let all = Held(vec![held(1, 0, 2), held(1, 1, 2), held(2, 0, 4), held(3, 0, 0)]);
        assert_eq!(all.count(), Revoked { descriptors: 2, mappings: 1, processes: 2 });
        assert!(!all.is_empty() && Held::default().is_empty());
        // A process whose threads are not known holds something, perhaps.
        assert!(!Held(vec![held(3, 0, 0)]).is_empty());
    }

    #[test]
    fn reads_records_and_refuses_halves() {
        let one = held(7, 1, 3);
        // SAFETY: a structure of integers without gaps.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const one).cast::<u8>(), size_of::<tg_held>()) };
        let mut read = Vec::new();
        parse(&[bytes, bytes].concat(), &mut read).unwrap();
        assert_eq!(read.iter().map(|held| held.process).collect::<Vec<_>>(), [7, 7]);
        assert!(parse(&bytes[..9], &mut read).is_err());
    }
}
