//! Writing to standard output and to new files. A reader that has gone away ends the program quietly, as with other filters.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
};

use anyhow::Context;

/// Writes a line of text.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// Writes an error to standard error, with its causes.
pub(crate) fn failed(error: &anyhow::Error) {
    // There is nobody else to tell.
    let _ = writeln!(io::stderr(), "tollgate-fleet: {error:#}");
}

/// Writes a file that must not exist yet: another one would be lost.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = OpenOptions::new().write(true).create_new(true).open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.with_context(|| format!("cannot make {}; name a new file in a folder that is there", path.display()))
}
