//! Acts that a loaded policy forbids, which prove that the module under test decides.
//!
//! An act must succeed without a policy, and fail with the module's own errno under the module; see
//! [`Confinement::oracle`](crate::confine::Confinement::oracle). No act leaves traces.

use std::{fs::File, io, ptr};

use nix::{
    sys::{
        ptrace,
        signal::{Signal, kill},
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, Gid, Pid, Uid, fork, getuid, pause, setresgid, setresuid},
};
use serde::{Deserialize, Serialize};

/// A file that every kernel with sysfs has, every user may read, and no workload opens: profiles and rulesets leave out
/// everything below `/sys`.
pub(crate) const FORBIDDEN: &str = "/sys/kernel/uevent_seqnum";

/// An act that succeeds when nothing is loaded and fails under the module it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Make a heap page executable: SELinux's `execheap`, which Debian's policy withholds from `kernel_t`.
    HeapExec,
    /// Open `/sys/kernel/uevent_seqnum`, which the AppArmor profile, the Landlock ruleset or the learnt TOMOYO policy
    /// leaves out.
    OpenForbidden,
    /// Open physical memory for reading and writing: lockdown's integrity mode refuses it.
    OpenDevmem,
    /// Trace a process that is no descendant, without CAP_SYS_PTRACE: Yama's restricted ptrace refuses it.
    PtraceStranger,
}

/// Tries the act; returns its errno, or `None` if it succeeded.
pub(crate) fn try_act(act: &Act) -> Option<i32> {
    let errno = match act {
        Act::HeapExec => in_child(heap_exec),
        Act::OpenForbidden => open(File::options().read(true), FORBIDDEN),
        Act::OpenDevmem => open(File::options().read(true).write(true), "/dev/mem"),
        Act::PtraceStranger => in_child(ptrace_stranger),
    };
    (errno != 0).then_some(errno)
}

fn open(options: &std::fs::OpenOptions, path: &str) -> i32 {
    options.open(path).err().map_or(0, |error| errno_of(&error))
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Runs the act in a forked child, which takes all effects on its memory, user and children with it. Other threads may have
/// held locks at the fork, so the act makes system calls only.
fn in_child(act: fn() -> Result<(), nix::Error>) -> i32 {
    // SAFETY: the child calls nothing but system calls and `_exit`; it allocates nothing and takes no lock.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => status(child),
        Ok(ForkResult::Child) => exit(act()),
        Err(errno) => errno as i32,
    }
}

/// Ends a forked child without running what the parent registered for its own exit.
fn exit(outcome: Result<(), nix::Error>) -> ! {
    // SAFETY: `_exit` has no preconditions. Every Linux errno but the internal ones is below 256.
    unsafe { libc::_exit(outcome.err().map_or(0, |errno| errno as i32)) }
}

/// The errno that a child ended with; EINTR for one that was killed.
fn status(child: Pid) -> i32 {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, errno)) => return errno,
            Ok(WaitStatus::Signaled(..)) | Err(nix::Error::ECHILD) => return libc::EINTR,
            Ok(_) | Err(_) => {}
        }
    }
}

/// Grows the heap by a few pages and makes one executable.
fn heap_exec() -> Result<(), nix::Error> {
    const PAGE: usize = 4096;
    // SAFETY: this forked child ends before anything could allocate from the heap that is grown here.
    unsafe {
        let start = libc::syscall(libc::SYS_brk, 0_usize) as usize;
        let page = start.next_multiple_of(PAGE);
        if (libc::syscall(libc::SYS_brk, page + 4 * PAGE) as usize) < page + 4 * PAGE {
            return Err(nix::Error::ENOMEM);
        }
        // A heap that begins where the program's zeroed data ends shares its mapping, which SELinux then takes for no
        // heap (selinux_file_mprotect compares the whole mapping with start_brk): a hole makes the rest a mapping of
        // its own.
        let heap = ptr::with_exposed_provenance_mut::<libc::c_void>(page);
        nix::Error::result(libc::mprotect(heap, PAGE, libc::PROT_NONE))?;
        let rest = heap.byte_add(PAGE);
        let executable = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        nix::Error::result(libc::mprotect(rest, PAGE, executable)).map(drop)
    }
}

/// Lets one child trace another, both without privilege and of the same user, so that only Yama can object.
fn ptrace_stranger() -> Result<(), nix::Error> {
    if getuid().is_root() {
        const NOBODY: u32 = 65534;
        setresgid(Gid::from_raw(NOBODY), Gid::from_raw(NOBODY), Gid::from_raw(NOBODY))?;
        setresuid(Uid::from_raw(NOBODY), Uid::from_raw(NOBODY), Uid::from_raw(NOBODY))?;
        // A change of user forbids tracing (commit_creds clears the dumpable flag).
        nix::sys::prctl::set_dumpable(true)?;
    }
    // SAFETY: as for `in_child`: nothing but system calls, and `_exit` below.
    let target = match unsafe { fork() }? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => loop {
            pause();
        },
    };
    // SAFETY: as above.
    let outcome = match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => match status(child) {
            0 => Ok(()),
            errno => Err(nix::Error::from_raw(errno)),
        },
        Ok(ForkResult::Child) => exit(trace(target)),
        Err(errno) => Err(errno),
    };
    kill(target, Signal::SIGKILL)?;
    waitpid(target, None)?;
    outcome
}

fn trace(target: Pid) -> Result<(), nix::Error> {
    ptrace::attach(target)?;
    waitpid(target, None)?;
    ptrace::detach(target, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_errno_a_child_ended_with() {
        assert_eq!(in_child(|| Ok(())), 0);
        assert_eq!(in_child(|| Err(nix::Error::EACCES)), libc::EACCES);
    }

    #[test]
    fn reports_a_killed_child_as_interrupted() {
        let killed = in_child(|| kill(Pid::this(), Signal::SIGKILL));
        assert_eq!(killed, libc::EINTR);
    }

    #[test]
    fn reports_the_errno_of_an_open_that_fails() {
        let mut options = File::options();
        options.read(true);
        assert_eq!(open(&options, "/proc/self/status"), 0);
        assert_eq!(open(&options, "/proc/self/no such file"), libc::ENOENT);
    }

    #[test]
    fn names_acts_in_kebab_case() {
        let text = serde_json::to_string(&[Act::HeapExec, Act::PtraceStranger]).unwrap();
        assert_eq!(text, r#"["heap-exec","ptrace-stranger"]"#);
    }
}
