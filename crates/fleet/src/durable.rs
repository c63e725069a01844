//! Files that are read with care, and written whole or not at all.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::Builder;

/// How the names of files begin that are being written.
const FRESH: &str = ".fresh-";

/// The bytes of a file; `None`: there is no such file. Anything else than a file, a link too, and what is longer than
/// `limit`, is an error: it may be anyone's.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    // A pipe would never open otherwise.
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(cause),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {limit} bytes")));
    }
    Ok(Some(bytes))
}

/// For tests: the power goes between two changes.
#[cfg(feature = "cut")]
pub mod cut {
    use std::{cell::Cell, io};

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// So many more changes of this thread reach the disk, and none after them; `None`: all do.
    pub fn after(changes: Option<u32>) {
        LEFT.set(changes);
    }

    pub(crate) fn change() -> io::Result<()> {
        match LEFT.get() {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the power is off")),
            Some(left) => {
                LEFT.set(Some(left - 1));
                Ok(())
            }
        }
    }
}

/// A folder that is open, whatever others put into its place.
pub(crate) struct Opened(File);

impl Opened {
    /// Opens a folder, which must be no link: it may be anyone's, and lead to files of this machine.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        OpenOptions::new().read(true).custom_flags(flags).open(path).map(Self)
    }

    /// The path of what is in it.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Removes what [`write`] has left in a folder where it was killed, if it is that old: whoever else writes there may be at
/// it. Returns how many files that were.
pub fn sweep(folder: &Path, age: Duration) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(0),
        other => other?,
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry?;
        let is_fresh = entry.file_name().to_str().is_some_and(|name| name.starts_with(FRESH));
        // A clock that was put back makes nothing older.
        let is_old = |found: fs::Metadata| found.modified().is_ok_and(|at| at.elapsed().unwrap_or_default() >= age);
        if is_fresh && entry.metadata().is_ok_and(is_old) {
            fs::remove_file(entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Writes a file, in place of one that may be there. It is on the disk when this returns; the folder is made if needed.
pub fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = Builder::new().prefix(FRESH).permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
    fresh.write_all(bytes)?;
    // What the umask has taken away.
    fresh.as_file().set_permissions(Permissions::from_mode(mode))?;
    fresh.as_file().sync_all()?;
    #[cfg(feature = "cut")]
    cut::change()?;
    fresh.persist(path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_what_a_killed_writer_has_left_and_nothing_that_is_younger_or_somebody_else_s() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        write(&path, 0o600, b"one").unwrap();
        // As a writer leaves it that is killed before the last step.
        let left = Builder::new().prefix(FRESH).tempfile_in(folder.path()).unwrap().keep().unwrap().1;
        fs::write(folder.path().join(".other"), "").unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((sweep(folder.path(), Duration::from_secs(60)).unwrap(), names()), (0, 3), "it may be written to");
        assert_eq!((sweep(folder.path(), Duration::ZERO).unwrap(), names()), (1, 2));
        assert!(!left.exists() && fs::read(&path).unwrap() == b"one");
        assert_eq!(sweep(&folder.path().join("none"), Duration::ZERO).unwrap(), 0);
    }
}
