//! Acts on io_uring.

use std::{
    io, ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{Act, number};
use crate::{
    actor::Actor,
    kernel::{
        Argument::{Bytes, Number, Room, Text},
        call, text,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("ring", "", |_, _| Ring::set_up(0).map(drop)),
    Act::new("ring-poll", "", |_, _| Ring::set_up(SETUP_SQPOLL).map(drop)),
    Act::new("ring-nop", "", |_, _| Ring::set_up(0)?.submit(&Entry { opcode: NOP, ..Entry::default() })),
    Act::new("ring-command", "NUMBER", |a, w| {
        let offset = number(w[0])? as u64;
        Ring::set_up(0)?.submit(&Entry { opcode: URING_CMD, fd: a.fd, offset, ..Entry::default() })
    }),
    Act::new("ring-personality", "", |_, _| {
        let ring = Ring::set_up(0)?;
        let personality =
            call(libc::SYS_io_uring_register, &mut [ring.fd, REGISTER_PERSONALITY, 0, 0].map(Number))? as u16;
        ring.submit(&Entry { opcode: NOP, personality, ..Entry::default() })
    }),
    Act::new("ring-read-later", "READY PATH", read_later),
];

const SETUP_SQPOLL: u32 = 2;
const REGISTER_PERSONALITY: i64 = 9;
const REGISTER_FILES: i64 = 2;
const NOP: u8 = 0;
const READ: u8 = 22;
/// The flag of an entry whose file is registered in the ring.
const FIXED_FILE: u8 = 1;
const URING_CMD: u8 = 46;
/// The offset at which the entries are mapped (IORING_OFF_SQES).
const ENTRIES: i64 = 0x1000_0000;
const PAGE: usize = 4096;

/// Registers the open file in a ring and closes it, creates the directory READY, waits until the pipe PATH is opened, and
/// reads.
fn read_later(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let (ring, file) = (Ring::set_up(0)?, actor.fd.to_ne_bytes());
    call(libc::SYS_io_uring_register, &mut [Number(ring.fd), Number(REGISTER_FILES), Bytes(&file), Number(1)])?;
    call(libc::SYS_close, &mut [Number(actor.fd.into())])?;
    call(libc::SYS_mkdir, &mut [Text(&text(words[0])), Number(0o755)])?;
    call(libc::SYS_open, &mut [Text(&text(words[1])), Number(libc::O_RDONLY.into()), Number(0)])?;
    let mut byte = 0_u8;
    let address = &raw mut byte as u64;
    ring.submit(&Entry { opcode: READ, flags: FIXED_FILE, fd: 0, address, length: 1, ..Entry::default() })
}

/// struct io_uring_sqe.
#[repr(C)]
#[derive(Default)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    more_flags: u32,
    user_data: u64,
    buffer: u16,
    personality: u16,
    rest: [u32; 5],
}

/// A ring for one operation at a time.
struct Ring {
    fd: i64,
    /// struct io_uring_params, as the kernel has filled it.
    parameters: [u32; 30],
}

impl Ring {
    fn set_up(flags: u32) -> io::Result<Self> {
        let mut bytes = [0; 120];
        bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
        let fd = call(libc::SYS_io_uring_setup, &mut [Number(1), Room(&mut bytes)])?;
        let mut parameters = [0; 30];
        for (word, bytes) in parameters.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Ok(Self { fd, parameters })
    }

    fn map(&self, offset: i64) -> io::Result<*mut u8> {
        let access = i64::from(libc::PROT_READ | libc::PROT_WRITE);
        let shared = i64::from(libc::MAP_SHARED);
        let at = call(libc::SYS_mmap, &mut [0, PAGE as i64, access, shared, self.fd, offset].map(Number))?;
        Ok(at as *mut u8)
    }

    /// Submits one operation, and fails as the operation does.
    fn submit(&self, entry: &Entry) -> io::Result<()> {
        // Words 10 to 19 are the offsets of the submission queue, 20 to 29 those of the completion queue: head, tail, mask,
        // entries; then the array is at the seventh, the entries of the other at the sixth.
        let [tail, array, completions] = [11, 16, 25].map(|word| self.parameters[word] as usize);
        let (queue, entries) = (self.map(0)?, self.map(ENTRIES)?);
        // SAFETY: a queue of one entry lies in its first page, which both mappings have, at the kernel's offsets, aligned.
        let completed: i32 = unsafe {
            ptr::write(entries.cast(), ptr::read(entry));
            ptr::write(queue.add(array).cast::<u32>(), 0);
            AtomicU32::from_ptr(queue.add(tail).cast()).store(1, Ordering::Release);
            call(libc::SYS_io_uring_enter, &mut [self.fd, 1, 1, 1, 0, 0].map(Number))?;
            ptr::read_volatile(queue.add(completions + 8).cast())
        };
        if completed < 0 { Err(io::Error::from_raw_os_error(-completed)) } else { Ok(()) }
    }
}
