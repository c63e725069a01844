//! Acts on keys and keyrings, whose number takes the place of a descriptor.

use std::io;

use super::{Act, number};
use crate::{
    actor::Actor,
    context::whole,
    kernel::{
        Argument::{self, Bytes, Number, Room, Text},
        call, text,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("setkeycreatecon", "CONTEXT", |a, w| a.engine.set_key_create(&whole(w[0], "object_r"))),
    Act::new("join-session", "", |a, _| {
        a.fd = keyctl(1, [Number(0)])? as i32;
        Ok(())
    }),
    Act::new("add-key", "RING NAME", |a, w| add(a, "user", b"payload", w)),
    Act::new("add-ring", "RING NAME", |a, w| add(a, "keyring", b"", w)),
    Act::new("search-key", "RING NAME", |a, w| {
        let (ring, kind, name) = (ring(a, w[0])?, text("user"), text(w[1]));
        a.fd = keyctl(10, [Number(ring), Text(&kind), Text(&name), Number(0)])? as i32;
        Ok(())
    }),
    Act::new("key", "OPERATION", key),
];

fn keyctl<const N: usize>(operation: i64, rest: [Argument<'_>; N]) -> io::Result<i64> {
    let mut arguments = vec![Number(operation)];
    arguments.extend(rest);
    call(libc::SYS_keyctl, &mut arguments)
}

/// A keyring by its role for the subject; `this`: the last one that was created or found.
fn ring(actor: &Actor, word: &str) -> io::Result<i64> {
    match word {
        "this" => Ok(actor.fd.into()),
        "thread" => Ok(-1),
        "process" => Ok(-2),
        "session" => Ok(-3),
        other => number(other),
    }
}

fn add(actor: &mut Actor, kind: &str, payload: &[u8], words: &[&str]) -> io::Result<()> {
    let (ring, kind, name) = (ring(actor, words[0])?, text(kind), text(words[1]));
    let content = if payload.is_empty() { Number(0) } else { Bytes(payload) };
    let all = &mut [Text(&kind), Text(&name), content, Number(payload.len() as i64), Number(ring)];
    actor.fd = call(libc::SYS_add_key, all)? as i32;
    Ok(())
}

/// An operation of keyctl(2) on the key.
fn key(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let own = i64::from(actor.fd);
    let mut room = [0; 256];
    let done = match words[0] {
        "update" => keyctl(2, [Number(own), Bytes(b"new"), Number(3)]),
        "revoke" => keyctl(3, [Number(own)]),
        "chown" => keyctl(4, [Number(own), Number(0), Number(-1)]),
        "setperm" => keyctl(5, [Number(own), Number(0x3f3f_0000)]),
        "describe" => keyctl(6, [Number(own), Room(&mut room), Number(256)]),
        "clear" => keyctl(7, [Number(own)]),
        "link" => keyctl(8, [Number(own), Number(-2)]),
        "unlink" => keyctl(9, [Number(own), Number(-3)]),
        "read" => keyctl(11, [Number(own), Room(&mut room), Number(256)]),
        "timeout" => keyctl(15, [Number(own), Number(1000)]),
        "invalidate" => keyctl(21, [Number(own)]),
        _ => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
    };
    done.map(drop)
}
