//! Writing to standard output: a reader that has gone away ends the program quietly, as with other filters.

use std::io::{self, IsTerminal, Write};

/// One line of text.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    write(&format!("{text}\n"))
}

/// A value as indented JSON.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    write(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Text as it is.
pub(crate) fn write(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// Whether it may be coloured: it is a terminal, and NO_COLOR is not set (no-color.org).
pub(crate) fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
