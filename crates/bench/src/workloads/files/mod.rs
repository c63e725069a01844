//! System calls on files and directories, after LMBench 2.5 as the 2021 study of file overhead extended it.

pub(super) mod attributes;
pub(super) mod contents;
pub(super) mod directory;
pub(super) mod mapping;
pub(super) mod names;
pub(super) mod open;
mod pool;
pub(super) mod transfer;
pub(super) mod xattr;

use std::{
    ffi::{CString, OsStr},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{Group, Prepared, Scope, Tasks, Workload},
};

/// A workload that resolves a path.
const fn on_path(name: &'static str, about: &'static str, setup: fn(&Place) -> Prepared) -> Workload {
    Workload { name, about, group: Group::Files, tasks: Tasks::One, scope: Scope::Path, samples: 200, setup }
}

/// A workload that works on an open file.
const fn on_file(name: &'static str, about: &'static str, setup: fn(&Place) -> Prepared) -> Workload {
    Workload { scope: Scope::File, ..on_path(name, about, setup) }
}

/// The path of a name in the workload's directory, ready for a system call.
fn path(place: &Place, name: &str) -> Result<CString, Error> {
    let path = place.dir.join(name);
    CString::new(path.as_os_str().as_bytes())
        .map_err(io::Error::from)
        .context(format!("use the path {}; choose a work directory without a zero byte", path.display()))
}

/// Creates `file` with this size, and returns its path.
fn file_of(place: &Place, bytes: usize) -> Result<CString, Error> {
    let path = path(place, "file")?;
    let name = Path::new(OsStr::from_bytes(path.as_bytes()));
    fs::write(name, vec![0x5a; bytes]).context(format!("write {}", name.display()))?;
    Ok(path)
}

/// `Ok` unless a system call returned -1.
fn done(returned: impl Into<i64>) -> io::Result<()> {
    if returned.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        places::Places,
        selection::{Selection, expand},
    };

    /// The content of a directory: kind, length, links and target of each entry.
    fn look(dir: &Path) -> BTreeMap<String, String> {
        let entries = fs::read_dir(dir).unwrap();
        entries
            .map(|entry| {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                let length = if meta.is_dir() { 0 } else { meta.len() };
                let links = std::os::unix::fs::MetadataExt::nlink(&meta);
                let seen = format!("{:?} {length} {links} {:?}", meta.file_type(), fs::read_link(entry.path()).ok());
                (entry.file_name().into_string().unwrap(), seen)
            })
            .collect()
    }

    /// The file workloads that need no privilege, on the file system of the temporary directory.
    fn unprivileged() -> Vec<Selection> {
        let mut selections = expand("@files", &[]).unwrap();
        selections.retain(|s| !s.workload.name.ends_with("xattr"));
        for selection in &mut selections {
            selection.fs = crate::place::FileSystem::Rootfs;
            selection.depth = 10;
        }
        selections
    }

    #[test]
    fn allows_every_operation_again_and_leaves_the_directory_as_it_was() {
        let places = Places::open(None, &[]).unwrap();
        for selection in unprivileged() {
            let name = selection.workload.name;
            let place = places.place(&selection).unwrap();
            let mut operation = (selection.workload.setup)(&place).unwrap();
            operation.before().unwrap();
            let start = look(&place.dir);
            for _ in 0..2 {
                for _ in 0..operation.reach().min(6) {
                    operation.run().unwrap_or_else(|e| panic!("{name}: {e}"));
                }
                operation.before().unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(look(&place.dir), start, "{name}");
            }
            drop(operation);
            let dir = place.dir.clone();
            drop(place);
            assert!(!dir.exists(), "{name} left {}", dir.display());
        }
    }

    #[test]
    fn reports_in_the_directory_what_an_operation_did() {
        let places = Places::open(None, &[]).unwrap();
        for (name, change) in [
            ("creat", 1),
            ("create-0k", 1),
            ("create-10k", 1),
            ("link", 1),
            ("symlink", 1),
            ("mkdir", 1),
            ("unlink", -1),
            ("rmdir", -1),
            ("delete-4k", -1),
            ("rename", 0),
            ("truncate", 0),
        ] {
            let selection = format!("{name}:rootfs:d10").parse().unwrap();
            let place = places.place(&selection).unwrap();
            let mut operation = (selection.workload.setup)(&place).unwrap();
            operation.before().unwrap();
            let start = look(&place.dir);
            operation.run().unwrap();
            let after = look(&place.dir);
            assert_eq!(after.len() as i64 - start.len() as i64, change, "{name}");
            assert_ne!(after, start, "{name}");
            if name == "create-10k" {
                assert!(after.values().any(|seen| seen.contains(" 10240 ")), "{after:?}");
            }
        }
    }

    #[test]
    fn rejects_a_run_beyond_the_reach() {
        let places = Places::open(None, &[]).unwrap();
        let selection = "creat:rootfs:d10".parse().unwrap();
        let place = places.place(&selection).unwrap();
        let mut operation = (selection.workload.setup)(&place).unwrap();
        operation.before().unwrap();
        for _ in 0..operation.reach() {
            operation.run().unwrap();
        }
        assert!(operation.run().is_err());
        operation.before().unwrap();
        operation.run().unwrap();
    }
}
