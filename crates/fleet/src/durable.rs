//! Files that are read with care, and written whole or not at all.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use tempfile::Builder;

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

/// Writes a file, in place of one that may be there. It is on the disk when this returns; the folder is made if needed.
pub fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = Builder::new().prefix(".").permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
    fresh.write_all(bytes)?;
    // What the umask has taken away.
    fresh.as_file().set_permissions(Permissions::from_mode(mode))?;
    fresh.as_file().sync_all()?;
    #[cfg(feature = "cut")]
    cut::change()?;
    fresh.persist(path)?;
    File::open(folder)?.sync_all()
}
