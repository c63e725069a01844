//! Writing to standard output. A reader that has gone away ends the program quietly, as with other filters.

use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// Writes a line of text.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    write(&format!("{text}\n"))
}

/// Writes a value as indented JSON.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    write(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Writes text as it is.
pub(crate) fn write(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

/// Writes text into a file, whole or not at all: it is written to another file, which is renamed, so that a failure leaves
/// the old content.
pub(crate) fn file(path: &Path, text: &str) -> anyhow::Result<()> {
    // A link stays a link. A terminal, a pipe or /dev/null is written to, and not replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if target.is_dir() {
        bail!("cannot write {}: it is a folder; name a file in it", path.display());
    }
    let failed =
        || format!("cannot write {}; name a file in a folder that is there and that you may write", path.display());
    if target.exists() && !target.is_file() {
        return fs::write(&target, text).with_context(failed);
    }
    let mut beside = OsString::from(target.as_os_str());
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        let _ = fs::remove_file(&beside); // what is half written is of no use; the first error is the one to report
    }
    written.with_context(failed)
}

/// Whether output may have colours: it is a terminal, and NO_COLOR is not set (no-color.org).
pub(crate) fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
