//! Programs that the daemon runs on a value: those of the section `syscall`.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use libbpf_rs::libbpf_sys;
use zerocopy::{FromBytes, IntoBytes};

/// Runs a program on a value, which the program may change.
pub(crate) fn run<T: FromBytes + IntoBytes>(program: BorrowedFd<'_>, value: &mut T) -> io::Result<()> {
    let bytes = value.as_mut_bytes();
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ctx_in: bytes.as_mut_ptr().cast(),
        ctx_size_in: bytes.len() as _,
        ..Default::default()
    };
    // SAFETY: the descriptor is open, and the kernel reads and writes `ctx_size_in` bytes at `ctx_in`, no more. Whatever it
    // writes is a value.
    match unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
