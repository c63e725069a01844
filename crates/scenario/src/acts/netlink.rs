//! Acts on netlink sockets: messages to the kernel.

use std::io;

use super::{Act, number};
use crate::{
    actor::Actor,
    kernel::{
        Argument::{Bytes, Number},
        call,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("message", "TYPE", |a, w| messages(a, &[number(w[0])?])),
    Act::new("messages", "TYPE TYPE", |a, w| messages(a, &[number(w[0])?, number(w[1])?])),
    Act::new("many-messages", "TYPE TYPE", many),
];

/// More messages than fit into a socket's buffer of default size: all of the first type, then one of the other.
const FLOOD_MESSAGES: usize = 70_000;
/// The size of a buffer that holds them.
const BUFFER: i32 = 64 << 20;

fn many(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let room = BUFFER.to_ne_bytes();
    let level = Number(libc::SOL_SOCKET.into());
    let option = Number(libc::SO_SNDBUFFORCE.into());
    call(libc::SYS_setsockopt, &mut [Number(actor.fd.into()), level, option, Bytes(&room), Number(4)])?;
    let mut all = vec![number(words[0])?; FLOOD_MESSAGES];
    all.push(number(words[1])?);
    messages(actor, &all)
}

/// Sends messages of these types, in one piece. The kernel's answer does not matter: they request nothing, and have no valid
/// content.
fn messages(actor: &Actor, types: &[i64]) -> io::Result<()> {
    const MESSAGE_LENGTH: u32 = 32;
    let message = |kind: &i64| {
        let header = [&MESSAGE_LENGTH.to_ne_bytes()[..], &(*kind as u16).to_ne_bytes(), &1_u16.to_ne_bytes()].concat();
        [header, vec![0; MESSAGE_LENGTH as usize - 8]].concat()
    };
    let all: Vec<u8> = types.iter().flat_map(message).collect();
    let length = Number(all.len() as i64);
    call(libc::SYS_sendto, &mut [Number(actor.fd.into()), Bytes(&all), length, Number(0), Number(0), Number(0)])
        .map(drop)
}
