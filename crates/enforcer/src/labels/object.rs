//! A file as a walk and the daemon hold it: by a descriptor, and never by a path, which could come to mean another
//! file.

use std::{
    ffi::{CStr, CString},
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd},
};

use nix::errno::Errno;

use crate::labels::{handle, identity::Identity};

/// The extended attribute that keeps a label: the text of the context and a NUL, as SELinux's tools write theirs.
pub const ATTRIBUTE: &CStr = c"security.bpf.tollgate";
/// The maximum length of a context in an attribute, in bytes. SELinux's limit is a page.
const MAX_LENGTH: usize = 4096;

/// Nanoseconds since 1970, by the clock that gives files their times.
pub type Moment = i64;

/// When a file or a directory last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// For a file when its inode changed; for a directory when its content did.
    pub at: Moment,
    /// When it was made; `None`: the file system does not record that.
    pub born: Option<Moment>,
}

/// A file, by a descriptor, which may be an `O_PATH` one.
#[derive(Debug, Clone, Copy)]
pub struct Object<'f> {
    /// An open descriptor of the file.
    pub file: BorrowedFd<'f>,
    /// Device number of its file system. `stat` may return another one (btrfs, overlayfs).
    pub device: u32,
    stat: libc::statx,
}

impl<'f> Object<'f> {
    /// The file of a descriptor, on the file system `device`.
    pub fn new(file: BorrowedFd<'f>, device: u32) -> io::Result<Self> {
        Ok(Self { file, device, stat: stat(file)? })
    }

    /// The file of a descriptor, on the device that `stat` returns.
    pub fn anywhere(file: BorrowedFd<'f>) -> io::Result<Self> {
        let stat = stat(file)?;
        let device = kernel_device(libc::makedev(stat.stx_dev_major, stat.stx_dev_minor));
        Ok(Self { file, device, stat })
    }

    /// The inode number.
    pub fn inode(&self) -> u64 {
        self.stat.stx_ino
    }

    /// The device number that `stat` returns.
    pub fn stat_device(&self) -> u64 {
        libc::makedev(self.stat.stx_dev_major, self.stat.stx_dev_minor)
    }

    /// The device and inode numbers that `stat` returns.
    pub fn place(&self) -> (u64, u64) {
        (self.stat_device(), self.inode())
    }

    /// The file type and permission bits.
    pub fn mode(&self) -> u32 {
        self.stat.stx_mode.into()
    }

    /// Uid of the owner.
    pub fn owner(&self) -> u32 {
        self.stat.stx_uid
    }

    /// The number of its names.
    pub fn links(&self) -> u64 {
        self.stat.stx_nlink.into()
    }

    /// Whether it has this file type, for example `S_IFDIR`.
    pub fn is(&self, kind: u32) -> bool {
        self.mode() & libc::S_IFMT == kind
    }

    /// Its identity in the kernel.
    pub fn identity(&self) -> Identity {
        let (subvolume, generation) = handle::numbers(self.file, self.inode()).unwrap_or_default();
        Identity { device: self.device, inode: self.inode(), subvolume, generation }
    }

    /// The context in its attribute; `None`: it has no attribute. If the content is not text, it is returned as well as
    /// possible, and is then not a context.
    pub fn attribute(&self) -> io::Result<Option<String>> {
        self.attribute_of(ATTRIBUTE)
    }

    /// Writes a context to its attribute.
    pub fn set_attribute(&self, context: &str) -> io::Result<()> {
        self.set_attribute_of(ATTRIBUTE, context)
    }

    /// Writes a context to its attribute, unless it has one.
    pub fn set_first_attribute(&self, context: &str) -> io::Result<()> {
        self.put_attribute(ATTRIBUTE, context, libc::XATTR_CREATE)
    }

    /// The text of another attribute; `None`: it has none.
    pub fn attribute_of(&self, name: &CStr) -> io::Result<Option<String>> {
        let mut value = [0u8; MAX_LENGTH];
        let path = self.path();
        // SAFETY: the texts end in NUL, and `value` has the length that is said.
        let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
        match usize::try_from(length) {
            Ok(length) => {
                let text = value[..length].strip_suffix(&[0]).unwrap_or(&value[..length]);
                Ok(Some(String::from_utf8_lossy(text).into_owned()))
            }
            Err(_) => match io::Error::last_os_error() {
                cause if cause.raw_os_error() == Some(libc::ENODATA) => Ok(None),
                // Longer than any context.
                cause if cause.raw_os_error() == Some(libc::ERANGE) => Ok(Some(String::new())),
                cause => Err(cause),
            },
        }
    }

    /// Writes a text to another attribute.
    pub fn set_attribute_of(&self, name: &CStr, text: &str) -> io::Result<()> {
        self.put_attribute(name, text, 0)
    }

    fn put_attribute(&self, name: &CStr, text: &str, flags: i32) -> io::Result<()> {
        let value = CString::new(text)?;
        let value = value.as_bytes_with_nul();
        let path = self.path();
        // SAFETY: the texts end in NUL, and `value` has the length that is said.
        let status = unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Removes another attribute.
    pub fn remove_attribute_of(&self, name: &CStr) -> io::Result<()> {
        let path = self.path();
        // SAFETY: the texts end in NUL.
        let status = unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// When its inode last changed, and when it was made.
    pub fn changed(&self) -> Changed {
        Changed { at: moment(&self.stat.stx_ctime), born: self.born() }
    }

    /// When something in this directory last changed. `root`: it is the root of a file system, whose inode each
    /// checkpoint changes. The owner can set the time at which the content changed.
    pub fn content_changed(&self, root: bool) -> Changed {
        let changed = self.changed();
        let at = if root { moment(&self.stat.stx_mtime) } else { changed.at };
        Changed { at, ..changed }
    }

    fn born(&self) -> Option<Moment> {
        (self.stat.stx_mask & libc::STATX_BTIME != 0).then(|| moment(&self.stat.stx_btime))
    }

    /// Only by this path can attributes of a file opened with `O_PATH` be read. The path leads to that very file, even
    /// if it is a link.
    fn path(&self) -> CString {
        CString::new(format!("/proc/thread-self/fd/{}", self.file.as_raw_fd())).unwrap_or_default()
    }
}

fn moment(time: &libc::statx_timestamp) -> Moment {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into())
}

/// What is known of a file here, without a request to a program or machine that serves it, which need not answer.
fn stat(file: BorrowedFd<'_>) -> io::Result<libc::statx> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    // SAFETY: the descriptor is open, the path ends in NUL, and there is room for the answer.
    let status = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, mask, found.as_mut_ptr()) };
    Errno::result(status)?;
    // SAFETY: all of it was zero, and the kernel has written to it.
    Ok(unsafe { found.assume_init() })
}

/// Turns a device number of `stat` into the kernel's.
pub fn kernel_device(device: libc::dev_t) -> u32 {
    libc::major(device) << 20 | libc::minor(device)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use nix::{
        fcntl::{OFlag, open},
        sys::stat::Mode,
    };

    use super::*;

    #[test]
    fn identifies_a_file_by_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        File::create(&a).unwrap();
        std::fs::hard_link(&a, &b).unwrap();
        let by_path = open(&b, OFlag::O_PATH, Mode::empty()).unwrap();
        let (a, b) = (File::open(&a).unwrap(), by_path);
        let (a, b) = (Object::anywhere(a.as_fd()).unwrap(), Object::anywhere(b.as_fd()).unwrap());
        assert_eq!((a.identity(), a.links()), (b.identity(), 2));
        let folder = File::open(folder.path()).unwrap();
        assert_ne!(Object::anywhere(folder.as_fd()).unwrap().identity(), a.identity());
    }

    #[test]
    fn tells_a_link_from_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        let file = open(&link, OFlag::O_PATH | OFlag::O_NOFOLLOW, Mode::empty()).unwrap();
        let object = Object::anywhere(file.as_fd()).unwrap();
        assert!(object.is(libc::S_IFLNK) && !object.is(libc::S_IFDIR));
        assert!(matches!(object.attribute(), Ok(None)) || object.attribute().is_err());
    }

    #[test]
    fn numbers_devices_as_the_kernel_does() {
        assert_eq!(kernel_device(libc::makedev(8, 1)), 8 << 20 | 1);
        assert_eq!(kernel_device(libc::makedev(0, 300)), 300);
    }
}
