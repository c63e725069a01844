//! The folder of a study's output: raw records, consoles, results. docs/results.md describes it.

mod beside;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use tollgate_bench::counter::Counter;

use crate::{
    environment,
    model::Observations,
    record::{self, BootRecord},
    results::{self, Environment, Head, Results},
};

/// A folder of a study's output.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// Errors of an output folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or folder in it cannot be read or written.
    #[error("cannot {what} {}: {cause}{}", path.display(), remedy(cause))]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error; part of the message, and not a `source`, which a printed chain would repeat.
        cause: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {reason}; delete it, and run the study with --resume to measure it again", path.display())]
    Malformed {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// A file was written by a program with another format.
    #[error("{} has schema {found}, written by tollgate {writer}; this is tollgate {}, which reads schema {known}: use that version, or measure again", path.display(), env!("CARGO_PKG_VERSION"))]
    Schema {
        /// The path of the file.
        path: PathBuf,
        /// The schema's number in the file.
        found: u64,
        /// The version of the program that wrote it.
        writer: String,
        /// The schema's number that this program reads.
        known: u32,
    },
    /// A file that another command wrote into the folder does not hold what it should.
    #[error("{}: {reason}; delete it, or write it again with `{with}`", path.display())]
    Beside {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// The command that writes such files.
        with: &'static str,
    },
    /// The folder holds another run's output.
    #[error("{} holds a study's output already: give --resume to go on with it, or another --out", path.display())]
    Occupied {
        /// The path of the output folder.
        path: PathBuf,
    },
    /// The folder belongs to a run of another study.
    #[error("{} holds output of a study that differs from this one: give another --out, or the same study file", path.display())]
    OtherStudy {
        /// The path of the output folder.
        path: PathBuf,
    },
    /// The folder belongs to a run with another program or other packages.
    #[error("{} holds samples that cannot stand beside new ones: {differences}; give another --out, or go on with the same program and packages", path.display())]
    OtherEnvironment {
        /// The path of the output folder.
        path: PathBuf,
        /// The differences, for people.
        differences: String,
    },
    /// The folder does not say with which program its records were made.
    #[error("{} holds samples but no environment.json, which says what measured them: give another --out, or delete the samples", path.display())]
    Unknown {
        /// The path of the output folder.
        path: PathBuf,
    },
    /// The folder holds no results.
    #[error("{} holds no results.json: give the --out folder of a study that was run", path.display())]
    Empty {
        /// The path of the output folder.
        path: PathBuf,
    },
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room, then run again with --resume: what was measured is kept"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a folder that you may write with --out"
        }
        _ => "",
    }
}

const RESULTS: &str = "results.json";
const ENVIRONMENT: &str = "environment.json";
const OBSERVATIONS: &str = "observations.json";
const STUDY: &str = "study.toml";
const TABLE: &str = "table.md";
const SAMPLES: &str = "samples";
const CONSOLE: &str = "console";

impl Store {
    /// Creates a folder for a study's output. A folder with output is refused.
    pub fn create(root: &Path, study: &str) -> Result<Self, StoreError> {
        let store = Self { root: root.to_owned() };
        // A run that failed before its first boot leaves only a study file, which does not count as output.
        if store.path(SAMPLES).exists() || store.path(RESULTS).exists() {
            return Err(StoreError::Occupied { path: root.to_owned() });
        }
        replace(&store.path(STUDY), study.as_bytes())?;
        Ok(store)
    }

    /// Opens a folder to continue a run of the same study; creates it if it does not exist.
    pub fn resume(root: &Path, study: &str) -> Result<Self, StoreError> {
        let store = Self { root: root.to_owned() };
        let path = store.path(STUDY);
        match fs::read_to_string(&path) {
            Ok(text) if text == study => Ok(store),
            Ok(_) => Err(StoreError::OtherStudy { path: root.to_owned() }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Self::create(root, study),
            Err(cause) => Err(StoreError::Io { what: "read", path, cause }),
        }
    }

    /// Opens a folder to read its results.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let store = Self { root: root.to_owned() };
        if store.path(RESULTS).is_file() { Ok(store) } else { Err(StoreError::Empty { path: root.to_owned() }) }
    }

    /// Writes the raw record of one boot.
    pub fn write_boot(&self, boot: &BootRecord) -> Result<(), StoreError> {
        let name = boot_name(&boot.kernel, &boot.configuration, boot.clock, boot.boot);
        write_json(&self.path(SAMPLES).join(name + ".json"), boot)
    }

    /// Reads the raw records of all boots, in the order of their files' names.
    pub fn read_boots(&self) -> Result<Vec<BootRecord>, StoreError> {
        let mut files = Vec::new();
        for folder in entries(&self.path(SAMPLES))?.into_iter().filter(|p| p.is_dir()) {
            files.extend(entries(&folder)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "json")));
        }
        files.iter().map(|file| read_json(file, record::SCHEMA, |v| text_at(v, "/tollgate"))).collect()
    }

    /// The path for the console of a boot; its folder is created.
    pub fn console(&self, kernel: &str, configuration: &str, clock: Counter, boot: u32) -> Result<PathBuf, StoreError> {
        let path = self.path(CONSOLE).join(boot_name(kernel, configuration, clock, boot) + ".log");
        make_parent(&path)?;
        Ok(path)
    }

    /// Writes the results, and the environment beside them.
    pub fn write_results(&self, results: &Results) -> Result<(), StoreError> {
        write_json(&self.path(ENVIRONMENT), &results.environment)?;
        write_json(&self.path(RESULTS), results)
    }

    /// Writes the observations with delayed hooks, if there are any.
    pub fn write_observations(&self, observations: &[Observations]) -> Result<(), StoreError> {
        if observations.is_empty() { Ok(()) } else { write_json(&self.path(OBSERVATIONS), &observations) }
    }

    /// Writes the table as Markdown.
    pub fn write_table(&self, markdown: &str) -> Result<(), StoreError> {
        replace(&self.path(TABLE), markdown.as_bytes())
    }

    /// Reads the results.
    pub fn read_results(&self) -> Result<Results, StoreError> {
        read_json(&self.path(RESULTS), results::SCHEMA, |v| text_at(v, "/environment/tollgate"))
    }

    /// Reads the results of an earlier run, if there was one.
    fn read_earlier(&self) -> Result<Option<Results>, StoreError> {
        if self.path(RESULTS).exists() { self.read_results().map(Some) } else { Ok(None) }
    }

    /// Refuses to continue if the records were made in an environment that differs in what moves figures. The time of the
    /// first start is taken from the earlier run.
    pub fn go_on(&self, head: &mut Head) -> Result<(), StoreError> {
        let Some(environment) = self.read_environment()? else {
            let recorded = !entries(&self.path(SAMPLES))?.is_empty();
            return if recorded { Err(StoreError::Unknown { path: self.root.clone() }) } else { Ok(()) };
        };
        let mut differences = environment::differences(&environment, &head.environment, head.clock);
        if let Some(earlier) = self.read_earlier()? {
            if earlier.accelerator != head.accelerator {
                differences.push(format!("the accelerator was {} and is {}", earlier.accelerator, head.accelerator));
            }
            head.started = earlier.started;
        }
        if differences.is_empty() {
            return Ok(());
        }
        Err(StoreError::OtherEnvironment { path: self.root.clone(), differences: differences.join("; ") })
    }

    /// Reads the environment of an earlier run, if there was one.
    pub fn read_environment(&self) -> Result<Option<Environment>, StoreError> {
        let path = self.path(ENVIRONMENT);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| malformed(&path, &e)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StoreError::Io { what: "read", path, cause }),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// `KERNEL/CONFIGURATION.pN`, or `.rN` on the wall clock. A kernel that is a path may contain slashes.
fn boot_name(kernel: &str, configuration: &str, clock: Counter, boot: u32) -> String {
    let kernel = kernel.trim_start_matches(['/', '.']).replace('/', "-");
    let letter = match clock {
        Counter::Instructions => 'p',
        Counter::Wall => 'r',
    };
    format!("{kernel}/{configuration}.{letter}{boot}")
}

/// The files of a folder, sorted by name; empty if the folder does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let error = |cause| StoreError::Io { what: "read", path: folder.to_owned(), cause };
    let listing = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(error)?,
    };
    let mut paths = listing.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(error)?;
    paths.sort();
    Ok(paths)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let mut text = serde_json::to_vec(value).map_err(|e| malformed(path, &e))?;
    text.push(b'\n');
    replace(path, &text)
}

/// Writes a new file and renames it, so that an interrupted run leaves the old file or the new one, never a part.
fn replace(path: &Path, contents: &[u8]) -> Result<(), StoreError> {
    make_parent(path)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, contents).and_then(|()| fs::rename(&beside, path));
    written.map_err(|cause| {
        let _ = fs::remove_file(&beside); // what is half written is of no use; the first error is the one to report
        StoreError::Io { what: "write", path: path.to_owned(), cause }
    })
}

fn make_parent(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|cause| StoreError::Io { what: "make", path: folder.to_owned(), cause })
}

/// Reads a file whose schema must be `known`; `writer` finds the version of the program that wrote it.
fn read_json<T: DeserializeOwned>(
    path: &Path,
    known: u32,
    writer: impl Fn(&serde_json::Value) -> String,
) -> Result<T, StoreError> {
    let text =
        fs::read_to_string(path).map_err(|cause| StoreError::Io { what: "read", path: path.to_owned(), cause })?;
    let read = serde_json::from_str::<T>(&text);
    // The schema is checked first, because a file of another schema may parse by chance.
    let value = serde_json::from_str::<serde_json::Value>(&text).map_err(|e| malformed(path, &e))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if found != u64::from(known) => {
            Err(StoreError::Schema { path: path.to_owned(), found, writer: writer(&value), known })
        }
        _ => read.map_err(|e| malformed(path, &e)),
    }
}

fn text_at(value: &serde_json::Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or("of unknown version").to_owned()
}

fn malformed(path: &Path, error: &serde_json::Error) -> StoreError {
    StoreError::Malformed { path: path.to_owned(), reason: error.to_string() }
}
