//! What became of packets, as the programs of network devices count it.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapFlags};
use tollgate_client::network::FATES;

use crate::programs::{self, Pins, ProgramsError};

/// The map of the counters, by `enum tg_fate`.
const MAP: &str = "packets";

/// Packets by the names of [`FATES`], on all processors together. All are 0 if no packet has been looked at yet.
pub fn packets(pins: &Pins) -> Result<BTreeMap<String, u64>, ProgramsError> {
    let mut counts: BTreeMap<String, u64> = FATES.iter().map(|fate| (fate.name.to_owned(), 0)).collect();
    if !pins.map(MAP).exists() {
        return Ok(counts);
    }
    let map = programs::map(pins, MAP)?;
    for fate in FATES {
        let values = map.lookup_percpu(&fate.number.to_ne_bytes(), MapFlags::ANY);
        let values = values.map_err(programs::refused("read the counters of packets"))?.unwrap_or_default();
        counts.insert(fate.name.to_owned(), sum(&values));
    }
    Ok(counts)
}

fn sum(values: &[Vec<u8>]) -> u64 {
    let counts = values.iter().filter_map(|value| value.get(..8)?.try_into().ok().map(u64::from_ne_bytes));
    counts.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;

    #[test]
    fn adds_up_what_processors_have_counted() {
        let values = [3_u64, 0, 1 << 40].map(|count| count.to_ne_bytes().to_vec());
        assert_eq!(sum(&values), (1 << 40) + 3);
    }

    #[test]
    fn has_counted_nothing_where_no_program_is() {
        let folder = tempfile::tempdir().unwrap();
        let counts = packets(&Pins::of(File::open(folder.path()).unwrap().as_fd())).unwrap();
        assert!(counts.len() == FATES.len() && counts.values().all(|count| *count == 0), "{counts:?}");
    }
}
