//! The entries that are looked up by key: a hash table with open addressing (`tg_find`).

use std::{collections::BTreeMap, iter};

use tollgate_abi::tables::{TG_PROBES, tg_entry, tg_kind};

use super::limit::TableLimit;

/// The multiplier of `tg_find`: 2^64 over the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of a table's entry, as `tg_key` makes it.
pub(super) fn key(kind: tg_kind, a: u32, b: u32, c: u32) -> u64 {
    let word = |number: u32| u64::from(number & 0xffff);
    u64::from(kind) << 48 | word(a) << 32 | word(b) << 16 | word(c)
}

/// Keys and their values.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<u64, u64>);

/// Keys in their slots.
#[derive(Debug)]
pub(super) struct Placed {
    /// The slots, and `TG_PROBES` more, so that no search wraps around.
    pub(super) slots: Vec<tg_entry>,
    /// By how many bits a hash is shifted to give its slot.
    pub(super) shift: u32,
}

impl Keys {
    /// Gives `key` a value. The first value stays, like the first rule found in libsepol's lists.
    pub(super) fn insert(&mut self, key: u64, value: u64) {
        self.0.entry(key).or_insert(value);
    }

    /// Places the keys in at most `room` bytes. Half of the slots stay free if possible, because most look-ups miss.
    pub(super) fn place(&self, room: usize) -> Result<Placed, TableLimit> {
        let spacious = self.0.len().max(1).next_power_of_two() * 2;
        iter::successors(Some(spacious), |slots| slots.checked_mul(2))
            .take_while(|slots| bytes(*slots) <= room)
            .chain(iter::once(spacious / 2).filter(|slots| *slots > 1 && bytes(*slots) <= room))
            .find_map(|slots| self.place_in(slots))
            .ok_or(TableLimit::Keys { keys: self.0.len(), room })
    }

    /// Places the keys in `slots` slots, a power of two above 1, in the order of their hashes. By that the farthest key
    /// is as near to its own slot as any order allows, and there is no free slot between them. `None`: one is too far.
    fn place_in(&self, slots: usize) -> Option<Placed> {
        let shift = u64::BITS - slots.ilog2();
        let hash = |key: u64| key.wrapping_mul(MULTIPLIER);
        let mut entries: Vec<tg_entry> = self.0.iter().map(|(&key, &value)| tg_entry { key, value }).collect();
        entries.sort_unstable_by_key(|entry| hash(entry.key));
        let mut placed = vec![tg_entry::default(); slots + TG_PROBES as usize];
        let mut next = 0;
        for entry in entries {
            let own = (hash(entry.key) >> shift) as usize;
            let slot = next.max(own);
            if slot - own >= TG_PROBES as usize {
                return None;
            }
            placed[slot] = entry;
            next = slot + 1;
        }
        Some(Placed { slots: placed, shift })
    }
}

/// The size of this many slots, in bytes.
fn bytes(slots: usize) -> usize {
    slots.saturating_add(TG_PROBES as usize).saturating_mul(size_of::<tg_entry>())
}
