//! File handles: a file by its number and generation, without a path.
//!
//! The content of a handle is up to the file system. The kinds that are known here have the inode number, the
//! generation and, on btrfs, the subvolume at fixed places. A handle of the root of a file system is the pattern for
//! handles of its files.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use crate::labels::identity::Identity;

/// The maximum length of a handle, in bytes (`MAX_HANDLE_SZ`).
const MAX_LENGTH: usize = 128;

/// A `struct file_handle` with room for any handle.
#[repr(C)]
struct Raw {
    bytes: u32,
    kind: i32,
    handle: [u8; MAX_LENGTH],
}

/// A handle of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    kind: i32,
    bytes: Vec<u8>,
}

impl Handle {
    /// A handle of a type (`fid_type` in linux/exportfs.h) with this content.
    #[must_use]
    pub fn new(kind: i32, bytes: Vec<u8>) -> Self {
        Self { kind, bytes }
    }
}

/// Where a file system puts the inode number and the generation in a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// ext2 to ext4, f2fs, xfs with small numbers: 4 bytes of number, then the generation.
    Small,
    /// tmpfs: the generation, then 8 bytes of number.
    Tmpfs,
    /// xfs: 8 bytes of number, then the generation.
    Large,
    /// btrfs: 8 bytes of number, 8 of the subvolume, then the generation.
    Btrfs,
}

impl Layout {
    /// Determined by the handle's type and length. `inode` must be where the number would be.
    fn of(handle: &Handle, inode: u64) -> Option<Self> {
        let layout = match (handle.kind, handle.bytes.len()) {
            (1, 8) => Self::Small,
            (1, 12) => Self::Tmpfs,
            (0x81, 12) => Self::Large,
            (0x4d, 20) => Self::Btrfs,
            _ => return None,
        };
        (layout.number(&handle.bytes) == Some(inode)).then_some(layout)
    }

    fn number(self, bytes: &[u8]) -> Option<u64> {
        match self {
            Self::Small => word(bytes, 0).map(u64::from),
            Self::Tmpfs => double(bytes, 4),
            Self::Large | Self::Btrfs => double(bytes, 0),
        }
    }

    fn generation_at(self) -> usize {
        match self {
            Self::Small => 4,
            Self::Tmpfs => 0,
            Self::Large => 8,
            Self::Btrfs => 16,
        }
    }

    /// Number of the subvolume of the file; 0: the file system has none.
    fn subvolume(self, bytes: &[u8]) -> Option<u64> {
        match self {
            Self::Btrfs => double(bytes, 8),
            Self::Small | Self::Tmpfs | Self::Large => Some(0),
        }
    }

    /// A handle like `pattern`, for another file of its file system.
    fn handle(self, pattern: &Handle, identity: Identity) -> Option<Handle> {
        let mut handle = pattern.clone();
        let number = identity.inode.to_ne_bytes();
        let (at, length) = match self {
            Self::Small => (0, 4),
            Self::Tmpfs => (4, 8),
            Self::Large | Self::Btrfs => (0, 8),
        };
        if length == 4 && u32::try_from(identity.inode).is_err() {
            return None;
        }
        handle.bytes.get_mut(at..at + length)?.copy_from_slice(&number[..length]);
        let at = self.generation_at();
        handle.bytes.get_mut(at..at + 4)?.copy_from_slice(&identity.generation.to_ne_bytes());
        if self == Self::Btrfs {
            handle.bytes.get_mut(8..16)?.copy_from_slice(&identity.subvolume.to_ne_bytes());
        }
        Some(handle)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The handle of the file of a descriptor.
pub fn of(file: BorrowedFd<'_>) -> io::Result<Handle> {
    let mut raw = Raw { bytes: MAX_LENGTH as u32, kind: 0, handle: [0; MAX_LENGTH] };
    let mut mount = 0;
    // SAFETY: `raw` is a file_handle with room for as many bytes as it says; the path ends in NUL.
    let status = unsafe {
        libc::name_to_handle_at(
            file.as_raw_fd(),
            c"".as_ptr(),
            (&raw mut raw).cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let length = usize::try_from(raw.bytes).unwrap_or(MAX_LENGTH).min(MAX_LENGTH);
    Ok(Handle { kind: raw.kind, bytes: raw.handle[..length].to_vec() })
}

/// The subvolume and the generation of a file, from its handle: no system call returns them for every kind of file.
pub fn numbers(file: BorrowedFd<'_>, inode: u64) -> Option<(u64, u32)> {
    let handle = of(file).ok()?;
    let layout = Layout::of(&handle, inode)?;
    Some((layout.subvolume(&handle.bytes)?, word(&handle.bytes, layout.generation_at())?))
}

/// Opens a file of the file system of a directory with `O_PATH`. Returns `ESTALE` if it no longer exists.
pub fn open(root: BorrowedFd<'_>, handle: &Handle) -> io::Result<OwnedFd> {
    let mut raw = Raw { bytes: handle.bytes.len() as u32, kind: handle.kind, handle: [0; MAX_LENGTH] };
    let room = raw.handle.get_mut(..handle.bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
    room.copy_from_slice(&handle.bytes);
    // SAFETY: `raw` is a file_handle with as many bytes as it says.
    let file =
        unsafe { libc::open_by_handle_at(root.as_raw_fd(), (&raw mut raw).cast(), libc::O_PATH | libc::O_CLOEXEC) };
    // SAFETY: the kernel has just given it to us.
    if file >= 0 { Ok(unsafe { OwnedFd::from_raw_fd(file) }) } else { Err(io::Error::last_os_error()) }
}

/// Opens files of one file system by their identity.
#[derive(Debug)]
pub struct Opener<'f> {
    root: BorrowedFd<'f>,
    pattern: Handle,
    layout: Layout,
}

impl<'f> Opener<'f> {
    /// For the file system of a directory that is open for reading. `None`: its handles are not known to consist of
    /// number and generation.
    pub fn new(root: BorrowedFd<'f>, inode: u64) -> Option<Self> {
        let pattern = of(root).ok()?;
        let layout = Layout::of(&pattern, inode)?;
        Some(Self { root, pattern, layout })
    }

    /// Opens the file with `O_PATH`. Returns `ESTALE` if it no longer exists, even if its number belongs to another
    /// file by now.
    pub fn open(&self, identity: Identity) -> io::Result<OwnedFd> {
        let handle = self.layout.handle(&self.pattern, identity).ok_or(io::ErrorKind::InvalidInput)?;
        open(self.root, &handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(inode: u64, generation: u32) -> Identity {
        Identity { device: 1, inode, subvolume: 257, generation }
    }

    /// Handles of a root of number 2 and generation 7, each as its file system writes it.
    fn patterns() -> [(Layout, Handle); 4] {
        let (two, seven) = (2u64.to_ne_bytes(), 7u32.to_ne_bytes());
        [
            (Layout::Small, Handle { kind: 1, bytes: [&two[..4], &seven].concat() }),
            (Layout::Tmpfs, Handle { kind: 1, bytes: [&seven[..], &two].concat() }),
            (Layout::Large, Handle { kind: 0x81, bytes: [&two[..], &seven].concat() }),
            (Layout::Btrfs, Handle { kind: 0x4d, bytes: [&two[..], &5u64.to_ne_bytes(), &seven].concat() }),
        ]
    }

    #[test]
    fn makes_handles_that_it_reads_as_the_same_file() {
        for (layout, pattern) in patterns() {
            assert_eq!(Layout::of(&pattern, 2), Some(layout));
            assert_eq!(word(&pattern.bytes, layout.generation_at()), Some(7));
            let handle = layout.handle(&pattern, identity(0x1234, 0x5678_9abc)).unwrap();
            assert_eq!((handle.kind, handle.bytes.len()), (pattern.kind, pattern.bytes.len()));
            assert_eq!(Layout::of(&handle, 0x1234), Some(layout));
            assert_eq!(word(&handle.bytes, layout.generation_at()), Some(0x5678_9abc));
            let subvolume = if layout == Layout::Btrfs { 257 } else { 0 };
            assert_eq!(layout.subvolume(&handle.bytes), Some(subvolume));
        }
    }

    #[test]
    fn knows_no_handle_that_holds_another_number() {
        for (_, pattern) in patterns() {
            assert_eq!(Layout::of(&pattern, 3), None);
        }
        assert_eq!(Layout::of(&Handle { kind: 0xf8, bytes: vec![0; 24] }, 0), None);
        assert_eq!(Layout::of(&Handle { kind: 1, bytes: Vec::new() }, 0), None);
    }

    #[test]
    fn makes_no_handle_of_a_number_that_does_not_fit() {
        let [(small, pattern), (tmpfs, other), ..] = patterns();
        assert_eq!(small.handle(&pattern, identity(1 << 32, 1)), None);
        assert!(tmpfs.handle(&other, identity(1 << 32, 1)).is_some());
    }
}
