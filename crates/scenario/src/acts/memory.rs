//! Acts on memory: mappings, and whether they may be executed.

use std::{io, ptr};

use super::{Act, bits};
use crate::{
    actor::Actor,
    kernel::{Argument::Number, call, errno},
};

const PAGE: usize = 4096;

pub(super) const ACTS: &[Act] = &[
    Act::new("map", "SHARING PROTECTION", |a, w| map(a, w[0], w[1], a.fd)),
    Act::new("anonymous", "SHARING PROTECTION", |a, w| map(a, &format!("{},anonymous", w[0]), w[1], -1)),
    Act::new("map-zero", "", |a, _| map_at(a, 0, "private,anonymous,fixed", "r", -1)),
    Act::new("dirty", "", dirty),
    Act::new("protect", "PROTECTION", |a, w| protect(a.mapping, w[0])),
    Act::new("protect-heap", "PROTECTION", heap),
    Act::new("protect-stack", "PROTECTION", stack),
    Act::new("mlock", "", mlock),
];

fn protection(word: &str) -> io::Result<i64> {
    let names = [("r", libc::PROT_READ), ("w", libc::PROT_WRITE), ("x", libc::PROT_EXEC)];
    bits(word, &names.map(|(name, bit)| (name, i64::from(bit))))
}

fn map(actor: &mut Actor, sharing: &str, word: &str, fd: i32) -> io::Result<()> {
    map_at(actor, 0, sharing, word, fd)
}

fn map_at(actor: &mut Actor, address: i64, sharing: &str, word: &str, fd: i32) -> io::Result<()> {
    let names = [
        ("shared", libc::MAP_SHARED),
        ("private", libc::MAP_PRIVATE),
        ("anonymous", libc::MAP_ANONYMOUS),
        ("fixed", libc::MAP_FIXED),
    ]
    .map(|(name, bit)| (name, i64::from(bit)));
    let arguments = [address, PAGE as i64, protection(word)?, bits(sharing, &names)?, fd.into(), 0].map(Number);
    actor.mapping = call(libc::SYS_mmap, &mut { arguments })? as usize;
    Ok(())
}

/// Writes into the mapping, which gives a private one pages of its own.
fn dirty(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    if actor.mapping == 0 {
        return errno(libc::ENOSYS);
    }
    // SAFETY: an act before this one mapped the page; a scenario that mapped it without write is ended by SIGSEGV.
    unsafe { ptr::write_volatile(actor.mapping as *mut u8, 1) };
    Ok(())
}

fn protect(address: usize, word: &str) -> io::Result<()> {
    let page = (address & !(PAGE - 1)) as i64;
    call(libc::SYS_mprotect, &mut [page, PAGE as i64, protection(word)?].map(Number)).map(drop)
}

/// A new page at the end of the heap.
fn heap(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let end = call(libc::SYS_brk, &mut [Number(0)])?;
    let page = (end + PAGE as i64 - 1) & !(PAGE as i64 - 1);
    call(libc::SYS_brk, &mut [Number(page + PAGE as i64)])?;
    protect(page as usize, words[0])
}

/// A page far below the top of the main thread's stack.
fn stack(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let here = 0_u8;
    protect(ptr::from_ref(&here) as usize, words[0])
}

/// Locks a page into memory, although the limit is 0.
fn mlock(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_MEMLOCK, 0, 0)?;
    map(actor, "private,anonymous", "r,w", -1)?;
    call(libc::SYS_mlock, &mut [actor.mapping as i64, PAGE as i64].map(Number)).map(drop)
}
