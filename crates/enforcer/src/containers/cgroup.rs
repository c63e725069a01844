//! Cgroups of the unified hierarchy, by their numbers. The kernel gives a number to no other cgroup before it boots again.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::{errno::Errno, sys::statfs::fstatfs};

use crate::labels::handle::{self, Handle};

/// Where the unified hierarchy is mounted: alone, or beside the old ones.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;
/// The type of handles of cgroups (`FILEID_KERNFS` in linux/exportfs.h): their content is the number.
const FILEID_KERNFS: i32 = 0xfe;

/// The hierarchy.
#[derive(Debug)]
pub struct Hierarchy {
    root: File,
    path: &'static str,
}

/// A cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Its number.
    pub number: u64,
    /// Its path in the hierarchy, from `/` on.
    pub path: PathBuf,
}

impl Cgroup {
    /// How many others it lies in.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.path.components().count().saturating_sub(1)
    }

    /// Whether this is the other one, or the other one lies in it.
    #[must_use]
    pub fn holds(&self, other: &Path) -> bool {
        other.starts_with(&self.path)
    }
}

impl Hierarchy {
    /// Opens it. ENOENT: it is not mounted.
    pub fn open() -> io::Result<Self> {
        let opened = MOUNTS.iter().filter_map(|path| Some((File::open(path).ok()?, path)));
        let is_unified =
            |root: &File| fstatfs(root).is_ok_and(|found| found.filesystem_type().0 == CGROUP2_SUPER_MAGIC);
        let (root, path) = opened.into_iter().find(|(root, _)| is_unified(root)).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { root, path })
    }

    /// The cgroup of a process, by its number in the PID namespace of the daemon. The root is no answer.
    pub fn of_process(&self, pid: i32) -> io::Result<Cgroup> {
        let path = path_of_process(pid)?;
        let inside = path.strip_prefix("/").unwrap_or(&path);
        let number = fs::metadata(Path::new(self.path).join(inside))?.ino();
        Ok(Cgroup { number, path })
    }

    /// The path of a cgroup; `None`: it is gone.
    pub fn find(&self, number: u64) -> io::Result<Option<PathBuf>> {
        let handle = Handle::new(FILEID_KERNFS, number.to_ne_bytes().to_vec());
        match handle::open(self.root.as_fd(), &handle) {
            Ok(found) => path_of(found.as_fd(), self.path).map(Some),
            Err(cause) if cause.raw_os_error() == Some(Errno::ESTALE as i32) => Ok(None),
            Err(cause) => Err(cause),
        }
    }
}

/// The path in the unified hierarchy of a process.
pub fn path_of_process(pid: i32) -> io::Result<PathBuf> {
    let lines = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let path = lines.lines().find_map(|line| line.strip_prefix("0::"));
    Ok(path.ok_or(io::ErrorKind::NotFound)?.into())
}

/// The number of the process of a pidfd; `None`: it has ended.
pub fn number_of(process: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd()))?;
    let number = told.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    Ok(number.filter(|number| *number > 0))
}

fn path_of(file: BorrowedFd<'_>, below: &str) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(Path::new("/").join(path.strip_prefix(below).unwrap_or(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroup(path: &str) -> Cgroup {
        Cgroup { number: 1, path: path.into() }
    }

    #[test]
    fn knows_which_cgroup_lies_in_which() {
        let own = cgroup("/machine.slice/libpod-1.scope");
        assert!(own.holds(Path::new("/machine.slice/libpod-1.scope/container")) && own.holds(&own.path));
        assert!(!own.holds(Path::new("/machine.slice/libpod-12.scope")) && !own.holds(Path::new("/")));
        assert!(cgroup("/").holds(Path::new("/a")));
        assert_eq!((cgroup("/").depth(), cgroup("/a").depth(), cgroup("/a/b").depth()), (0, 1, 2));
    }

    #[test]
    fn finds_the_number_of_a_process_by_its_descriptor() {
        let own = std::process::id() as i32;
        assert_eq!(number_of(tollgate_client::pidfd::open(own).unwrap().as_fd()).unwrap(), Some(own));
    }
}
