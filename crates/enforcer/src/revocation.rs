//! What processes hold that the policy in force denies: files that they opened, and memory to which they mapped files,
//! when another policy permitted it.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
};

use tollgate_abi::enforcer::tg_held;
use tollgate_client::status::Revoked;
use zerocopy::FromBytes;

use crate::programs::{Pins, ProgramsError};

/// The iterators of `bpf/programs/revocation.h`.
const ITERATORS: [&str; 2] = ["held_files", "held_memory"];

/// What is held.
#[derive(Debug, Clone, Default)]
pub struct Held(Vec<tg_held>);

impl Held {
    /// Examines all processes.
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

    /// What is certainly held. For threads with contexts of their own, this is not known.
    fn denied(&self) -> impl Iterator<Item = &tg_held> {
        self.0.iter().filter(|held| held.denied != 0)
    }

    /// The memory among it.
    pub fn memory(&self) -> impl Iterator<Item = &tg_held> {
        self.denied().filter(|held| held.memory != 0)
    }

    /// How much is held.
    #[must_use]
    pub fn count(&self) -> Revoked {
        let processes: BTreeSet<u32> = self.denied().map(|held| held.process).collect();
        let mappings = self.memory().count() as u64;
        Revoked { descriptors: self.denied().count() as u64 - mappings, mappings, processes: processes.len() as u64 }
    }
}

/// Reads the records that an iterator has written.
fn parse(bytes: &[u8], held: &mut Vec<tg_held>) -> io::Result<()> {
    let records = bytes.chunks(size_of::<tg_held>()).map(tg_held::read_from_bytes);
    for record in records {
        held.push(record.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "incomplete record"))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

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
        let bytes = one.as_bytes();
        let mut read = Vec::new();
        parse(&[bytes, bytes].concat(), &mut read).unwrap();
        assert_eq!(read.iter().map(|held| held.process).collect::<Vec<_>>(), [7, 7]);
        assert!(parse(&bytes[..9], &mut read).is_err());
    }
}
