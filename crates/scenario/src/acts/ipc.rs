//! Acts on System V objects, whose number takes the place of a descriptor, and on POSIX message queues.

use std::io;

use super::{Act, bits, number};
use crate::{
    actor::Actor,
    kernel::{
        Argument::{self, Bytes, Number, Room, Text},
        call, text,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("msgget", "KEY HOW", |a, w| get(a, libc::SYS_msgget, None, w)),
    Act::new("msgsnd", "", |a, _| own(a, libc::SYS_msgsnd, [Bytes(&MESSAGE), Number(1), NOWAIT])),
    Act::new("msgrcv", "", |a, _| own(a, libc::SYS_msgrcv, [Room(&mut [0; 16]), Number(1), Number(0), NOWAIT])),
    Act::new("msgctl", "COMMAND", |a, w| control(a, libc::SYS_msgctl, QUEUES, w[0])),
    Act::new("semget", "KEY HOW", |a, w| get(a, libc::SYS_semget, Some(1), w)),
    Act::new("semop", "CHANGE", semop),
    Act::new("semctl", "COMMAND", semctl),
    Act::new("shmget", "KEY HOW", |a, w| get(a, libc::SYS_shmget, Some(4096), w)),
    Act::new("shmat", "HOW", shmat),
    Act::new("shmctl", "COMMAND", |a, w| control(a, libc::SYS_shmctl, SEGMENTS, w[0])),
    Act::new("mq-open", "NAME FLAGS", mq_open),
    Act::new("mq-unlink", "NAME", |_, w| call(libc::SYS_mq_unlink, &mut [Text(&text(w[0]))]).map(drop)),
    Act::new("mq-send", "", |a, _| own(a, libc::SYS_mq_timedsend, [Bytes(b"x"), Number(1), Number(0), Number(0)])),
    Act::new("mq-receive", "", |a, _| {
        own(a, libc::SYS_mq_timedreceive, [Room(&mut [0; 8192]), Number(8192), Number(0), Number(0)])
    }),
];

const NOWAIT: Argument<'static> = Number(libc::IPC_NOWAIT as i64);
/// A message of type 1 with one byte: struct msgbuf.
const MESSAGE: [u8; 16] = [1, 0, 0, 0, 0, 0, 0, 0, b'x', 0, 0, 0, 0, 0, 0, 0];
/// The bits of an object's number that are its place in the table, which all listing commands take.
const PLACE: i64 = 0x7fff;

/// Commands by name, and whether they take a place in the table instead of a number.
type Commands = [(&'static str, i64, bool)];
const QUEUES: &Commands = &[
    ("rmid", 0, false),
    ("set", 1, false),
    ("stat", 2, false),
    ("limits", 3, true),
    ("stat-place", 11, true),
    ("info", 12, true),
    ("stat-any", 13, true),
];
const SEGMENTS: &Commands = &[
    ("rmid", 0, false),
    ("set", 1, false),
    ("stat", 2, false),
    ("limits", 3, true),
    ("lock", 11, false),
    ("stat-place", 13, true),
    ("info", 14, true),
    ("stat-any", 15, true),
];

/// The object of a key, with the access that the subject requests: `r`, `w`, or `create`.
fn get(actor: &mut Actor, call_number: i64, size: Option<i64>, words: &[&str]) -> io::Result<()> {
    let how = [("create", libc::IPC_CREAT), ("excl", libc::IPC_EXCL), ("r", 0o444), ("w", 0o222)];
    let how = bits(words[1], &how.map(|(name, bit)| (name, i64::from(bit))))?;
    let arguments = [Some(number(words[0])?), size, Some(how)];
    let found = call(call_number, &mut arguments.into_iter().flatten().map(Number).collect::<Vec<_>>())?;
    actor.fd = found as i32;
    Ok(())
}

/// A call on the subject's own object.
fn own<const N: usize>(actor: &Actor, call_number: i64, rest: [Argument<'_>; N]) -> io::Result<()> {
    let mut arguments = vec![Number(actor.fd.into())];
    arguments.extend(rest);
    call(call_number, &mut arguments).map(drop)
}

/// A command on the object. Commands that set something set owner root and mode 0.
fn control(actor: &Actor, call_number: i64, commands: &Commands, word: &str) -> io::Result<()> {
    let found = commands.iter().find(|(name, ..)| *name == word);
    let (_, command, by_place) = found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS))?;
    let object = i64::from(actor.fd);
    let object = if *by_place { object & PLACE } else { object };
    call(call_number, &mut [Number(object), Number(*command), Room(&mut [0; 256])]).map(drop)
}

/// Adds to the semaphore, subtracts from it, or, with 0, checks that it is 0.
fn semop(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let operation = [0, number(words[0])? as i16, libc::IPC_NOWAIT as i16].map(i16::to_ne_bytes).concat();
    own(actor, libc::SYS_semop, [Bytes(&operation), Number(1)])
}

fn semctl(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let commands = [
        ("rmid", 0),
        ("set", 1),
        ("stat", 2),
        ("limits", 3),
        ("getpid", 11),
        ("getval", 12),
        ("getall", 13),
        ("getncnt", 14),
        ("getzcnt", 15),
        ("setval", 16),
        ("setall", 17),
        ("stat-place", 18),
        ("info", 19),
        ("stat-any", 20),
    ];
    let command = bits(words[0], &commands)?;
    let by_place = [3, 18, 19, 20].contains(&command);
    let object = i64::from(actor.fd);
    let object = if by_place { object & PLACE } else { object };
    // setval takes a value and no address.
    let mut room = [0; 256];
    let argument = if command == 16 { Number(0) } else { Room(&mut room) };
    call(libc::SYS_semctl, &mut [Number(object), Number(0), Number(command), argument]).map(drop)
}

fn shmat(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let how = [("r", libc::SHM_RDONLY), ("rw", 0), ("exec", libc::SHM_EXEC)].map(|(name, bit)| (name, i64::from(bit)));
    let at = call(libc::SYS_shmat, &mut [Number(actor.fd.into()), Number(0), Number(bits(words[0], &how)?)])?;
    actor.mapping = at as usize;
    Ok(())
}

/// Opens a queue by its name, which has no slash in the kernel.
fn mq_open(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let flags = [
        ("r", libc::O_RDONLY),
        ("w", libc::O_WRONLY),
        ("rw", libc::O_RDWR),
        ("creat", libc::O_CREAT),
        ("excl", libc::O_EXCL),
    ];
    let flags = bits(words[1], &flags.map(|(name, bit)| (name, i64::from(bit))))? | i64::from(libc::O_NONBLOCK);
    let name = text(words[0]);
    actor.fd = call(libc::SYS_mq_open, &mut [Text(&name), Number(flags), Number(0o644), Number(0)])? as i32;
    Ok(())
}
