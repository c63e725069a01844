//! Whether something was mounted or unmounted. The kernel tells who polls a mountinfo (`mounts_poll` in
//! fs/proc_namespace.c), so nobody needs to read it again and again.

use std::{
    fs::{self, File},
    os::fd::AsFd,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::object::mountinfo;

/// The mountinfo of this process, as it was last read.
#[derive(Debug, Default)]
pub(super) struct Mounted {
    /// `None`: it has not been opened yet.
    polled: Option<File>,
    read: Vec<u8>,
}

impl Mounted {
    /// The mountinfo, if it is not what it was at the last call.
    pub(super) fn changed(&mut self) -> Option<Vec<u8>> {
        match &self.polled {
            Some(polled) if !is_announced(polled) => return None,
            Some(_) => {}
            // Opened before it is read: what changes in between is announced.
            None => self.polled = File::open(mountinfo()).ok(),
        }
        let read = fs::read(mountinfo()).unwrap_or_default();
        if read == self.read {
            return None;
        }
        self.read.clone_from(&read);
        Some(read)
    }
}

/// Whether there was a change since the last call. Where the kernel does not say, there may have been one.
fn is_announced(polled: &File) -> bool {
    let mut waited = [PollFd::new(polled.as_fd(), PollFlags::POLLPRI)];
    poll(&mut waited, PollTimeout::ZERO) != Ok(0)
}
