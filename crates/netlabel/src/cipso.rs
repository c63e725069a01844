//! CIPSO: FIPS-188 and draft-ietf-cipso-ipsecurity-01, as Linux has it (NetLabel, net/ipv4/cipso_ipv4.c).
//!
//! Tags 1, 2 and 5 hold a level. They have the same head, and differ in how they list categories:
//!
//! ```text
//! +----------+----------+----------+-------------+----------------------+
//! | 1, 2, 5  |  length  |    0     | sensitivity | 0 to 30 bytes        |
//! +----------+----------+----------+-------------+----------------------+
//! ```
//!
//! Options that `cipso_v4_validate` takes are taken, but for these, which no sender of good faith makes:
//!
//! - more than one tag,
//! - an alignment octet that is not 0, where the draft has 0 (the kernel does not look at it),
//! - category 65535, which the draft forbids (`cipso_v4_map_cat_enum_valid` and `_rng_valid` take it),
//! - ranges that are reversed, or that have a category in common; the kernel takes the first kind as empty.
//!
//! The kernel refuses domains and tags that the machine's administrator has not configured. That is left to the caller.

use crate::{
    categories::Categories,
    envelope::{self, MAX_TAG},
    error::{ReadError, WriteError},
    ipv4,
    level::{Doi, Level},
};

pub(crate) const BITMAP: u8 = 1;
pub(crate) const ENUMERATED: u8 = 2;
pub(crate) const RANGES: u8 = 5;
pub(crate) const LOCAL: u8 = 128;

/// Bytes for categories in one tag; `CIPSO_V4_TAG_RBM_BLEN` and the others are 4.
const ROOM: usize = MAX_TAG - 4;

/// The highest category of tags 2 and 5; the draft, sections 3.4.3.5 and 3.4.4.5.
const HIGHEST: u16 = 65534;

/// The highest category of tag 1.
const HIGHEST_IN_BITMAP: u16 = ROOM as u16 * 8 - 1;

/// A CIPSO option.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cipso {
    /// Whose numbers the tag has.
    pub doi: Doi,
    /// The tag.
    pub tag: Tag,
}

/// What a CIPSO option says, and in which form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Tag 1: a bitmap of categories 0 to 239. SELinux sends it unless told otherwise.
    Bitmap(Level),
    /// Tag 2: a list of 15 categories at most, up to 65534.
    Enumerated(Level),
    /// Tag 5: at most 7 ranges of categories up to 65534, or 8 if the lowest begins at 0.
    Ranges(Level),
    /// Tag 128 as Linux has it: a SID (`secid`) of the machine itself, in its own byte order. The kernel takes it on
    /// loopback only.
    Local(u32),
}

impl Cipso {
    /// Reads exactly one option, with its type and length.
    ///
    /// # Errors
    ///
    /// What the module's documentation says, with what is wrong.
    pub fn read(option: &[u8]) -> Result<Self, ReadError> {
        let (doi, tag) = envelope::open(option)?;
        Ok(Self { doi, tag: Tag::read(tag)? })
    }

    /// The shortest option, as NetLabel sends it (`cipso_v4_genopt`), not filled to whole words.
    ///
    /// # Errors
    ///
    /// If the tag cannot hold the categories.
    pub fn write(&self) -> Result<Vec<u8>, WriteError> {
        Ok(envelope::wrap(self.doi, self.tag.kind(), &self.tag.body()?))
    }

    /// The option as the only one of a header. A bitmap is filled with zero bytes, so that few lengths occur; the others
    /// with the end of options.
    ///
    /// # Errors
    ///
    /// If the tag cannot hold the categories.
    pub fn write_words(&self) -> Result<Vec<u8>, WriteError> {
        let mut body = self.tag.body()?;
        if let Tag::Bitmap(_) = self.tag {
            // The option's other 8 bytes are whole words.
            body.resize(body.len().next_multiple_of(4), 0);
        }
        Ok(ipv4::pad(envelope::wrap(self.doi, self.tag.kind(), &body)))
    }
}

impl Tag {
    /// The level, which local tags do not have.
    #[must_use]
    pub fn level(&self) -> Option<&Level> {
        match self {
            Self::Bitmap(level) | Self::Enumerated(level) | Self::Ranges(level) => Some(level),
            Self::Local(_) => None,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Bitmap(_) => BITMAP,
            Self::Enumerated(_) => ENUMERATED,
            Self::Ranges(_) => RANGES,
            Self::Local(_) => LOCAL,
        }
    }

    pub(crate) fn read(tag: &[u8]) -> Result<Self, ReadError> {
        let &[kind, length, ref body @ ..] = tag else {
            return Err(ReadError::Truncated { needed: 2, have: tag.len() });
        };
        let bad = ReadError::TagLength { tag: kind, length };
        match kind {
            BITMAP => Ok(Self::Bitmap(level(body, bad, |list| Ok(Categories::from_bitmap(list)))?)),
            ENUMERATED => Ok(Self::Enumerated(level(body, bad, |list| enumerated(list, bad))?)),
            RANGES => Ok(Self::Ranges(level(body, bad, |list| ranges(list, bad))?)),
            LOCAL => body.try_into().map(|sid| Self::Local(u32::from_ne_bytes(sid))).map_err(|_| bad),
            tag => Err(ReadError::TagType { tag }),
        }
    }

    fn body(&self) -> Result<Vec<u8>, WriteError> {
        let (sensitivity, list) = match self {
            Self::Bitmap(level) => (level.sensitivity, bitmap(&level.categories)?),
            Self::Enumerated(level) => (level.sensitivity, list(&level.categories)?),
            Self::Ranges(level) => (level.sensitivity, range_list(&level.categories)?),
            Self::Local(sid) => return Ok(sid.to_ne_bytes().to_vec()),
        };
        Ok([&[0, sensitivity], &list[..]].concat())
    }
}

fn level(
    body: &[u8],
    bad: ReadError,
    categories: impl FnOnce(&[u8]) -> Result<Categories, ReadError>,
) -> Result<Level, ReadError> {
    match body {
        [0, sensitivity, list @ ..] => Ok(Level { sensitivity: *sensitivity, categories: categories(list)? }),
        [alignment, _, ..] => Err(ReadError::Alignment { value: *alignment }),
        _ => Err(bad),
    }
}

/// Categories by their numbers, each greater than the one before (`cipso_v4_map_cat_enum_valid`).
fn enumerated(list: &[u8], bad: ReadError) -> Result<Categories, ReadError> {
    let mut categories = Categories::new();
    for next in numbers(list, bad)? {
        if let Some(previous) = categories.highest().filter(|previous| next <= *previous) {
            return Err(ReadError::Order { previous, next });
        }
        categories.insert(valid(next)?);
    }
    Ok(categories)
}

/// Pairs of upper and lower end, descending; the last lower end may be left out, and is 0 then
/// (`cipso_v4_map_cat_rng_valid` and `_ntoh`).
fn ranges(list: &[u8], bad: ReadError) -> Result<Categories, ReadError> {
    let mut categories = Categories::new();
    let mut previous = None;
    let mut ends = numbers(list, bad)?.into_iter();
    while let Some(high) = ends.next() {
        let low = ends.next().unwrap_or(0);
        if let Some(previous) = previous.filter(|previous| high >= *previous) {
            return Err(ReadError::Order { previous, next: high });
        }
        if low > valid(high)? {
            return Err(ReadError::Reversed { low, high });
        }
        categories.insert_range(low..=high);
        previous = Some(low);
    }
    Ok(categories)
}

fn numbers(list: &[u8], bad: ReadError) -> Result<Vec<u16>, ReadError> {
    match list.as_chunks() {
        (pairs, []) => Ok(pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect()),
        _ => Err(bad),
    }
}

fn valid(category: u16) -> Result<u16, ReadError> {
    if category > HIGHEST { Err(ReadError::Category { category }) } else { Ok(category) }
}

fn bitmap(categories: &Categories) -> Result<Vec<u8>, WriteError> {
    below(categories, HIGHEST_IN_BITMAP)?;
    Ok(categories.to_bitmap())
}

fn list(categories: &Categories) -> Result<Vec<u8>, WriteError> {
    below(categories, HIGHEST)?;
    fitting(categories.iter().flat_map(u16::to_be_bytes).collect())
}

fn range_list(categories: &Categories) -> Result<Vec<u8>, WriteError> {
    below(categories, HIGHEST)?;
    let mut ranges: Vec<_> = categories.ranges().collect();
    ranges.reverse();
    let mut ends: Vec<u16> = ranges.iter().flat_map(|range| [*range.end(), *range.start()]).collect();
    // As `cipso_v4_map_cat_rng_hton` does; it makes room for an eighth range.
    ends.pop_if(|low| *low == 0);
    fitting(ends.into_iter().flat_map(u16::to_be_bytes).collect())
}

fn below(categories: &Categories, highest: u16) -> Result<(), WriteError> {
    match categories.highest() {
        Some(category) if category > highest => Err(WriteError::Category { category, highest }),
        _ => Ok(()),
    }
}

fn fitting(list: Vec<u8>) -> Result<Vec<u8>, WriteError> {
    if list.len() > ROOM { Err(WriteError::Room { bytes: list.len() }) } else { Ok(list) }
}

#[cfg(test)]
mod tests;
