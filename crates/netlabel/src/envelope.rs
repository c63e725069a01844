//! The CIPSO option around one tag, which CIPSO's own tags, DSM's and Tollgate's share.
//!
//! ```text
//! +----------+----------+----------+----------+----------+----------+----------------+
//! |   134    |  length  |   domain of interpretation (big endian)   | tag: type,     |
//! |          |          |          |          |          |          | length, ...    |
//! +----------+----------+----------+----------+----------+----------+----------------+
//! ```

use crate::{
    error::ReadError,
    ipv4::{self, CIPSO, MAX_OPTIONS},
    level::Doi,
};

/// Length of the option's type, length and domain.
const HEADER: usize = 6;

/// Bytes that a tag has at most.
pub(crate) const MAX_TAG: usize = MAX_OPTIONS - HEADER;

/// The domain, and the only tag with its type and length.
///
/// The kernel's `cipso_v4_validate` takes several tags, of which `cipso_v4_getattr` looks at the first only. A second one
/// is refused here: what it says would depend on who reads it.
pub(crate) fn open(option: &[u8]) -> Result<(Doi, &[u8]), ReadError> {
    let (length, body) = ipv4::body(option, CIPSO)?;
    let bad = ReadError::OptionLength { kind: CIPSO, length };
    let (doi, tags) = body.split_first_chunk().filter(|_| option.len() <= MAX_OPTIONS).ok_or(bad)?;
    let &[kind, tag_length, ..] = tags else { return Err(bad) };
    let doi = Doi::new(u32::from_be_bytes(*doi))?;
    let bad = ReadError::TagLength { tag: kind, length: tag_length };
    let (tag, rest) = tags.split_at_checked(usize::from(tag_length)).filter(|_| tag_length >= 2).ok_or(bad)?;
    match rest {
        [] => Ok((doi, tag)),
        [second, ..] => Err(ReadError::SecondTag { tag: *second }),
    }
}

/// An option with this tag, which has [`MAX_TAG`] bytes at most with its type and length.
pub(crate) fn wrap(doi: Doi, kind: u8, body: &[u8]) -> Vec<u8> {
    let tag = body.len() + 2;
    debug_assert!(tag <= MAX_TAG);
    let mut option = Vec::with_capacity(HEADER + tag);
    option.extend([CIPSO, (HEADER + tag) as u8]);
    option.extend(doi.number().to_be_bytes());
    option.extend([kind, tag as u8]);
    option.extend(body);
    option
}
