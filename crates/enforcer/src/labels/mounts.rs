//! What is mounted, and what of it must be walked.

use std::{
    ffi::OsString,
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::Mode,
};

/// A line of `/proc/PID/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount.
    pub id: u32,
    /// Device number of the file system, as the kernel has it: major << 20 | minor.
    pub device: u32,
    /// The directory of the file system that is mounted.
    pub root: PathBuf,
    /// Path of the mount point.
    pub point: PathBuf,
    /// Type of the file system, without a subtype: `fuse` for `fuse.sshfs`.
    pub filesystem: String,
}

/// The mounts in a mountinfo. Lines of another form are left out.
pub fn read(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let mut text = || words.next().and_then(|word| std::str::from_utf8(word).ok());
    let (id, _parent, device) = (text()?.parse().ok()?, text()?, text()?);
    let (major, minor) = device.split_once(':')?;
    let device = major.parse::<u32>().ok()?.checked_mul(1 << 20)? | minor.parse::<u32>().ok()?;
    let (root, point) = (unescape(words.next()?), unescape(words.next()?));
    // Options, then any number of optional fields, then a dash.
    let filesystem = words.skip_while(|word| *word != b"-").nth(1)?;
    let filesystem = filesystem.split(|byte| *byte == b'.').next()?;
    Some(Mount { id, device, root, point, filesystem: String::from_utf8_lossy(filesystem).into_owned() })
}

/// Decodes a path in which space, tab, newline and backslash are written as `\OOO`.
fn unescape(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| *first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        let byte = octal.map(|digits| digits.iter().fold(0u32, |value, digit| value << 3 | u32::from(digit - b'0')));
        match byte.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => (path.push(byte), rest = &after[3..]),
            None => (path.push(*first), rest = after),
        };
    }
    OsString::from_vec(path).into()
}

/// The trees that have been opened, so that each part of each file system is walked only once.
#[derive(Debug, Default)]
pub struct Covered(Vec<(u32, PathBuf)>);

impl Covered {
    /// Whether another mount has shown all that this mount shows.
    pub fn has(&self, mount: &Mount) -> bool {
        self.0.iter().any(|(device, root)| *device == mount.device && mount.root.starts_with(root))
    }

    /// Whether no tree has been opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records that what a mount shows has been walked.
    pub fn insert(&mut self, mount: &Mount) {
        self.0.push((mount.device, mount.root.clone()));
    }
}

/// Sorts mounts that show more of their file systems first, so that [`Covered`] leaves out the others.
pub fn widest_first(mounts: &mut [Mount]) {
    mounts.sort_by_key(|mount| mount.root.as_os_str().as_bytes().iter().filter(|byte| **byte == b'/').count());
    mounts.sort_by_key(|mount| mount.root != Path::new("/"));
}

/// Opens the root of a mount alone, without what is mounted on it. So names that other mounts hide are seen, and no
/// walk leaves the file system.
///
/// Fails with `ESTALE` if something else is mounted over it.
pub fn open(mount: &Mount) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    // A mount point may be a file as well.
    let flags = if mount.point.is_dir() { flags } else { flags - OFlag::O_DIRECTORY };
    let how = OpenHow::new().flags(flags).mode(Mode::empty()).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    let point = openat2(nix::fcntl::AT_FDCWD, &mount.point, how)?;
    if mount_of(point.as_fd())? != u64::from(mount.id) {
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    alone(&point)
}

/// The number of the mount that a descriptor is on. Not from /proc, which in another namespace is not the daemon's.
pub fn mount_of(file: BorrowedFd<'_>) -> io::Result<u64> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the descriptor is open, the path ends in NUL, and there is room for the answer.
    let status = unsafe {
        let (flags, mask) = (libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC, libc::STATX_MNT_ID);
        libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, mask, found.as_mut_ptr())
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all of it was zero, and the kernel has written to it.
    Ok(unsafe { found.assume_init() }.stx_mnt_id)
}

/// A file or directory as the root of a mount of its own, without what is mounted below it.
pub fn alone(point: &OwnedFd) -> io::Result<OwnedFd> {
    const OPEN_TREE_CLONE: libc::c_long = 1;
    let flags = OPEN_TREE_CLONE | libc::c_long::from(libc::O_CLOEXEC | libc::AT_EMPTY_PATH);
    // SAFETY: the descriptor is open, the path ends in NUL.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, point.as_raw_fd(), c"".as_ptr(), flags) };
    match i32::try_from(tree) {
        // SAFETY: the kernel has just given it to us.
        Ok(tree) if tree >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(tree) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        23 22 0:21 / /proc rw - proc proc rw\n\
        40 22 8:1 /srv/a\\040b /mnt/\\134x rw shared:1 master:2 - ext4 /dev/sda1 rw\n\
        41 22 0:300 / /home/u rw - fuse.sshfs host: rw\n\
        nonsense\n\
        42 22 4096:4294967295 / /x rw - ext4 /dev/sdb rw\n\
        43 22 8:1 / /again rw - ext4 /dev/sda1 rw";

    #[test]
    fn reads_mounts_and_leaves_out_what_is_none() {
        let mounts = read(MOUNTINFO);
        let told: Vec<_> = mounts.iter().map(|m| (m.id, m.device, m.filesystem.as_str())).collect();
        let ext4 = 8 << 20 | 1;
        assert_eq!(
            told,
            [(22, ext4, "ext4"), (23, 21, "proc"), (40, ext4, "ext4"), (41, 300, "fuse"), (43, ext4, "ext4")]
        );
        assert_eq!(
            (mounts[2].root.as_path(), mounts[2].point.as_path()),
            (Path::new("/srv/a b"), Path::new("/mnt/\\x"))
        );
    }

    #[test]
    fn keeps_backslashes_that_escape_nothing() {
        for (written, path) in [(b"/a\\".as_slice(), "/a\\"), (b"/a\\777", "/a\\777"), (b"/a\\08", "/a\\08")] {
            assert_eq!(unescape(written), Path::new(path));
        }
    }

    #[test]
    fn walks_each_part_of_a_file_system_once() {
        let mut mounts = read(MOUNTINFO);
        mounts.reverse();
        widest_first(&mut mounts);
        let mut covered = Covered::default();
        let walked: Vec<u32> = mounts
            .iter()
            .filter(|mount| {
                let fresh = !covered.has(mount);
                covered.insert(mount);
                fresh
            })
            .map(|mount| mount.id)
            .collect();
        assert_eq!(walked, [43, 41, 23], "{mounts:?}");
    }

    #[test]
    fn walks_two_parts_of_a_file_system_when_neither_holds_the_other() {
        let mount =
            |root: &str| Mount { id: 1, device: 1, root: root.into(), point: "/x".into(), filesystem: "ext4".into() };
        let mut covered = Covered::default();
        covered.insert(&mount("/a"));
        assert!(covered.has(&mount("/a")) && covered.has(&mount("/a/b")));
        assert!(!covered.has(&mount("/ab")) && !covered.has(&mount("/")));
        assert!(!covered.has(&Mount { device: 2, ..mount("/a") }));
    }
}
