//! The symbols that a kernel carries for itself (kernel/kallsyms.c; written by scripts/kallsyms.c).
//!
//! Names are compressed: each is a length and so many numbers of tokens, and 256 tokens stand in a table with an index of
//! their offsets. Nothing names these tables in a stripped image, so they are found by their own shape. The order changed:
//!
//! - to 6.3: offsets, relative base, number, names, markers, token table, token index; since 6.2 (and in 6.1.y) a table
//!   of the names' order lies between markers and tokens;
//! - since 6.4: number, names, markers, token table, token index, offsets, relative base;
//! - and an address is the base and an offset, of which non-negative ones are absolute for per-CPU symbols (to 6.14 on
//!   x86-64), or the base and an offset alone, or, in 7.x, the offset from the entry's own address, without a base.
//!
//! Each reading is tried; the one whose addresses ascend and put `_stext` into a section of instructions is right.

use std::ops::Range;

use super::Symbol;
use crate::{Image, image::Section};

const TOKENS: usize = 256;
/// How far before the tokens the names may begin, in bytes; Debian's 7.2 has 3.1 MB of names.
const MAX_NAMES_DISTANCE: usize = 64 << 20;
/// The possible number of symbols of a kernel.
const POSSIBLE_COUNTS: Range<u32> = 100..4_000_000;
/// The longest name of a symbol: `KSYM_NAME_LEN`.
const MAX_NAME_LENGTH: usize = 512;
/// There is a marker for each 256th name.
const NAMES_PER_MARKER: usize = 256;

/// All symbols, if the image has kallsyms.
pub(super) fn find(image: &Image) -> Option<Vec<Symbol>> {
    image.sections().iter().find_map(|section| {
        let bytes = image.bytes_of(section);
        let tables = Tables { image, section, bytes };
        tables.tokens().find_map(|tokens| tables.symbols(&tokens))
    })
}

/// The section that is searched.
struct Tables<'i> {
    image: &'i Image,
    section: &'i Section,
    bytes: &'i [u8],
}

/// The tokens, with the places of their table and index.
struct Tokens<'i> {
    texts: Vec<&'i [u8]>,
    start: usize,
    end: usize,
}

/// The names, each with its letter before it, and the tables around them.
struct Names {
    texts: Vec<Vec<u8>>,
    count_at: usize,
}

impl<'i> Tables<'i> {
    /// Finds token tables: digits are tokens of their own, one after another, so such a sequence may be in the table.
    fn tokens(&self) -> impl Iterator<Item = Tokens<'i>> {
        const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0";
        let bytes = self.bytes;
        let places = bytes.windows(DIGITS.len()).enumerate().filter(|(_, window)| *window == DIGITS);
        places.filter_map(move |(at, _)| tokens_around(bytes, at))
    }

    fn symbols(&self, tokens: &Tokens<'i>) -> Option<Vec<Symbol>> {
        let names = self.names(tokens)?;
        let addresses = self.addresses(tokens, &names)?;
        let symbols = addresses.into_iter().zip(names.texts).map(|(address, text)| Symbol {
            address,
            kind: text[0],
            name: String::from_utf8_lossy(&text[1..]).into_owned(),
        });
        Some(symbols.collect())
    }

    /// The number of names and the names themselves, before the tokens.
    fn names(&self, tokens: &Tokens<'_>) -> Option<Names> {
        let earliest = tokens.start.saturating_sub(MAX_NAMES_DISTANCE).next_multiple_of(4);
        (earliest..tokens.start).step_by(4).find_map(|count_at| {
            let count = number(self.bytes, count_at).filter(|count| POSSIBLE_COUNTS.contains(count))?;
            // Tables are aligned to 8 bytes, in 7.x to 4.
            [8, 4].iter().find_map(|gap| {
                let texts = self.names_from(tokens, count_at + gap, count as usize)?;
                Some(Names { texts, count_at })
            })
        })
    }

    fn names_from(&self, tokens: &Tokens<'_>, start: usize, count: usize) -> Option<Vec<Vec<u8>>> {
        let bytes = &self.bytes[..tokens.start];
        let mut texts = Vec::new();
        let mut markers = Vec::new();
        let mut at = start;
        for index in 0..count {
            if index % NAMES_PER_MARKER == 0 {
                markers.push(u32::try_from(at - start).ok()?);
            }
            let (text, next) = name(bytes, at, &tokens.texts)?;
            texts.push(text);
            at = next;
        }
        let mut places = at..at + 8;
        places.find(|place| {
            markers.iter().enumerate().all(|(index, marker)| number(bytes, place + 4 * index) == Some(*marker))
        })?;
        Some(texts)
    }

    fn addresses(&self, tokens: &Tokens<'_>, names: &Names) -> Option<Vec<u64>> {
        let count = names.texts.len();
        let before = |size: usize| names.count_at.checked_sub(8)?.checked_sub((size * count).next_multiple_of(8));
        let after = |alignment: usize| tokens.end.next_multiple_of(alignment);
        let base_of = |offsets: usize| word(self.bytes, (offsets + 4 * count).next_multiple_of(8));
        let mut readings: Vec<Option<Vec<u64>>> = Vec::new();
        for offsets in [before(4), Some(after(8))].into_iter().flatten() {
            let base = if offsets < names.count_at { word(self.bytes, names.count_at - 8) } else { base_of(offsets) };
            if let Some(base) = base {
                readings.push(self.each(offsets, count, |_, offset| base.wrapping_add(u64::from(offset))));
                readings.push(self.each(offsets, count, |_, offset| absolute_or(base, offset)));
            }
        }
        let origin = self.section.address;
        readings.push(self.each(after(4), count, |at, offset| {
            (origin + at as u64).wrapping_add_signed(i64::from(offset.cast_signed()))
        }));
        let whole = names.count_at.checked_sub((8 * count).next_multiple_of(8));
        readings.extend(
            whole
                .into_iter()
                .chain([after(8)])
                .map(|start| (0..count).map(|index| word(self.bytes, start + 8 * index)).collect()),
        );
        readings.into_iter().flatten().find(|addresses| self.is_right(addresses, names))
    }

    fn each(&self, start: usize, count: usize, address: impl Fn(usize, u32) -> u64) -> Option<Vec<u64>> {
        let places = (0..count).map(|index| start + 4 * index);
        places.map(|at| number(self.bytes, at).map(|offset| address(at, offset))).collect()
    }

    fn is_right(&self, addresses: &[u64], names: &Names) -> bool {
        let start = names.texts.iter().position(|text| text == b"T_stext" || text == b"t_stext");
        let starts = start
            .is_some_and(|index| self.image.section_at(addresses[index]).is_some_and(|section| section.executable));
        starts && addresses.is_sorted()
    }
}

/// `kallsyms_sym_address` with CONFIG_KALLSYMS_ABSOLUTE_PERCPU.
fn absolute_or(base: u64, offset: u32) -> u64 {
    let signed = offset.cast_signed();
    if signed >= 0 { u64::from(offset) } else { base.wrapping_sub(1).wrapping_add_signed(-i64::from(signed)) }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The table in which the token of the digit 0 is at `at`, if its index follows.
fn tokens_around(bytes: &[u8], at: usize) -> Option<Tokens<'_>> {
    let mut start = at;
    for _ in 0..b'0' {
        // A token ends with a zero, the byte before the next one; an unused token is empty.
        let text = &bytes[start.saturating_sub(64)..start.checked_sub(1)?];
        start = start - 1 - text.iter().rev().position(|byte| *byte == 0)?;
    }
    // The table before this one need not end with a zero.
    (start..start + 4).find_map(|start| tokens_from(bytes, start))
}

fn tokens_from(bytes: &[u8], start: usize) -> Option<Tokens<'_>> {
    let mut texts = Vec::with_capacity(TOKENS);
    let mut offsets = Vec::with_capacity(TOKENS);
    let mut end = start;
    for _ in 0..TOKENS {
        let length = bytes[end..].iter().take(64).position(|byte| *byte == 0)?;
        texts.push(&bytes[end..end + length]);
        offsets.push(u16::try_from(end - start).ok()?);
        end += length + 1;
    }
    let index = (end..end + 8).find(|index| {
        let entries = bytes.get(*index..).unwrap_or_default().chunks_exact(2);
        let entries = entries.map(|entry| u16::from_le_bytes([entry[0], entry[1]]));
        entries.take(TOKENS).eq(offsets.iter().copied())
    })?;
    Some(Tokens { texts, start, end: index + 2 * TOKENS })
}

/// One name, and the place of the next one. Since 6.1 a length above 127 takes two bytes.
fn name(bytes: &[u8], at: usize, tokens: &[&[u8]]) -> Option<(Vec<u8>, usize)> {
    let (mut length, mut at) = (usize::from(*bytes.get(at)?), at + 1);
    if length & 0x80 != 0 {
        length = length & 0x7f | usize::from(*bytes.get(at)?) << 7;
        at += 1;
    }
    let codes = bytes.get(at..at + length)?;
    let mut text = Vec::new();
    for code in codes {
        text.extend_from_slice(tokens[usize::from(*code)]);
        if text.len() > MAX_NAME_LENGTH {
            return None;
        }
    }
    (text.len() > 1 && text[0].is_ascii_alphabetic()).then_some((text, at + length))
}
