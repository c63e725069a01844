//! Creates the places for a list of selections.
//!
//! Everything is under one *work directory* W (`/work` in a guest). The mount points are `W/tmpfs` and `W/ext4`; for `rootfs`
//! it is the mount point that contains W, `/` in a guest. The depth of a selection counts the path components below the mount
//! point, including the file's own name: `open+close:d3` opens `/work/tmpfs/c/d/file`, and `open+close:rootfs:d4` opens
//! `/work/c/d/file`. A workload whose scope has no file system works in `W/c`.

mod ext4;

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
};

use crate::{
    Error,
    error::Context,
    place::{FileSystem, Place, first_below},
    selection::Selection,
    workload::Scope,
};

/// The file systems that a list of selections needs, mounted under one directory, and unmounted on drop.
#[derive(Debug)]
pub struct Places {
    root: PathBuf,
    /// Whether `root` was created here and is removed at the end.
    temporary: bool,
    mounts: Vec<Mount>,
}

#[derive(Debug)]
struct Mount {
    fs: FileSystem,
    /// The mount point, or why the file system could not be created.
    point: Result<PathBuf, String>,
}

impl Places {
    /// Mounts what the selections need. Call it before anything is confined: a confined process may not mount. A file
    /// system that cannot be made is no error here but one of each workload on it.
    ///
    /// Without `root` a directory is made under the temporary directory, and mounts are made in a mount namespace of
    /// this thread's own, so that the machine's other processes never see them.
    pub fn open(root: Option<&Path>, selections: &[Selection]) -> Result<Places, Error> {
        let path = match root {
            Some(root) => root.to_owned(),
            None => temporary_path(),
        };
        if root.is_some() {
            fs::create_dir_all(&path).context(format!("make {}", path.display()))?;
        } else {
            fs::create_dir(&path).context(format!("make {}", path.display()))?;
        }
        let mut places = Places { root: path, temporary: root.is_none(), mounts: Vec::new() };
        let private = if root.is_none() && needed(selections).any(|fs| fs != FileSystem::Rootfs) {
            private_mounts().map_err(|e| e.to_string())
        } else {
            Ok(())
        };
        for fs in [FileSystem::Tmpfs, FileSystem::Ext4] {
            if needed(selections).any(|wanted| wanted == fs) {
                let point = private.clone().and_then(|()| mount_at(fs, &places.root).map_err(|e| e.to_string()));
                places.mounts.push(Mount { fs, point });
            }
        }
        Ok(places)
    }

    /// The work directory, which everything is made under.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the directory for a selection, which must be one of those given to `open`.
    pub(crate) fn place(&self, selection: &Selection) -> Result<Place, Error> {
        let (base, below) = match (selection.workload.scope, selection.fs) {
            (Scope::Fixed | Scope::Network, _) | (Scope::File, FileSystem::Rootfs) => (self.root.clone(), 1),
            (Scope::Path, FileSystem::Rootfs) => {
                let above = components_below_mount(&self.root)?;
                (self.root.clone(), rootfs_directories(selection, above)?)
            }
            (Scope::File | Scope::Path, fs) => (self.mount_point(fs)?, usize::from(selection.depth) - 1),
        };
        let dir = nested(&base, below);
        if let Some(first) = first_below(&base, &dir) {
            // Not `create_dir_all`, because an existing directory must not be removed.
            fs::create_dir(&first).context(format!("make {}", first.display()))?;
            fs::create_dir_all(&dir).context(format!("make {}", dir.display()))?;
        }
        Ok(Place::new(dir, selection.net, base))
    }

    fn mount_point(&self, fs: FileSystem) -> Result<PathBuf, Error> {
        match self.mounts.iter().find(|mount| mount.fs == fs) {
            Some(Mount { point: Ok(point), .. }) => Ok(point.clone()),
            Some(Mount { point: Err(why), .. }) => Err(Error::Unavailable(why.clone())),
            None => Err(Error::Unavailable(format!("no {fs} was mounted: open the places for this selection too"))),
        }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for point in self.mounts.iter().filter_map(|mount| mount.point.as_ref().ok()) {
            // Detached, because a peer that is still being reaped may hold the mount for a moment.
            let _ = umount2(point, MntFlags::MNT_DETACH);
            let _ = fs::remove_dir(point);
        }
        if self.temporary {
            let _ = fs::remove_dir(&self.root);
        }
    }
}

/// The file systems that the selections work on.
fn needed(selections: &[Selection]) -> impl Iterator<Item = FileSystem> + '_ {
    selections.iter().filter(|s| matches!(s.workload.scope, Scope::File | Scope::Path)).map(|s| s.fs)
}

/// A name that no other process uses, and that changes from one opening to the next only in its number.
fn temporary_path() -> PathBuf {
    static OPENED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = OPENED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::env::temp_dir().join(format!("tollgate-bench-{}-{number}", std::process::id()))
}

/// Gives this thread its own mount namespace, whose mounts do not propagate.
fn private_mounts() -> Result<(), Error> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| cannot_mount("a mount namespace", errno))?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .context("make the mounts of the new namespace private")
}

fn cannot_mount(what: &str, errno: nix::Error) -> Error {
    let remedy = if errno == nix::Error::EPERM {
        "; run it as root, or measure on the file system at hand with the suffix :rootfs"
    } else {
        ""
    };
    Error::Unavailable(format!("cannot make {what}: {}{remedy}", errno.desc()))
}

/// Mounts a file system at its mount point, and unmounts it again if it is not as expected.
fn mount_at(fs: FileSystem, root: &Path) -> Result<PathBuf, Error> {
    let point = root.join(fs.name());
    fs::create_dir_all(&point).context(format!("make {}", point.display()))?;
    let mounted = match fs {
        FileSystem::Ext4 => ext4::make(Path::new(ext4::DEVICE)).and_then(|()| {
            mount(Some(ext4::DEVICE), &point, Some("ext4"), MsFlags::empty(), None::<&str>)
                .map_err(|errno| cannot_mount("an ext4 mount", errno))?;
            // `mke2fs` always creates it; a measured directory must contain only the workload's files.
            fs::remove_dir(point.join("lost+found")).context("remove lost+found")
        }),
        FileSystem::Tmpfs | FileSystem::Rootfs => {
            mount(Some("tollgate"), &point, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
                .map_err(|errno| cannot_mount("a tmpfs mount", errno))
        }
    };
    mounted.map(|()| point.clone()).inspect_err(|_| {
        let _ = umount2(&point, MntFlags::MNT_DETACH);
        let _ = fs::remove_dir(&point);
    })
}

/// `base/c/d/...`, `count` directories: one letter each, so that every level costs the same to hash.
fn nested(base: &Path, count: usize) -> PathBuf {
    (b'c'..).take(count).fold(base.to_owned(), |path, letter| path.join(char::from(letter).to_string()))
}

/// How many directories below the work directory give a file in them the selection's depth.
fn rootfs_directories(selection: &Selection, above: usize) -> Result<usize, Error> {
    let depth = usize::from(selection.depth);
    match depth.checked_sub(above + 1) {
        Some(count) if count > 0 => Ok(count),
        _ => Err(Error::Unavailable(format!(
            "the work directory is {above} components below its mount point, so that a file of a workload is at least {} \
             deep: choose {}:rootfs:d{}",
            above + 2,
            selection.workload.name,
            above + 2
        ))),
    }
}

/// How many components of the path are below the mount point that it is on.
fn components_below_mount(path: &Path) -> Result<usize, Error> {
    let device = |path: &Path| -> Result<u64, Error> {
        Ok(fs::metadata(path).context(format!("look at {}", path.display()))?.dev())
    };
    let path = fs::canonicalize(path).context(format!("look at {}", path.display()))?;
    let own = device(&path)?;
    let mut count = 0;
    for ancestor in path.ancestors().skip(1) {
        if device(ancestor)? != own {
            break;
        }
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(text: &str) -> Selection {
        text.parse().unwrap()
    }

    #[test]
    fn makes_a_directory_as_deep_as_the_selection_says() {
        let places = Places::open(None, &[]).unwrap();
        for depth in [9, 10] {
            let selection = selection(&format!("stat:rootfs:d{depth}"));
            let place = places.place(&selection).unwrap();
            let file = fs::canonicalize(&place.dir).unwrap().join("file");
            let mount = file.ancestors().nth(depth).unwrap();
            let (inside, outside) = (fs::metadata(&place.dir).unwrap(), fs::metadata(mount).unwrap());
            assert_eq!(inside.dev(), outside.dev(), "{}", mount.display());
            assert!(mount.parent().is_none_or(|above| fs::metadata(above).unwrap().dev() != outside.dev()));
        }
    }

    #[test]
    fn rejects_a_depth_above_the_work_directory_and_names_the_least() {
        assert_eq!(rootfs_directories(&selection("stat:rootfs"), 1).unwrap(), 1);
        assert_eq!(rootfs_directories(&selection("stat:rootfs:d10"), 2).unwrap(), 7);
        let error = rootfs_directories(&selection("stat:rootfs:d2"), 1).unwrap_err().to_string();
        assert!(error.contains("stat:rootfs:d3"), "{error}");
    }

    #[test]
    fn denies_a_directory_that_is_already_there() {
        let places = Places::open(None, &[]).unwrap();
        let precious = places.root.join("c");
        fs::create_dir(&precious).unwrap();
        let error = places.place(&selection("null")).unwrap_err().to_string();
        assert!(error.contains(precious.to_str().unwrap()), "{error}");
        assert!(precious.exists());
        fs::remove_dir(precious).unwrap();
    }

    #[test]
    fn removes_everything_it_made() {
        let places = Places::open(None, &[]).unwrap();
        let root = places.root.clone();
        let place = places.place(&selection("stat:rootfs:d10")).unwrap();
        fs::write(place.dir.join("left behind"), "x").unwrap();
        drop(place);
        drop(places);
        assert!(!root.exists());
    }

    #[test]
    fn reports_a_file_system_that_was_not_opened() {
        let places = Places::open(None, &[]).unwrap();
        let error = places.place(&selection("stat")).unwrap_err().to_string();
        assert!(error.contains("no tmpfs was mounted"), "{error}");
    }

    #[test]
    fn finds_the_mount_point_below_which_a_path_is() {
        assert_eq!(components_below_mount(Path::new("/")).unwrap(), 0);
        assert_eq!(components_below_mount(Path::new("/proc")).unwrap(), 0);
        assert_eq!(components_below_mount(Path::new("/proc/sys/kernel")).unwrap(), 2);
    }

    #[test]
    fn names_directories_by_one_letter_each() {
        assert_eq!(nested(Path::new("/work"), 2), Path::new("/work/c/d"));
    }
}
