//! Files and times that somebody has named.

use std::{fs, path::Path, time::Duration};

use anyhow::Context;

/// The bytes of a file that somebody has named.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path)
        .with_context(|| format!("cannot read {}; name a file that is there and that you may read", path.display()))
}

/// Reads a length of time such as `30days`.
pub(crate) fn duration(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}
