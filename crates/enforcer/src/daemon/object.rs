//! The object of a descriptor that a client has passed. It is examined without a request to the server of its file
//! system, because that could be the client, which need not answer.

use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd},
    path::PathBuf,
};

use nix::errno::Errno;
use tollgate_client::protocol::Refusal;

/// An object on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    /// Name of its class.
    pub(super) class: &'static str,
    /// Its mode, including the file type.
    pub(super) mode: u32,
    /// Uid of its owner.
    pub(super) owner: u32,
}

impl Object {
    /// The object of a descriptor.
    pub(super) fn of(descriptor: BorrowedFd<'_>) -> Result<Self, Refusal> {
        // SAFETY: all of its members may be zero.
        let mut found: libc::statx = unsafe { std::mem::zeroed() };
        let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
        let wanted = libc::STATX_TYPE | libc::STATX_MODE | libc::STATX_UID;
        // SAFETY: the path is empty and ends with NUL, and the pointer is to a variable of the right type.
        let done = unsafe { libc::statx(descriptor.as_raw_fd(), c"".as_ptr(), flags, wanted, &raw mut found) };
        let failed = |cause: Errno| Refusal::new(cause as i32, format!("cannot look at the object: {}", cause.desc()));
        Errno::result(done).map_err(failed)?;
        let mode = u32::from(found.stx_mode);
        Ok(Self { class: class(mode), mode, owner: found.stx_uid })
    }
}

/// The path by which a descriptor was opened, as this process sees it.
pub(super) fn path_of(descriptor: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// inode_mode_to_security_class.
fn class(mode: u32) -> &'static str {
    match mode & libc::S_IFMT {
        libc::S_IFSOCK => "sock_file",
        libc::S_IFLNK => "lnk_file",
        libc::S_IFBLK => "blk_file",
        libc::S_IFDIR => "dir",
        libc::S_IFCHR => "chr_file",
        libc::S_IFIFO => "fifo_file",
        _ => "file",
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use super::*;

    #[test]
    fn knows_class_and_owner_of_what_a_descriptor_is_of() {
        let of = |path: &str| Object::of(File::open(path).unwrap().as_fd()).unwrap();
        assert_eq!(of("/proc"), Object { class: "dir", mode: 0o040_555, owner: 0 });
        assert_eq!(of("/dev/null").class, "chr_file");
        assert_eq!(of("/proc/self/exe").class, "file");
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(Object::of(one.as_fd()).unwrap().class, "sock_file");
    }
}
