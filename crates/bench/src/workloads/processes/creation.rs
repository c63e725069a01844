//! Creating processes and threads.

use std::{ffi::CStr, io, path::Path, ptr};

use nix::{
    errno::Errno,
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, Pid, fork},
};

use crate::{
    Error,
    place::Place,
    program::Program,
    workload::{LeavesWork, Prepared},
};

const SHELL: &CStr = c"/bin/sh";
/// The stack of a child that only calls execve.
const STACK: usize = 16 * 1024;

pub(super) fn fork_and_exit(_: &Place) -> Prepared {
    Ok(Box::new(LeavesWork(|| {
        // SAFETY: the child calls _exit and nothing else.
        match unsafe { fork() }? {
            // SAFETY: _exit runs nothing of the copied program.
            ForkResult::Child => unsafe { libc::_exit(0) },
            ForkResult::Parent { child } => reap(child),
        }
    })))
}

pub(super) fn exec(place: &Place) -> Prepared {
    let program = Program::write_into(&place.dir)?;
    let mut command = Command::new(&[program.path()]);
    Ok(Box::new(LeavesWork(move || {
        let _ = &program;
        command.run()
    })))
}

pub(super) fn shell(_: &Place) -> Prepared {
    if !Path::new("/bin/sh").exists() {
        return Err(Error::Unavailable("there is no /bin/sh on this machine: install a shell, or leave out sh".into()));
    }
    let mut command = Command::new(&[SHELL, c"-c", c":"]);
    Ok(Box::new(LeavesWork(move || command.run())))
}

/// glibc keeps the thread's stack: after the first run it comes from its cache, as in any program.
pub(super) fn thread(_: &Place) -> Prepared {
    extern "C" fn end_at_once(_: *mut libc::c_void) -> *mut libc::c_void {
        ptr::null_mut()
    }
    Ok(Box::new(LeavesWork(|| {
        let mut thread = 0;
        // SAFETY: the thread touches nothing, and `thread` outlives the call.
        check(unsafe { libc::pthread_create(&mut thread, ptr::null(), end_at_once, ptr::null_mut()) })?;
        // SAFETY: made just now and joined once.
        check(unsafe { libc::pthread_join(thread, ptr::null_mut()) })
    })))
}

/// pthread functions return the errno.
fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A program with its arguments, ready to be executed by a child with no environment.
struct Command {
    /// The strings to which `arguments` points.
    _strings: Vec<Box<CStr>>,
    /// The vector for execve: the path first, a null pointer last.
    arguments: Vec<*const libc::c_char>,
    stack: Vec<u8>,
}

impl Command {
    fn new(words: &[&CStr]) -> Command {
        let strings: Vec<Box<CStr>> = words.iter().map(|word| Box::from(*word)).collect();
        let mut arguments: Vec<_> = strings.iter().map(|string| string.as_ptr()).collect();
        arguments.push(ptr::null());
        Command { _strings: strings, arguments, stack: vec![0; STACK] }
    }

    /// Does what vfork, execve and waitpid do. vfork itself returns twice, which Rust cannot express; clone with vfork's
    /// flags (kernel/fork.c: `SYSCALL_DEFINE0(vfork)`) and a stack for the child is the same to the kernel.
    fn run(&mut self) -> io::Result<()> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // The ABI wants the stack aligned to 16 bytes.
        let unaligned = self.stack.as_mut_ptr_range().end;
        let top = unaligned.wrapping_sub(unaligned.addr() % 16);
        // SAFETY: the child runs on its own stack while this thread sleeps, until it has called execve or _exit; the
        // arguments outlive that.
        let child = unsafe { libc::clone(execute, top.cast(), flags, self.arguments.as_mut_ptr().cast()) };
        reap(Pid::from_raw(Errno::result(child)?))
    }
}

/// The child: executes the given vector.
extern "C" fn execute(arguments: *mut libc::c_void) -> libc::c_int {
    let arguments: *const *const libc::c_char = arguments.cast_const().cast();
    let environment = [ptr::null()];
    // SAFETY: `Command` keeps a vector that a null pointer ends, and its strings; _exit leaves the parent's memory be.
    unsafe {
        libc::execve(*arguments, arguments, environment.as_ptr());
        libc::_exit(127)
    }
}

/// Waits for a child, and fails unless it exited with 0.
fn reap(child: Pid) -> io::Result<()> {
    let status = loop {
        match waitpid(child, None) {
            Err(Errno::EINTR) => (),
            done => break done?,
        }
    };
    match status {
        WaitStatus::Exited(_, 0) => Ok(()),
        WaitStatus::Exited(_, 127) => Err(io::Error::other("the program could not be executed")),
        other => Err(io::Error::other(format!("the child ended otherwise than by exit(0): {other:?}"))),
    }
}
