//! Processes by descriptor. A process number can belong to another process by the time it is used; a descriptor cannot.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use nix::errno::Errno;

/// Opens a process by its number (pidfd_open(2)). ESRCH: there is no such process.
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    pidfd_open(pid, 0)
}

/// Opens a thread that is not the first of its process (PIDFD_THREAD). Needs Linux 6.9.
pub fn open_thread(thread: i32) -> io::Result<OwnedFd> {
    pidfd_open(thread, libc::O_EXCL)
}

/// A descriptor of a process, by its number there (pidfd_getfd(2)). Needs the right to trace the process.
pub fn descriptor(process: BorrowedFd<'_>, number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the system call takes a descriptor, which is open, and two integers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    let descriptor = Errno::result(descriptor)?;
    // SAFETY: the kernel has just made the descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

fn pidfd_open(pid: i32, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the system call takes two integers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) };
    let descriptor = Errno::result(descriptor)?;
    // SAFETY: the kernel has just made the descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
