//! A `file_contexts` and the files beside it that libselinux reads with it (`selabel_file(5)`).

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{FileContextsError, append, with_aliases};
use crate::built::Built;

/// Home directories, and the lines of the administrator. They replace lines that come before them.
const LINES: [&str; 2] = [".homedirs", ".local"];
/// Pairs `ALIAS PATH`: those of the distribution, and those of the administrator.
const DISTRIBUTION: &str = ".subs_dist";
const OWN: &str = ".subs";

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Path of the file.
    pub path: PathBuf,
    /// The whole text of the file.
    pub text: String,
}

/// A `file_contexts` with the files beside it, as in a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    lines: Vec<Named>,
    distribution: Option<Named>,
    own: Option<Named>,
}

impl Files {
    /// Reads a file, which must exist, and those beside it that exist.
    ///
    /// # Errors
    ///
    /// The path that could not be read, and the cause.
    pub fn read(path: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let mut lines = vec![read(path).map_err(|cause| (path.to_owned(), cause))?];
        for suffix in LINES {
            lines.extend(beside(path, suffix)?);
        }
        Ok(Self { lines, distribution: beside(path, DISTRIBUTION)?, own: beside(path, OWN)? })
    }

    /// All files.
    pub fn all(&self) -> impl Iterator<Item = &Named> {
        self.lines.iter().chain(&self.distribution).chain(&self.own)
    }

    /// The files with lines, in the order in which they count.
    pub fn lines(&self) -> impl Iterator<Item = &Named> {
        self.lines.iter()
    }

    /// Adds several to a policy, after the lines that it has. libselinux looks up the path in place of an alias. Here
    /// the alias gets the lines of its path, whichever file they are in.
    ///
    /// # Errors
    ///
    /// The file with a line that cannot be used, and the reason.
    pub fn put(several: &[Self], built: &mut Built) -> Result<(), (PathBuf, FileContextsError)> {
        for Named { path, text } in several.iter().flat_map(Self::lines) {
            append(built, text).map_err(|cause| (path.clone(), cause))?;
        }
        let distributions = several.iter().filter_map(|files| files.distribution.as_ref());
        for Named { text, .. } in distributions.chain(several.iter().filter_map(|files| files.own.as_ref())) {
            built.file_contexts = with_aliases(&built.file_contexts, text);
        }
        Ok(())
    }
}

fn beside(path: &Path, suffix: &str) -> Result<Option<Named>, (PathBuf, io::Error)> {
    let mut name = OsString::from(path);
    name.push(suffix);
    match read(Path::new(&name)) {
        Ok(named) => Ok(Some(named)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err((name.into(), cause)),
    }
}

fn read(path: &Path) -> io::Result<Named> {
    Ok(Named { path: path.to_owned(), text: fs::read_to_string(path)? })
}
