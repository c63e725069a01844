//! What the child gives up before libsepol reads a byte that may be hostile: privileges, descriptors, unlimited memory
//! and time, and every system call that it does not need for its pipe and its memory.

use std::{io, mem::offset_of, os::fd::RawFd};

use libc::{c_int, c_long, c_ulong, c_void, rlimit, sock_filter, sock_fprog};

/// The descriptor that the child writes its answer to.
pub(super) const OUT: RawFd = 3;

const NOBODY: libc::uid_t = 65534;
const MAX_MEMORY: u64 = 4 << 30;

/// System calls that are allowed with any arguments: for memory, the pipe, time, and those that abort(3) makes.
const CALLS: [c_long; 23] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_sysinfo,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_yield,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// System calls that fail with EACCES, while all others kill the child. glibc's malloc(3) makes them and does not
/// depend on their results: it reads /proc/sys/vm/overcommit_memory before it shrinks a thread's arena
/// (`check_may_shrink_heap`), and counts the processors before it makes one more (`arena_get2`).
const REFUSED: [c_long; 2] = [libc::SYS_openat, libc::SYS_sched_getaffinity];

/// A step of confinement that was refused.
pub(super) struct Refused {
    pub(super) step: &'static str,
    pub(super) cause: io::Error,
}

/// Confines the calling process permanently, and moves `out` to [`OUT`], the only descriptor that stays open. `parent`
/// is the process that made it, and `seconds` is the processor time that it may use.
///
/// Giving up root's privileges may fail: a container may refuse it, and the filter of system calls makes the privileges
/// useless.
pub(super) fn confine(out: RawFd, parent: libc::pid_t, seconds: u64) -> Result<(), Refused> {
    keep_only(out)?;
    forget_handlers();
    give_up_root();
    // SAFETY: prctl with these arguments touches no memory.
    step("die with the parent", unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong, 0, 0, 0) })?;
    // SAFETY: getppid has no preconditions.
    if unsafe { libc::getppid() } != parent {
        return Err(Refused { step: "die with the parent", cause: io::ErrorKind::NotFound.into() });
    }
    limit(libc::RLIMIT_AS, "limit memory", MAX_MEMORY, MAX_MEMORY)?;
    limit(libc::RLIMIT_CPU, "limit processor time", seconds, seconds + 5)?;
    limit(libc::RLIMIT_FSIZE, "limit files' sizes", 0, 0)?;
    limit(libc::RLIMIT_CORE, "limit core dumps", 0, 0)?;
    limit(libc::RLIMIT_NOFILE, "limit open files", OUT as u64 + 1, OUT as u64 + 1)?;
    // SAFETY: prctl with these arguments touches no memory.
    step("take no new privileges", unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as c_ulong, 0, 0, 0) })?;
    filter_calls()
}

fn step(step: &'static str, result: c_int) -> Result<(), Refused> {
    if result == -1 { Err(Refused { step, cause: io::Error::last_os_error() }) } else { Ok(()) }
}

/// Closes every descriptor except `out`, which becomes [`OUT`].
fn keep_only(out: RawFd) -> Result<(), Refused> {
    if out != OUT {
        // SAFETY: whatever OUT was is the parent's, and this process makes no use of it.
        step("keep the pipe", unsafe { libc::dup2(out, OUT) })?;
    }
    let close = |from: c_int, to: libc::c_uint| {
        // SAFETY: no object of this process owns these descriptors any more: it leaves by _exit.
        step("close the parent's files", unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } as c_int)
    };
    close(0, OUT as libc::c_uint - 1)?;
    close(OUT + 1, libc::c_uint::MAX)
}

/// Resets signal handlers. The parent's (Rust's for stack overflows) would write a report that nobody reads.
fn forget_handlers() {
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGPIPE, libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the default disposition runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn give_up_root() {
    // SAFETY: these calls touch no memory of ours; setgroups reads none with a length of 0.
    unsafe {
        if libc::geteuid() == 0 {
            // Not through glibc, which would signal the threads that the parent had.
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<c_void>());
            libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY);
            libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY);
        }
    }
}

fn limit(resource: libc::__rlimit_resource_t, what: &'static str, soft: u64, hard: u64) -> Result<(), Refused> {
    let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limit outlives the call.
    step(what, unsafe { libc::getrlimit(resource, &mut limit) })?;
    // A lower limit that was set before stays, because only root may raise it.
    limit = rlimit { rlim_cur: soft.min(limit.rlim_max), rlim_max: hard.min(limit.rlim_max) };
    // SAFETY: limit outlives the call.
    step(what, unsafe { libc::setrlimit(resource, &limit) })
}

fn filter_calls() -> Result<(), Refused> {
    let mut filter = filter(std::process::id());
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: program and the filter that it points to outlive the call.
    step("filter system calls", unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as c_ulong, &program as *const sock_fprog, 0, 0)
    })
}

/// The filter for process `pid`: it may abort(3), which is a tgkill of itself, and map memory that is not executable.
fn filter(pid: u32) -> Vec<sock_filter> {
    let load = |offset: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32);
    let return_ = |action: u32| statement(libc::BPF_RET | libc::BPF_K, action);
    let low_half = |argument: usize| load(offset_of!(libc::seccomp_data, args) + argument * 8);
    let mut filter = vec![
        load(offset_of!(libc::seccomp_data, arch)),
        jump(libc::BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
        return_(libc::SECCOMP_RET_KILL_PROCESS),
        load(offset_of!(libc::seccomp_data, nr)),
    ];
    for call in CALLS {
        filter.extend([jump(libc::BPF_JEQ, call as u32, 0, 1), return_(libc::SECCOMP_RET_ALLOW)]);
    }
    for call in REFUSED {
        let refused = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
        filter.extend([jump(libc::BPF_JEQ, call as u32, 0, 1), return_(refused)]);
    }
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        filter.extend([
            jump(libc::BPF_JEQ, call as u32, 0, 4),
            low_half(2),
            jump(libc::BPF_JSET, libc::PROT_EXEC as u32, 0, 1),
            return_(libc::SECCOMP_RET_KILL_PROCESS),
            return_(libc::SECCOMP_RET_ALLOW),
        ]);
    }
    filter.extend([
        jump(libc::BPF_JEQ, libc::SYS_tgkill as u32, 0, 3),
        low_half(0),
        jump(libc::BPF_JEQ, pid, 0, 1),
        return_(libc::SECCOMP_RET_ALLOW),
        return_(libc::SECCOMP_RET_KILL_PROCESS),
    ]);
    filter
}

/// linux/audit.h: `EM_X86_64`, 64 bits, little endian.
const AUDIT_ARCH_X86_64: u32 = 62 | 0x8000_0000 | 0x4000_0000;

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | condition | libc::BPF_K) as u16, jt, jf, k }
}
