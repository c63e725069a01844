//! Walks a directory tree by descriptor. No name is looked up twice, so nobody can put another file in its place.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use nix::{
    dir::Dir,
    errno::Errno,
    fcntl::{AT_FDCWD, OFlag, openat},
    sys::stat::{Mode, SFlag, fstat},
};

/// Called for each object with its path and descriptor. An error ends the walk.
pub type Visit<'v, E> = dyn FnMut(&Path, BorrowedFd<'_>) -> Result<(), E> + 'v;

/// Opens an object (O_PATH) without reading it or following it.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(AT_FDCWD, path, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?)
}

/// Visits an object and everything below it on the same file system. A directory comes before what it holds. Objects
/// that vanish meanwhile, and directories that may not be read, are reported to `skip`.
pub fn walk<E: From<io::Error>>(
    path: &Path,
    visit: &mut Visit<'_, E>,
    skip: &mut dyn FnMut(&Path, io::Error),
) -> Result<(), E> {
    walk_where(path, &|_| true, visit, skip)
}

/// Like [`walk`], but leaves out each object that is not `wanted` together with everything below it.
pub fn walk_where<E: From<io::Error>>(
    path: &Path,
    wanted: &dyn Fn(&Path) -> bool,
    visit: &mut Visit<'_, E>,
    skip: &mut dyn FnMut(&Path, io::Error),
) -> Result<(), E> {
    let root = open(path)?;
    let device = fstat(&root).map_err(io::Error::from)?.st_dev;
    // Only the directories on the way down are open. The others wait as names, not as descriptors.
    let mut levels: Vec<Level> = Vec::new();
    visit(path, root.as_fd())?;
    enter(&mut levels, path, root, device, skip);
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.pop() else {
            levels.pop();
            continue;
        };
        let path = level.path.join(&name);
        if !wanted(&path) {
            continue;
        }
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(&level.directory, name.as_path(), flags, Mode::empty()) {
            Ok(object) => {
                if fstat(&object).map_err(io::Error::from)?.st_dev == device {
                    visit(&path, object.as_fd())?;
                    enter(&mut levels, &path, object, device, skip);
                }
            }
            Err(Errno::ENOENT) => {}
            Err(cause) => skip(&path, cause.into()),
        }
    }
    Ok(())
}

/// A directory on the way down, with the names in it that are still to be visited.
struct Level {
    path: PathBuf,
    directory: OwnedFd,
    names: Vec<PathBuf>,
}

fn enter(
    levels: &mut Vec<Level>,
    path: &Path,
    object: OwnedFd,
    device: libc::dev_t,
    skip: &mut dyn FnMut(&Path, io::Error),
) {
    let is_directory = fstat(&object)
        .is_ok_and(|found| found.st_dev == device && found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits());
    if !is_directory {
        return;
    }
    match names(&object) {
        Ok(names) => levels.push(Level { path: path.to_owned(), directory: object, names }),
        Err(cause) => skip(path, cause),
    }
}

/// The names in a directory, in reverse order.
fn names(directory: &OwnedFd) -> io::Result<Vec<PathBuf>> {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut listing = Dir::from_fd(openat(directory, ".", flags, Mode::empty())?)?;
    let mut names = Vec::new();
    for entry in listing.iter() {
        let name = entry?.file_name().to_bytes().to_owned();
        if !matches!(&name[..], b"." | b"..") {
            names.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn visited(root: &Path) -> Vec<String> {
        visited_where(root, &|_| true)
    }

    fn visited_where(root: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<String> {
        let mut seen = Vec::new();
        let mut visit = |path: &Path, _: BorrowedFd<'_>| {
            seen.push(path.strip_prefix(root).unwrap().display().to_string());
            Ok::<(), io::Error>(())
        };
        walk_where(root, wanted, &mut visit, &mut |path, cause| panic!("{}: {cause}", path.display())).unwrap();
        seen
    }

    #[test]
    fn visits_directories_before_what_they_hold_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        fs::write(root.join("c"), "").unwrap();
        symlink("/", root.join("a/link")).unwrap();
        assert_eq!(visited(root), ["", "a", "a/b", "a/b/file", "a/link", "c"]);
    }

    #[test]
    fn leaves_out_what_is_not_wanted_with_all_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["a/b", "a/c", "d/b"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        assert_eq!(visited_where(root, &|path| !path.ends_with("a")), ["", "d", "d/b"]);
    }

    #[test]
    fn goes_as_deep_as_paths_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let mut directory = open(folder.path()).unwrap();
        let name = "d".repeat(200);
        for _ in 0..50 {
            nix::sys::stat::mkdirat(&directory, name.as_str(), Mode::S_IRWXU).unwrap();
            directory = openat(&directory, name.as_str(), OFlag::O_PATH, Mode::empty()).unwrap();
        }
        assert_eq!(visited(folder.path()).len(), 51);
    }
}
