//! The labels that datagram sockets have received.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, BorrowedFd},
};

use libbpf_rs::{MapCore, MapFlags};
use tollgate_abi::{bytes_of, enforcer::tg_heard};

use super::{Enforcer, EnforcerError, map_error};
use crate::contexts::Sid;

/// Not in the crate libc.
const SO_COOKIE: i32 = 57;

impl Enforcer {
    /// The label that a datagram socket has received last from a sender. `None`: nothing was heard of it, or it is too
    /// long ago.
    pub fn heard(&self, socket: BorrowedFd<'_>, sender: SocketAddr) -> Result<Option<Sid>, EnforcerError> {
        let cookie = cookie(socket).map_err(|cause| map_error("tell sockets apart")(cause.into()))?;
        let found = self.maps.heard.lookup(bytes_of(&key(cookie, sender)), MapFlags::ANY);
        let found = found.map_err(map_error("find what a socket has received"))?;
        Ok(found.and_then(|bytes| Some(Sid::from_ne_bytes(bytes.try_into().ok()?))))
    }
}

/// How the programs know a sender.
fn key(socket: u64, sender: SocketAddr) -> tg_heard {
    let mut bytes = [0; 16];
    let (family, length) = match sender.ip() {
        IpAddr::V4(_) => (libc::AF_INET, 4),
        IpAddr::V6(_) => (libc::AF_INET6, 16),
    };
    match sender.ip() {
        IpAddr::V4(address) => bytes[..length].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes[..length].copy_from_slice(&address.octets()),
    }
    let mut address = [0; 4];
    for (word, bytes) in address.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    tg_heard { socket, family: family.cast_unsigned(), port: sender.port().into(), address }
}

/// The number by which the kernel knows a socket.
fn cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let (mut cookie, mut length) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the kernel writes `length` bytes at most to each address.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_COOKIE, (&raw mut cookie).cast(), &raw mut length)
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_sender_as_it_is_in_packets() {
        let heard = key(7, "127.0.0.2:258".parse().unwrap());
        let words = [7, 0, 2, 258, u32::from_ne_bytes([127, 0, 0, 2]), 0, 0, 0];
        assert_eq!(bytes_of(&heard), words.map(u32::to_ne_bytes).concat());
        let heard = key(7, "[::2]:258".parse().unwrap());
        assert_eq!((heard.family, bytes_of(&heard)[31]), (10, 2));
    }
}
