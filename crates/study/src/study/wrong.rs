//! What is wrong in a study file, and where.

use std::ops::Range;

use super::raw::At;

/// An error, with its range in the text.
pub(super) struct Wrong(pub(super) Range<usize>, pub(super) String);

pub(super) fn wrong<T, V>(at: &At<T>, message: impl Into<String>) -> Result<V, Wrong> {
    Err(Wrong(at.span(), message.into()))
}

/// Names become file names and column heads, so few characters are allowed.
pub(super) fn word(at: &At<String>, what: &str) -> Result<(), Wrong> {
    let name = at.get_ref();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(fits) {
        return Ok(());
    }
    wrong(at, format!("{what} consists of lower case letters, digits and hyphens; {name:?} does not"))
}
