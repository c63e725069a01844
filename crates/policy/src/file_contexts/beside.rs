//! A `file_contexts` and the files beside it that libselinux reads with it (`selabel_file(5)`).

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{FileContextsError, append, with_aliases};
use crate::built::Built;

/// Homes, and the lines of the administrator. They take the place of the lines before them.
const LINES: [&str; 2] = [".homedirs", ".local"];
/// Pairs `ALIAS PATH`: the distribution's, and the administrator's.
const DISTRIBUTION: &str = ".subs_dist";
const OWN: &str = ".subs";

/// A file and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its path.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// A `file_contexts` as it lies in a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    lines: Vec<Named>,
    distribution: Option<Named>,
    own: Option<Named>,
}

impl Files {
    /// Reads a file, which must be there, and those beside it that are.
    ///
    /// # Errors
    ///
    /// The path that could not be read, and why.
    pub fn read(path: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let mut lines = vec![read(path).map_err(|cause| (path.to_owned(), cause))?];
        for suffix in LINES {
            lines.extend(beside(path, suffix)?);
        }
        Ok(Self { lines, distribution: beside(path, DISTRIBUTION)?, own: beside(path, OWN)? })
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Named> {
        self.lines.iter().chain(&self.distribution).chain(&self.own)
    }

    /// Those with lines, in the order in which they count.
    pub fn lines(&self) -> impl Iterator<Item = &Named> {
        self.lines.iter()
    }

    /// Puts several beside a policy, after the lines that it has. libselinux looks up the path in the place of an alias; here
    /// the alias has the lines of its path, whichever file they are in.
    ///
    /// # Errors
    ///
    /// The file with a line that cannot be used, and why.
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
