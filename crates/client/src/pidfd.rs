//! Processes by descriptor: a number may be another process's by the time that it is used.

use std::{
    io,
    os::fd::{FromRawFd, OwnedFd},
};

use nix::errno::Errno;

/// Opens a process by its number (pidfd_open(2)).
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    pidfd_open(pid, 0)
}

/// Opens a thread that is not its process's first, of kernels from 6.9 (PIDFD_THREAD).
pub fn open_thread(thread: i32) -> io::Result<OwnedFd> {
    pidfd_open(thread, libc::O_EXCL)
}

fn pidfd_open(pid: i32, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the system call takes two integers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) };
    let descriptor = Errno::result(descriptor)?;
    // SAFETY: the kernel has just made the descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
