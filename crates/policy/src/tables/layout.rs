//! The bytes of the tables, section by section.

use std::collections::HashMap;

use tollgate_abi::tables::{
    TG_CAPACITY, tg_class, tg_entry, tg_extended, tg_header, tg_named, tg_role, tg_step, tg_tuple, tg_type, tg_user,
};

use crate::model::Bits;

use super::limit::TableLimit;

/// An element of the tables.
///
/// # Safety
///
/// Every byte of it must have a value: it consists of integers, without padding. Its size must be a power of two, as
/// `TG_AT` needs.
pub(super) unsafe trait Element: Copy {}

macro_rules! elements {
    ($($element:ty),*) => {$(
        const _: () = assert!(size_of::<$element>().is_power_of_two());
        // SAFETY: an integer, or a structure of tables.h, where padding is explicit.
        unsafe impl Element for $element {}
    )*};
}

elements!(
    u8,
    u16,
    u32,
    tg_header,
    tg_tuple,
    tg_type,
    tg_class,
    tg_role,
    tg_user,
    tg_step,
    tg_extended,
    tg_entry,
    tg_named
);

/// Tables that are being made.
#[derive(Debug)]
pub(super) struct Layout {
    bytes: Vec<u8>,
    bit_maps: HashMap<Vec<u32>, u32>,
}

impl Layout {
    /// Begins with room for the header.
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; size_of::<tg_header>()], bit_maps: HashMap::new() }
    }

    /// Appends elements. Returns their offset, which is a multiple of their size.
    pub(super) fn push<E: Element>(&mut self, section: &'static str, elements: &[E]) -> Result<u32, TableLimit> {
        let at = self.bytes.len().next_multiple_of(size_of::<E>());
        let needs = at + size_of_val(elements);
        if needs > TG_CAPACITY as usize {
            return Err(TableLimit::Capacity { section, needs });
        }
        self.bytes.resize(at, 0);
        self.bytes.extend_from_slice(bytes_of(elements));
        // Lossless: what is in `bytes` is below TG_CAPACITY.
        Ok(at as u32)
    }

    /// Appends a bit map of the numbers up to `last`. Equal maps are stored once. Returns the offset.
    pub(super) fn bit_map(&mut self, bits: &Bits, last: usize) -> Result<u32, TableLimit> {
        let mut words: Vec<u32> = bits.0.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
        words.resize(last / 32 + 1, 0);
        if let Some(at) = self.bit_maps.get(&words) {
            return Ok(*at);
        }
        let at = self.push("sets of types and roles", &words)?;
        self.bit_maps.insert(words, at);
        Ok(at)
    }

    /// How many bytes are left for a section of `E`.
    pub(super) fn room<E: Element>(&self) -> usize {
        (TG_CAPACITY as usize).saturating_sub(self.bytes.len().next_multiple_of(size_of::<E>()))
    }

    /// The complete tables. Their size is entered in `header`.
    pub(super) fn finish(mut self, mut header: tg_header) -> Vec<u8> {
        // Lossless, as in `push`.
        header.size = self.bytes.len() as u32;
        self.bytes[..size_of::<tg_header>()].copy_from_slice(bytes_of(&[header]));
        self.bytes
    }
}

fn bytes_of<E: Element>(elements: &[E]) -> &[u8] {
    // SAFETY: the slice's own memory, all of it with a value (`Element`); bytes need no alignment.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}
