//! The arguments of the calls: files, descriptors, memory.

use std::{
    ffi::CString,
    fs::{self, File},
    mem::size_of,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    num::NonZeroUsize,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::symlink, net::UnixDatagram},
    },
    path::Path,
    ptr::NonNull,
};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::Word;
use crate::{Error, error::Context};

/// Bytes of the file, of a page, and of each half of the memory.
const PAGE: usize = 4096;
const MEMORY: usize = 2 * PAGE;

/// It has one address for as long as it lives, because the memory that points into it is boxed.
pub(super) struct World {
    paths: [CString; 4],
    files: [File; 3],
    socket: UdpSocket,
    pair: [UnixDatagram; 2],
    page: NonNull<libc::c_void>,
    memory: Box<Memory>,
}

/// Memory that the kernel reads and writes, laid out as the calls require.
#[repr(C)]
struct Memory {
    zeros: [u64; MEMORY / 8],
    buffer: [u64; MEMORY / 8],
    vector: libc::iovec,
    address: libc::sockaddr_in,
    /// `struct msgbuf`: a type of 1 or more, then text.
    message: [i64; 2],
    increment: libc::sembuf,
    length: libc::socklen_t,
}

impl World {
    pub(super) fn make(folder: &Path) -> Result<Self, Error> {
        let path = |name: &str| {
            let path = folder.join(name);
            CString::new(path.as_os_str().as_bytes()).context(format!("name {}", path.display()))
        };
        let (file, link) = (folder.join("file"), folder.join("link"));
        for name in ["file", "second"] {
            fs::write(folder.join(name), [0x5a; PAGE]).context(format!("write {name} in {}", folder.display()))?;
        }
        symlink(&file, &link).context(format!("make {}", link.display()))?;
        let open = |path: &Path| {
            File::options().read(true).write(path.is_file()).open(path).context(format!("open {}", path.display()))
        };
        let socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).context("bind a UDP socket")?;
        let port = socket.local_addr().context("get a socket's port")?.port();
        let pair = UnixDatagram::pair().context("make a pair of sockets")?;
        let length = NonZeroUsize::new(PAGE).unwrap_or(NonZeroUsize::MIN);
        // SAFETY: the kernel chooses an address that nothing uses.
        let page = unsafe {
            mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE)
        }
        .context("map a page")?;
        Ok(Self {
            paths: [path("file")?, path("link")?, path(".")?, path("name")?],
            files: [open(&file)?, open(&folder.join("second"))?, open(folder)?],
            socket,
            pair: [pair.0, pair.1],
            page,
            memory: Memory::new(port),
        })
    }

    /// The value of a word.
    pub(super) fn word(&self, word: Word, made: i64) -> i64 {
        let path = |number: usize| address(self.paths[number].as_ptr());
        match word {
            Word::Number(number) => number,
            Word::Made => made,
            Word::File => path(0),
            Word::Link => path(1),
            Word::Folder => path(2),
            Word::Name => path(3),
            Word::Open => self.files[0].as_raw_fd().into(),
            Word::Second => self.files[1].as_raw_fd().into(),
            Word::OpenFolder => self.files[2].as_raw_fd().into(),
            Word::Socket => self.socket.as_raw_fd().into(),
            Word::Pair => self.pair[0].as_raw_fd().into(),
            Word::Peer => self.pair[1].as_raw_fd().into(),
            Word::Process => std::process::id().into(),
            Word::Zeros => address(&raw const self.memory.zeros),
            Word::Buffer => address(&raw const self.memory.buffer),
            Word::Page => address(self.page.as_ptr()),
            Word::Address => address(&raw const self.memory.address),
            Word::Length => address(&raw const self.memory.length),
            Word::Vector => address(&raw const self.memory.vector),
            Word::Message => address(&raw const self.memory.message),
            Word::Increment => address(&raw const self.memory.increment),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and used by none after this.
        let _ = unsafe { munmap(self.page, PAGE) };
    }
}

impl Memory {
    /// `port` is the UDP socket's.
    fn new(port: u16) -> Box<Self> {
        let mut memory = Box::new(Self {
            zeros: [0; MEMORY / 8],
            buffer: [0; MEMORY / 8],
            vector: libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 },
            address: libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: port.to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be() },
                sin_zero: [0; 8],
            },
            message: [1, 0],
            increment: libc::sembuf { sem_num: 0, sem_op: 1, sem_flg: 0 },
            length: size_of::<libc::sockaddr_in>() as libc::socklen_t,
        });
        memory.vector.iov_base = (&raw mut memory.buffer).cast();
        memory
    }
}

fn address<T>(pointer: *const T) -> i64 {
    pointer.expose_provenance() as i64
}
