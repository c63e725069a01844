//! Acts on objects without an inode of their own, which are used by descriptors: BPF maps and programs, performance events,
//! userfaultfd, memory files; on notification, and on modules.

use std::io;

use super::{Act, bits, files::HERE};
use crate::{
    actor::Actor,
    kernel::{
        Argument::{Bytes, Number, Room, Text},
        call, text,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("bpf-map", "HOW", make_map),
    Act::new("bpf-program", "", load_program),
    Act::new("bpf-reopen", "KIND HOW", reopen),
    Act::new("bpf-lookup", "", |a, _| element(a, MAP_LOOKUP_ELEM)),
    Act::new("bpf-update", "", |a, _| element(a, MAP_UPDATE_ELEM)),
    Act::new("perf-open", "WHAT", perf_open),
    Act::new("perf-read", "", |a, _| {
        call(libc::SYS_read, &mut [Number(a.fd.into()), Room(&mut [0; 8]), Number(8)]).map(drop)
    }),
    Act::new("perf-enable", "", |a, _| call(libc::SYS_ioctl, &mut [a.fd.into(), 0x2400, 0].map(Number)).map(drop)),
    Act::new("userfaultfd", "", |a, _| opened(a, call(libc::SYS_userfaultfd, &mut [Number(USER_MODE_ONLY)]))),
    Act::new("userfaultfd-api", "", userfaultfd_api),
    Act::new("memfd", "NAME", |a, w| {
        let name = text(w[0]);
        opened(a, call(libc::SYS_memfd_create, &mut [Text(&name), Number(0)]))
    }),
    Act::new("fanotify", "PATH WHAT EVENTS", fanotify),
    Act::new("load-module", "", |a, _| {
        nonsense(call(libc::SYS_finit_module, &mut [Number(a.fd.into()), Text(c""), Number(0)]))
    }),
    Act::new("load-module-memory", "", |_, _| {
        nonsense(call(libc::SYS_init_module, &mut [Bytes(&[0; 64]), Number(64), Text(c"")]))
    }),
];

fn opened(actor: &mut Actor, made: io::Result<i64>) -> io::Result<()> {
    actor.fd = made? as i32;
    Ok(())
}

/// Succeeds if the load failed only because the file is no module: it was not denied.
fn nonsense(loaded: io::Result<i64>) -> io::Result<()> {
    match loaded {
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => Ok(()),
        other => other.map(drop),
    }
}

const MAP_CREATE: i64 = 0;
const MAP_LOOKUP_ELEM: i64 = 1;
const MAP_UPDATE_ELEM: i64 = 2;
const PROG_LOAD: i64 = 5;
const PROG_GET_FD_BY_ID: i64 = 13;
const MAP_GET_FD_BY_ID: i64 = 14;
const OBJ_GET_INFO_BY_FD: i64 = 15;

/// bpf(2); union bpf_attr is an array of 32-bit words, and words that are not given are 0.
fn bpf(command: i64, attributes: &[u32]) -> io::Result<i64> {
    let attributes: Vec<u8> = attributes.iter().flat_map(|word| word.to_ne_bytes()).collect();
    call(libc::SYS_bpf, &mut [Number(command), Bytes(&attributes), Number(attributes.len() as i64)])
}

/// The two words of an address.
fn address<T: ?Sized>(of: *const T) -> [u32; 2] {
    let address = of.cast::<u8>() as u64;
    [address as u32, (address >> 32) as u32]
}

/// The access of a map's descriptor: `r`, `w`, `rw`.
fn access(word: &str) -> io::Result<u32> {
    Ok(bits(word, &[("rw", 0), ("r", 1 << 3), ("w", 1 << 4)])? as u32)
}

/// An array of one word, which can be mapped.
fn make_map(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let mappable = 1 << 10;
    opened(actor, bpf(MAP_CREATE, &[2, 4, 4, 1, access(words[0])? | mappable]))
}

/// A socket filter that drops everything: r0 = 0; exit.
fn load_program(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    let code: [u64; 2] = [0xb7, 0x95];
    let ([code_low, code_high], [license_low, license_high]) = (address(&raw const code), address(c"GPL".as_ptr()));
    opened(actor, bpf(PROG_LOAD, &[1, 2, code_low, code_high, license_low, license_high]))
}

/// Another descriptor of the map or the program, by its identifier.
fn reopen(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let mut info = [0_u32; 64];
    let [low, high] = address(&raw mut info);
    bpf(OBJ_GET_INFO_BY_FD, &[actor.fd as u32, size_of_val(&info) as u32, low, high])?;
    let by_identifier = bits(words[0], &[("map", MAP_GET_FD_BY_ID), ("program", PROG_GET_FD_BY_ID)])?;
    opened(actor, bpf(by_identifier, &[info[1], 0, access(words[1])?]))
}

/// Reads or writes the element of the map.
fn element(actor: &mut Actor, command: i64) -> io::Result<()> {
    let (key, mut value) = (0_u32, 0_u64);
    let ([key_low, key_high], [low, high]) = (address(&raw const key), address(&raw mut value));
    bpf(command, &[actor.fd as u32, 0, key_low, key_high, low, high, 0, 0]).map(drop)
}

/// Opens an event that counts nothing: for the subject alone, also in the kernel, or for a processor.
fn perf_open(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    // struct perf_event_attr: type and size, config, and at 40 the flags exclude_kernel and exclude_hv.
    let mut attributes = [0_u8; 112];
    let (own, kernel, processor) = (0, 1, 2);
    let what = bits(words[0], &[("own", own), ("kernel", kernel), ("processor", processor)])?;
    attributes[..8].copy_from_slice(&[1_u32, 112].map(u32::to_ne_bytes).concat());
    attributes[8..16].copy_from_slice(&9_u64.to_ne_bytes());
    attributes[40] = if what == kernel { 0 } else { 1 << 5 | 1 << 6 };
    let (process, on) = if what == processor { (-1, 0) } else { (0, -1) };
    let [process, on, group, flags] = [process, on, -1, 0].map(Number);
    opened(actor, call(libc::SYS_perf_event_open, &mut [Bytes(&attributes), process, on, group, flags]))
}

/// UFFD_USER_MODE_ONLY: faults in the kernel need another privilege.
const USER_MODE_ONLY: i64 = 1;

/// UFFDIO_API, with which its use begins.
fn userfaultfd_api(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    let mut api = [0_u8; 24];
    api[0] = 0xaa;
    call(libc::SYS_ioctl, &mut [Number(actor.fd.into()), Number(0xc018_aa3f), Room(&mut api)]).map(drop)
}

/// Requests fanotify events, or permission events, for a file, a mount, or a file system.
fn fanotify(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let (add, content) = (1, 4);
    let what = bits(words[1], &[("inode", 0), ("mount", 0x10), ("filesystem", 0x100)])?;
    let events = bits(
        words[2],
        &[("access", 1), ("modify", 2), ("open", 0x20), ("open-permission", 0x1_0000), ("access-permission", 0x2_0000)],
    )?;
    let path = text(words[0]);
    let notify = call(libc::SYS_fanotify_init, &mut [Number(content), Number(0)])?;
    let all = &mut [Number(notify), Number(add | what), Number(events), Number(HERE), Text(&path)];
    let marked = call(libc::SYS_fanotify_mark, all);
    call(libc::SYS_close, &mut [Number(notify)])?;
    marked.map(drop)
}
