//! Writing to standard output. A reader that has gone away ends the program quietly, as with other filters.

use std::io::{self, Write};

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
