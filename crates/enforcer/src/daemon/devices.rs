//! Devices that the kernel announces. The kernel makes their nodes itself, with the label of the directory. Under
//! SELinux, udev then sets the labels of `file_contexts`; here, the daemon does.

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2},
    sys::{
        socket::{AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, socket},
        stat::{Mode, SFlag, fstat, makedev},
    },
};

/// Where device nodes are.
const FOLDER: &str = "/dev";
/// The netlink group of the kernel's own announcements. udev uses another group to announce what it has done.
const KERNEL: u32 = 1;
/// The maximum length of an announcement, in bytes (UEVENT_BUFFER_SIZE, and the path before it).
const MAX_MESSAGE_LENGTH: usize = 8192;

/// The socket on which devices are announced.
#[derive(Debug)]
pub struct Devices {
    socket: OwnedFd,
}

/// A device that has appeared.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Path of its node, below `/dev`.
    name: PathBuf,
    number: u64,
}

impl Devices {
    /// Listens for devices that appear from now on.
    pub fn listen() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkKObjectUEvent;
        let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL))?;
        Ok(Self { socket })
    }

    /// The next device that was announced; `None`: there is none at present.
    pub(super) fn next(&self) -> io::Result<Option<Device>> {
        let mut message = [0; MAX_MESSAGE_LENGTH];
        loop {
            match recvfrom::<NetlinkAddr>(self.socket.as_raw_fd(), &mut message) {
                Ok((length, from)) => {
                    // Programs may send messages as well; those are ignored.
                    let from_kernel = from.is_some_and(|from| from.pid() == 0);
                    if let Some(device) = added(&message[..length]).filter(|_| from_kernel) {
                        return Ok(Some(device));
                    }
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
    }
}

impl AsFd for Devices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The device that a message reports as added. A message is `ACTION@PATH`, then `NAME=VALUE` words, with a NUL after
/// each.
fn added(message: &[u8]) -> Option<Device> {
    let mut fields = message.split(|byte| *byte == 0);
    fields.next()?.strip_prefix(b"add@")?;
    let fields: Vec<(&[u8], &[u8])> = fields
        .filter_map(|field| {
            let equals = field.iter().position(|byte| *byte == b'=')?;
            Some((&field[..equals], &field[equals + 1..]))
        })
        .collect();
    let value = |name: &str| fields.iter().find(|(own, _)| *own == name.as_bytes()).map(|(_, value)| *value);
    let number = |name| std::str::from_utf8(value(name)?).ok()?.parse().ok();
    let name = Path::new(std::ffi::OsStr::from_bytes(value("DEVNAME")?)).to_owned();
    Some(Device { name, number: makedev(number("MAJOR")?, number("MINOR")?) })
}

impl Device {
    /// Path of its node.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// Opens its node and returns it with its mode; `None`: the node is gone, or its name belongs to something else.
    pub(super) fn open(&self) -> io::Result<Option<(OwnedFd, u32)>> {
        let Some(node) = find(Path::new(FOLDER), &self.name)? else { return Ok(None) };
        let found = fstat(&node)?;
        let kind = SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits());
        let same = matches!(kind, SFlag::S_IFCHR | SFlag::S_IFBLK) && found.st_rdev == self.number;
        Ok(same.then_some((node, found.st_mode)))
    }
}

/// Opens what a directory has by a name, on the same file system and without following a link.
fn find(folder: &Path, name: &Path) -> io::Result<Option<OwnedFd>> {
    let folder = open(folder, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV);
    match openat2(folder, name, how) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ENOENT | Errno::ELOOP | Errno::EXDEV | Errno::ENOTDIR) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDA: &[u8] =
        b"add@/devices/x/block/sda\0ACTION=add\0DEVPATH=/devices/x/block/sda\0SUBSYSTEM=block\0MAJOR=8\0\
        MINOR=16\0DEVNAME=bus/sdb\0SEQNUM=7\0";

    #[test]
    fn finds_the_node_of_a_device_that_was_added() {
        let device = added(SDA).unwrap();
        assert_eq!(device, Device { name: "bus/sdb".into(), number: makedev(8, 16) });
        assert_eq!(device.path(), Path::new("/dev/bus/sdb"));
    }

    #[test]
    fn leaves_out_what_is_no_new_node() {
        let without = |field: &str| String::from_utf8_lossy(SDA).replace(field, "").into_bytes();
        let cut = [without("DEVNAME=bus/sdb\0"), without("MAJOR=8\0"), without("add@"), without("16"), Vec::new()];
        for message in cut.iter().chain(&[b"libudev\0\xfe\xed".to_vec(), b"add@\0\0=\0DEVNAME".to_vec()]) {
            assert_eq!(added(message), None, "{}", String::from_utf8_lossy(message));
        }
    }

    #[test]
    fn opens_no_node_but_that_of_the_device() {
        let opened = |name: &str, number| Device { name: name.into(), number }.open().unwrap();
        let (_, mode) = opened("null", makedev(1, 3)).unwrap();
        assert_eq!(mode & SFlag::S_IFMT.bits(), SFlag::S_IFCHR.bits());
        for (name, number) in [("null", makedev(1, 5)), (".", 0)] {
            assert!(opened(name, number).is_none(), "{name}");
        }
        assert!(opened("no-such-device", 1).is_none() && opened("null/x", 1).is_none());
    }

    #[test]
    fn finds_nothing_by_a_link_above_the_folder_or_in_another_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let here = |name: &str| folder.path().join(name);
        std::fs::create_dir(here("own")).unwrap();
        std::fs::write(here("own/node"), "").unwrap();
        std::os::unix::fs::symlink("own", here("through")).unwrap();
        let found = |folder: &Path, name: &str| find(folder, Path::new(name)).unwrap().is_some();
        assert!(found(folder.path(), "own/node") && found(&here("own"), "node"));
        assert!(!found(folder.path(), "through/node") && !found(&here("own"), "../own/node"));
        assert!(!found(Path::new("/"), "proc/version"));
    }
}
