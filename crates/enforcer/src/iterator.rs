//! Iterators of the kernel: programs that it runs once for each object of a kind, and that write records of it.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use libbpf_rs::libbpf_sys;
use zerocopy::FromBytes;

/// Runs an iterator over the objects that `which` names. Returns what it has written.
pub(crate) fn run(program: BorrowedFd<'_>, mut which: libbpf_sys::bpf_iter_link_info) -> io::Result<Vec<u8>> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
        iter_info: &raw mut which,
        iter_info_len: size_of::<libbpf_sys::bpf_iter_link_info>() as _,
        ..Default::default()
    };
    // SAFETY: the program is open, and both structures outlive the call.
    let link = opened(unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), 0, libbpf_sys::BPF_TRACE_ITER, &raw const options)
    })?;
    // SAFETY: the link is open.
    let mut iterator = File::from(opened(unsafe { libbpf_sys::bpf_iter_create(link.as_raw_fd()) })?);
    let mut bytes = Vec::new();
    iterator.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The result of libbpf: a new descriptor, or a negative errno.
fn opened(result: i32) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: it is open, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// Reads what an iterator has written: structures of integers.
pub(crate) fn records<T: FromBytes>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).filter_map(|record| T::read_from_bytes(record).ok()).collect()
}
