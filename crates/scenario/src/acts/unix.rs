//! Acts on unix sockets (AF_UNIX), by path or by abstract name.

use std::io;

use super::{
    Act,
    sockets::{bind, connect, descriptor, say},
};
use crate::{
    actor::Actor,
    kernel::{
        Argument::{Number, Room},
        call,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("socketpair", "TYPE", pair),
    Act::new("bind-path", "PATH", |a, w| bind(a, &path(w[0]))),
    Act::new("bind-name", "NAME", |a, w| bind(a, &name(w[0]))),
    Act::new("connect-path", "PATH", |a, w| connect(a, &path(w[0]))),
    Act::new("connect-name", "NAME", |a, w| connect(a, &name(w[0]))),
    Act::new("say-to-path", "PATH", |a, w| say(a, &path(w[0]))),
    Act::new("say-to-name", "NAME", |a, w| say(a, &name(w[0]))),
];

/// `struct sockaddr_un` for a path.
fn path(path: &str) -> Vec<u8> {
    [&(libc::AF_UNIX as u16).to_ne_bytes()[..], path.as_bytes(), b"\0"].concat()
}

/// `struct sockaddr_un` for an abstract name.
fn name(name: &str) -> Vec<u8> {
    [&(libc::AF_UNIX as u16).to_ne_bytes()[..], b"\0", name.as_bytes()].concat()
}

/// Two connected sockets: the present one, and the kept one.
fn pair(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let kind = if words[0] == "stream" { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
    let mut both = [0_u8; 8];
    call(libc::SYS_socketpair, &mut [Number(libc::AF_UNIX.into()), Number(kind.into()), Number(0), Room(&mut both)])?;
    let (ends, _) = both.as_chunks::<4>();
    [actor.fd, actor.kept] = [ends[0], ends[1]].map(|end| descriptor(i32::from_ne_bytes(end).into()));
    Ok(())
}
