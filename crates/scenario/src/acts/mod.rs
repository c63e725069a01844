//! The acts of a subject: a table, each act a system call or a few.

pub(crate) mod capabilities;
pub(crate) mod files;
mod ipc;
mod kernel_objects;
mod keys;
mod memory;
mod mounts;
mod netlink;
pub(crate) mod processes;
mod rings;
mod sockets;
mod unix;

use std::io;

use nix::errno::Errno;

use crate::{
    actor::{Actor, DONE, READY, end, rename},
    kernel::call,
};

/// An act of a subject.
pub(crate) struct Act {
    name: &'static str,
    /// The arguments of the act, for people.
    takes: &'static str,
    run: fn(&mut Actor, &[&str]) -> io::Result<()>,
}

impl Act {
    const fn new(name: &'static str, takes: &'static str, run: fn(&mut Actor, &[&str]) -> io::Result<()>) -> Self {
        Self { name, takes, run }
    }

    /// Does the act with these words.
    pub(crate) fn run(&self, actor: &mut Actor, words: &[&str]) -> io::Result<()> {
        (self.run)(actor, words)
    }
}

/// The act of a line and its words, or what is wrong with the line.
pub(crate) fn find(line: &str) -> Result<(&'static Act, Vec<&str>), String> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let tables = [
        files::ACTS,
        memory::ACTS,
        processes::ACTS,
        capabilities::ACTS,
        mounts::ACTS,
        ipc::ACTS,
        keys::ACTS,
        kernel_objects::ACTS,
        rings::ACTS,
        sockets::ACTS,
        unix::ACTS,
        netlink::ACTS,
    ];
    let act = tables.into_iter().flatten().find(|act| act.name == name);
    match act {
        None => Err(format!("there is no act {name}: crates/scenario/src/acts has them all")),
        Some(act) if act.takes.split_whitespace().count() != words.len() => {
            Err(format!("`{line}` has too many words or too few: {} {}", act.name, act.takes))
        }
        Some(act) => Ok((act, words)),
    }
}

/// Does all acts of a subject; returns which one failed, and how, unless failures do not matter.
pub(crate) fn do_all(actor: &mut Actor) -> Result<(), (usize, Errno)> {
    while !actor.rest.is_empty() {
        let line = actor.rest.remove(0);
        actor.done += 1;
        let done = find(&line)
            .map_err(|_| io::Error::from_raw_os_error(libc::ENOSYS))
            .and_then(|(act, words)| act.run(actor, &words));
        if let Err(error) = done
            && !actor.undeterred
        {
            return Err((actor.done, Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))));
        }
    }
    Ok(())
}

/// Does all acts of a subject and ends.
pub(crate) fn perform(mut actor: Actor) -> ! {
    match do_all(&mut actor) {
        Ok(()) if actor.stays => {
            rename(READY);
            loop {
                // Only a signal ends it.
                let _ = call(libc::SYS_pause, &mut []);
            }
        }
        Ok(()) => end(DONE, 0),
        Err((act, errno)) => end(&format!("@{act}:{}", errno as i32), 1),
    }
}

/// Parses a number: decimal, 0x hexadecimal, or 0o octal.
fn number(word: &str) -> io::Result<i64> {
    let parsed = match (word.strip_prefix("0x"), word.strip_prefix("0o")) {
        (Some(digits), _) => i64::from_str_radix(digits, 16),
        (_, Some(digits)) => i64::from_str_radix(digits, 8),
        _ => word.parse(),
    };
    parsed.map_err(|_| io::Error::from_raw_os_error(libc::ENOSYS))
}

/// The bits for a list of names, separated by commas.
fn bits(word: &str, names: &[(&str, i64)]) -> io::Result<i64> {
    word.split(',').filter(|name| *name != "none").try_fold(0, |bits, name| {
        let found = names.iter().find(|(known, _)| *known == name);
        found.map(|(_, bit)| bits | bit).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS))
    })
}
