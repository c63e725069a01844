//! Files of keys and signatures.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::error::SigningError;

/// The maximum length of a file of keys or signatures, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// The text of a file whose metadata `check` accepts.
pub(crate) fn text(
    path: &Path,
    remedy: &str,
    check: impl FnOnce(&Metadata) -> Result<(), SigningError>,
) -> Result<String, SigningError> {
    let error = |cause| SigningError::Io { what: "read", path: path.to_owned(), cause, remedy: remedy.to_owned() };
    let file = File::open(path).map_err(error)?;
    check(&file.metadata().map_err(error)?)?;
    let mut text = String::new();
    file.take(MAX_LENGTH).read_to_string(&mut text).map_err(error)?;
    Ok(text)
}

/// Makes a file, which must not exist yet, with this mode.
pub(crate) fn make(path: &Path, mode: u32, text: &str) -> Result<(), SigningError> {
    let written = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => SigningError::Exists(path.to_owned()),
        _ => {
            let remedy = "; name a file in a folder that exists and can be written".to_owned();
            SigningError::Io { what: "write", path: path.to_owned(), cause, remedy }
        }
    })
}

/// The lines that are neither empty nor comments, with their numbers.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| (number, line.split_ascii_whitespace().collect()))
}

/// The file beside another one, with more at the end of its name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
