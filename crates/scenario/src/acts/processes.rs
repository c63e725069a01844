//! Acts on processes: on the subject itself, and on other processes.

use std::{ffi::CString, io, ptr};

use super::{Act, bits, number};
use crate::{
    actor::{self, Actor},
    context::whole,
    kernel::{
        Argument::{self, Bytes, Number, Room, Text, Texts},
        call, errno, text,
    },
};

pub(super) const ACTS: &[Act] = &[
    Act::new("exec", "PATH", exec),
    Act::new("exec-fd", "", exec_descriptor),
    Act::new("fork", "", |_, _| go_on_in_child(0, &|| Ok(()))),
    Act::new("share", "", |_, _| go_on_in_child(libc::CLONE_FS, &|| Ok(()))),
    Act::new("share-descriptors", "", |_, _| go_on_in_child(libc::CLONE_FILES, &|| Ok(()))),
    Act::new("traced", "", |_, _| go_on_in_child(0, &|| ptrace(libc::PTRACE_TRACEME, 0))),
    Act::new("no-new-privs", "", |_, _| prctl(libc::PR_SET_NO_NEW_PRIVS, 1)),
    Act::new("thread", "", thread),
    Act::new("am", "TYPE", am),
    Act::new("trusting", "", |_, _| claim(trusting())),
    Act::new("ignore", "SIGNAL", |_, w| ignore(number(w[0])?)),
    Act::new("ignores", "SIGNAL", |_, w| claim(ignored(number(w[0])?)?)),
    Act::new("setcon", "CONTEXT", |a, w| a.engine.set_current(&whole(w[0], "system_r"))),
    Act::new("setexeccon", "CONTEXT", |a, w| a.engine.set_exec(&whole(w[0], "system_r"))),
    Act::new("setfscreatecon", "CONTEXT", |a, w| a.engine.set_create(&whole(w[0], "object_r"))),
    Act::new("kill", "PID SIGNAL", |_, w| numbers(libc::SYS_kill, w)),
    Act::new("getpgid", "PID", |_, w| numbers(libc::SYS_getpgid, w)),
    Act::new("setpgid", "PID PGID", |_, w| numbers(libc::SYS_setpgid, w)),
    Act::new("getsid", "PID", |_, w| numbers(libc::SYS_getsid, w)),
    Act::new("capget", "PID", capget),
    Act::new("capset", "", capset),
    Act::new("setpriority", "PID NICE", |_, w| {
        call(libc::SYS_setpriority, &mut [Number(0), Number(number(w[0])?), Number(number(w[1])?)]).map(drop)
    }),
    Act::new("getscheduler", "PID", |_, w| numbers(libc::SYS_sched_getscheduler, w)),
    Act::new("setscheduler", "PID", |_, w| {
        let batch = i64::from(libc::SCHED_BATCH);
        call(libc::SYS_sched_setscheduler, &mut [Number(number(w[0])?), Number(batch), Bytes(&[0; 4])]).map(drop)
    }),
    Act::new("getaffinity", "PID", |_, w| {
        call(libc::SYS_sched_getaffinity, &mut [Number(number(w[0])?), Number(128), Room(&mut [0; 128])]).map(drop)
    }),
    Act::new("setaffinity", "PID", |_, w| {
        call(libc::SYS_sched_setaffinity, &mut [Number(number(w[0])?), Number(128), Bytes(&[0xff; 128])]).map(drop)
    }),
    Act::new("ioprio-get", "PID", |_, w| call(libc::SYS_ioprio_get, &mut [Number(1), Number(number(w[0])?)]).map(drop)),
    Act::new("ioprio-set", "PID", |_, w| {
        call(libc::SYS_ioprio_set, &mut [Number(1), Number(number(w[0])?), Number(2 << 13 | 4)]).map(drop)
    }),
    Act::new("prlimit", "PID HOW", prlimit),
    Act::new("limit", "SOFT", |_, w| limit(number(w[0])?)),
    Act::new("limited", "SOFT", |_, w| claim(soft_limit()? == number(w[0])?)),
    Act::new("attach", "PID", |_, w| ptrace(libc::PTRACE_ATTACH, number(w[0])?)),
    Act::new("seize", "PID", |_, w| ptrace(libc::PTRACE_SEIZE, number(w[0])?)),
    Act::new("traceme", "", |_, _| ptrace(libc::PTRACE_TRACEME, 0)),
    Act::new("read-memory", "PID", read_memory),
    Act::new("receive", "SOCKET", receive),
    Act::new("send", "", send),
];

/// The descriptor of a process's own end of its socket, and the first of the subject's ends.
pub(crate) const OWN_SOCKET: i32 = 100;

fn numbers(call_number: i64, words: &[&str]) -> io::Result<()> {
    let mut arguments: Vec<Argument<'_>> = Vec::new();
    for word in words {
        arguments.push(Number(number(word)?));
    }
    call(call_number, &mut arguments).map(drop)
}

fn prctl(option: i32, argument: i64) -> io::Result<()> {
    call(libc::SYS_prctl, &mut [option.into(), argument, 0, 0, 0].map(Number)).map(drop)
}

/// Fails if a condition does not hold, with the error of a message of the wrong type.
fn claim(is_so: bool) -> io::Result<()> {
    if is_so { Ok(()) } else { errno(libc::ENOMSG) }
}

/// Continues in another program, with the remaining acts.
fn exec(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    execute(actor, words[0], libc::AT_FDCWD, 0)
}

/// Continues in the program of the open descriptor.
fn exec_descriptor(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    execute(actor, "", actor.fd, libc::AT_EMPTY_PATH)
}

pub(crate) fn execute(actor: &Actor, path: &str, directory: i32, flags: i32) -> io::Result<()> {
    let words: Vec<CString> = actor.words(path).iter().map(|word| text(word)).collect();
    let table = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>();
    let (arguments, variables) = (table(&words), table(&[]));
    let path = text(path);
    call(
        libc::SYS_execveat,
        &mut [Number(directory.into()), Text(&path), Texts(&arguments), Texts(&variables), Number(flags.into())],
    )
    .map(drop)
}

/// Forks; the child does the remaining acts, after `begin`. The parent lets a child that it traces continue, and ends after
/// it without waiting for it: the runner waits, and finds the result.
fn go_on_in_child(share: i32, begin: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
    let flags = i64::from(share | libc::SIGCHLD);
    match call(libc::SYS_clone, &mut [flags, 0, 0, 0, 0].map(Number))? {
        0 => begin(),
        child => loop {
            let mut info = [0; 128];
            let how = i64::from(libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT);
            let all = [Number(libc::P_PID.into()), Number(child), Room(&mut info), Number(how), Number(0)];
            call(libc::SYS_waitid, &mut { all })?;
            // siginfo_t: si_code is the third word.
            let code = i32::from_ne_bytes([info[8], info[9], info[10], info[11]]);
            if [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&code) {
                actor::end(actor::CHILD, 0);
            }
            let gone_on = [i64::from(libc::PTRACE_CONT), child, 0, 0].map(Number);
            call(libc::SYS_ptrace, &mut { gone_on })?;
        },
    }
}

/// A second thread, which does nothing.
fn thread(_: &mut Actor, _: &[&str]) -> io::Result<()> {
    std::thread::Builder::new().spawn(|| {
        loop {
            std::thread::park();
        }
    })?;
    Ok(())
}

fn am(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    let context = actor.engine.current()?;
    claim(context == words[0] || context.split(':').nth(2) == Some(words[0]))
}

/// Whether AT_SECURE is not set, so that this program may trust its environment.
fn trusting() -> bool {
    // SAFETY: reads what the kernel wrote beside the environment.
    unsafe { libc::getauxval(libc::AT_SECURE) == 0 }
}

fn ignore(signal: i64) -> io::Result<()> {
    // SAFETY: no code runs on the signal.
    let before = unsafe { libc::signal(signal as i32, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn ignored(signal: i64) -> io::Result<bool> {
    // SAFETY: as in `ignore`; the previous handler is the result.
    let before = unsafe { libc::signal(signal as i32, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(before == libc::SIG_IGN) }
}

fn capability_header(pid: i64) -> [u8; 8] {
    let mut header = [0; 8];
    header[..4].copy_from_slice(&0x2008_0522_u32.to_ne_bytes());
    header[4..].copy_from_slice(&(pid as i32).to_ne_bytes());
    header
}

fn capget(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let mut header = capability_header(number(words[0])?);
    call(libc::SYS_capget, &mut [Room(&mut header), Room(&mut [0; 24])]).map(drop)
}

/// Sets the capabilities that the subject already has.
fn capset(_: &mut Actor, _: &[&str]) -> io::Result<()> {
    let (mut header, mut sets) = (capability_header(0), [0; 24]);
    call(libc::SYS_capget, &mut [Room(&mut header), Room(&mut sets)])?;
    call(libc::SYS_capset, &mut [Room(&mut header), Bytes(&sets)]).map(drop)
}

/// Limits of another process: `get`, `set`, or `both`.
fn prlimit(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let new = [1_u64 << 40, 1 << 40].map(u64::to_ne_bytes).concat();
    let mut old = [0; 16];
    let how = bits(words[1], &[("get", 1), ("set", 2), ("both", 3)])?;
    let new = if how & 2 == 0 { Number(0) } else { Bytes(&new) };
    let old = if how & 1 == 0 { Number(0) } else { Room(&mut old) };
    call(libc::SYS_prlimit64, &mut [Number(number(words[0])?), Number(libc::RLIMIT_CORE.into()), new, old]).map(drop)
}

/// Sets the subject's soft limit of core files; the hard limit stays.
fn limit(soft: i64) -> io::Result<()> {
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE)?;
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, soft as u64, hard)?;
    Ok(())
}

fn soft_limit() -> io::Result<i64> {
    Ok(nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE)?.0 as i64)
}

fn ptrace(request: u32, pid: i64) -> io::Result<()> {
    call(libc::SYS_ptrace, &mut [request.into(), pid, 0, 0].map(Number)).map(drop)
}

/// Reads a byte of another process's memory; an unmapped address is no denial.
fn read_memory(_: &mut Actor, words: &[&str]) -> io::Result<()> {
    let mut byte = [0_u8; 1];
    let local = [byte.as_mut_ptr() as u64, 1].map(u64::to_ne_bytes).concat();
    let remote = [0_u64, 1].map(u64::to_ne_bytes).concat();
    let pid = Number(number(words[0])?);
    let read =
        call(libc::SYS_process_vm_readv, &mut [pid, Bytes(&local), Number(1), Bytes(&remote), Number(1), Number(0)]);
    match read {
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
        other => other.map(drop),
    }
}

/// Receives the descriptor that a process has sent; ENOBUFS if the kernel withheld it (scm_detach_fds sets MSG_CTRUNC).
fn receive(actor: &mut Actor, words: &[&str]) -> io::Result<()> {
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
    let socket = number(words[0])? as i32;
    let mut byte = [0];
    let mut data = [io::IoSliceMut::new(&mut byte)];
    let mut room = nix::cmsg_space!([i32; 1]);
    let message = recvmsg::<()>(socket, &mut data, Some(&mut room), MsgFlags::empty())?;
    let received = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    });
    actor.fd = received.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOBUFS))?;
    Ok(())
}

/// Sends the open descriptor to the subject.
fn send(actor: &mut Actor, _: &[&str]) -> io::Result<()> {
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
    let control = [ControlMessage::ScmRights(&[actor.fd])];
    sendmsg::<()>(OWN_SOCKET, &[io::IoSlice::new(b"x")], &control, MsgFlags::empty(), None)?;
    Ok(())
}
