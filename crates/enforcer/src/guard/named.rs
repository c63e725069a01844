//! Marks the programs that the database has, so that a file which replaces one is taken for it at once.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use tollgate_abi::bytes_of;
use tollgate_guard::{Database, Digest};
use tracing::debug;

use super::{Guard, GuardError};
use crate::programs;

impl Guard {
    /// Marks the files at the paths of programs whose content the database has.
    pub(super) fn mark(&self, database: &Database) -> Result<(), GuardError> {
        let named = programs::map(&self.pins, "guard_named")?;
        for (name, program) in database.programs() {
            let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
            let known = |digest: &Digest| program.digests.contains(digest);
            // Most are not there: a database may be shared by machines.
            if let Err(cause) = mark(&named, path, known) {
                debug!(%cause, "{}: not marked as a program: {cause}", path.display());
            }
        }
        Ok(())
    }
}

fn mark(named: &MapHandle, path: &Path, known: impl Fn(&Digest) -> bool) -> io::Result<()> {
    let file = File::open(path)?;
    // While there is a lease nobody can write, and who opens the file for writing later removes the mark.
    let lease = |kind: i32| {
        // SAFETY: the descriptor is open, and the call takes numbers only.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    lease(libc::F_RDLCK)?;
    let digest = Digest::read(&file)?;
    if known(&digest) {
        let key = file.as_fd().as_raw_fd().to_ne_bytes();
        named.update(&key, bytes_of(&digest.words()), MapFlags::ANY).map_err(io::Error::other)?;
    }
    lease(libc::F_UNLCK)
}
