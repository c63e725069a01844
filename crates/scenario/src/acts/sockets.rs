//! Acts on sockets, and on internet sockets. Traffic stays on the loopback interface.

use std::{io, net::IpAddr};

use super::{Act, number};
use crate::{
    actor::Actor,
    kernel::{
        Argument::{Bytes, Number, Room},
        call, errno,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("socket", "FAMILY TYPE PROTOCOL", socket),
    Act::new("keep", "", |a, _| {
        a.kept = a.fd;
        Ok(())
    }),
    Act::new("swap", "", |a, _| {
        std::mem::swap(&mut a.fd, &mut a.kept);
        Ok(())
    }),
    Act::new("bind-to", "ADDRESS PORT", |a, w| bind(a, &address(w)?)),
    Act::new("connect-to", "ADDRESS PORT", |a, w| connect(a, &address(w)?)),
    Act::new("disconnect", "", |a, _| connect(a, &[0; 16])),
    Act::new("listen", "", |a, _| call(libc::SYS_listen, &mut [Number(a.fd.into()), Number(4)]).map(drop)),
    Act::new("accept", "", accept),
    Act::new("say", "", |a, _| say(a, &[])),
    Act::new("say-to", "ADDRESS PORT", |a, w| say(a, &address(w)?)),
    Act::new("hear", "", hear),
    Act::new("shutdown", "", |a, _| {
        call(libc::SYS_shutdown, &mut [Number(a.fd.into()), Number(libc::SHUT_RDWR.into())]).map(drop)
    }),
    Act::new("getsockname", "", |a, _| name(a, libc::SYS_getsockname)),
    Act::new("getpeername", "", |a, _| name(a, libc::SYS_getpeername)),
    Act::new("getsockopt", "", getsockopt),
    Act::new("setsockopt", "", setsockopt),
    Act::new("tun", "NAME", tun),
];

/// Families and kinds of sockets by name; others are given by number.
const NAMES: &[(&str, i32)] = &[
    ("unix", libc::AF_UNIX),
    ("inet", libc::AF_INET),
    ("inet6", libc::AF_INET6),
    ("netlink", libc::AF_NETLINK),
    ("packet", libc::AF_PACKET),
    ("alg", libc::AF_ALG),
    ("vsock", libc::AF_VSOCK),
    ("xdp", libc::AF_XDP),
    ("stream", libc::SOCK_STREAM),
    ("dgram", libc::SOCK_DGRAM),
    ("raw", libc::SOCK_RAW),
    ("seqpacket", libc::SOCK_SEQPACKET),
    ("tcp", libc::IPPROTO_TCP),
    ("icmp", libc::IPPROTO_ICMP),
    ("sctp", libc::IPPROTO_SCTP),
    ("mptcp", libc::IPPROTO_MPTCP),
    ("route", libc::NETLINK_ROUTE),
    ("diag", libc::NETLINK_SOCK_DIAG),
    ("xfrm", libc::NETLINK_XFRM),
    ("audit", libc::NETLINK_AUDIT),
    ("uevent", libc::NETLINK_KOBJECT_UEVENT),
    ("generic", libc::NETLINK_GENERIC),
    ("netfilter", libc::NETLINK_NETFILTER),
];

fn socket(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let of = |word: &str| match NAMES.iter().find(|(name, _)| *name == word) {
        Some((_, known)) => Ok(i64::from(*known)),
        None => number(word),
    };
    let made = call(libc::SYS_socket, &mut [of(words[0])?, of(words[1])?, of(words[2])?].map(Number))?;
    actor.fd = descriptor(made);
    Ok(())
}

pub(super) fn descriptor(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(-1)
}

/// `struct sockaddr_in` or `struct sockaddr_in6`.
fn address(words: &[&str]) -> io::Result<Vec<u8>> {
    let address: IpAddr = words[0].parse().map_err(|_| io::Error::from_raw_os_error(libc::ENOSYS))?;
    let port = (number(words[1])? as u16).to_be_bytes();
    let family = |family: i32| (family as u16).to_ne_bytes();
    Ok(match address {
        IpAddr::V4(address) => [&family(libc::AF_INET)[..], &port, &address.octets(), &[0; 8]].concat(),
        IpAddr::V6(address) => [&family(libc::AF_INET6)[..], &port, &[0; 4], &address.octets(), &[0; 4]].concat(),
    })
}

pub(super) fn bind(actor: &Actor, address: &[u8]) -> io::Result<()> {
    call(libc::SYS_bind, &mut [Number(actor.fd.into()), Bytes(address), Number(address.len() as i64)]).map(drop)
}

pub(super) fn connect(actor: &Actor, address: &[u8]) -> io::Result<()> {
    call(libc::SYS_connect, &mut [Number(actor.fd.into()), Bytes(address), Number(address.len() as i64)]).map(drop)
}

/// Accepts a connection on the kept socket.
fn accept(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    let accepted = call(libc::SYS_accept4, &mut [i64::from(actor.kept), 0, 0, 0].map(Number))?;
    actor.fd = descriptor(accepted);
    Ok(())
}

/// Sends a byte; without an address to the connected peer.
pub(super) fn say(actor: &Actor, address: &[u8]) -> io::Result<()> {
    let flags = Number(libc::MSG_NOSIGNAL.into());
    let to = if address.is_empty() { Number(0) } else { Bytes(address) };
    let length = Number(address.len() as i64);
    call(libc::SYS_sendto, &mut [Number(actor.fd.into()), Bytes(b"x"), Number(1), flags, to, length]).map(drop)
}

/// Receives what arrives within two seconds; ENODATA if the other end is closed.
fn hear(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    // struct pollfd: descriptor, wanted events, found events.
    let mut wanted = [actor.fd.to_ne_bytes(), (libc::POLLIN as u32).to_ne_bytes()].concat();
    call(libc::SYS_poll, &mut [Room(&mut wanted), Number(1), Number(2000)])?;
    let flags = Number(libc::MSG_DONTWAIT.into());
    let mut room = [0; 16];
    match call(libc::SYS_recvfrom, &mut [Number(actor.fd.into()), Room(&mut room), Number(16), flags]) {
        Ok(0) => errno(libc::ENODATA),
        other => other.map(drop),
    }
}

fn name(actor: &Actor, which: i64) -> io::Result<()> {
    let (mut room, mut length) = ([0; 128], 128_u32.to_ne_bytes());
    call(which, &mut [Number(actor.fd.into()), Room(&mut room), Room(&mut length)]).map(drop)
}

fn getsockopt(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    let (mut value, mut length) = ([0; 4], 4_u32.to_ne_bytes());
    let which = [i64::from(libc::SOL_SOCKET), libc::SO_RCVBUF.into()].map(Number);
    let [level, option] = which;
    call(libc::SYS_getsockopt, &mut [Number(actor.fd.into()), level, option, Room(&mut value), Room(&mut length)])
        .map(drop)
}

fn setsockopt(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    let which = [i64::from(libc::SOL_SOCKET), libc::SO_REUSEADDR.into()].map(Number);
    let [level, option] = which;
    call(libc::SYS_setsockopt, &mut [Number(actor.fd.into()), level, option, Bytes(&[1, 0, 0, 0]), Number(4)]).map(drop)
}

/// Creates a network interface whose other end is this process.
fn tun(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let mut request = [0_u8; 40];
    request[..words[0].len()].copy_from_slice(words[0].as_bytes());
    request[16..18].copy_from_slice(&(libc::IFF_TUN as u16).to_ne_bytes());
    call(libc::SYS_ioctl, &mut [Number(actor.fd.into()), Number(libc::TUNSETIFF as i64), Room(&mut request)]).map(drop)
}
