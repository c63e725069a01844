//! prctl and ptrace.

use std::io;

use nix::{
    errno::Errno,
    sys::{
        ptrace,
        signal::Signal,
        wait::{WaitStatus, waitpid},
    },
    unistd::{Pid, pause},
};

use crate::{place::Place, workload::Prepared, workloads::peer::Peer};

/// `TASK_COMM_LEN` of include/linux/sched.h.
const NAME: usize = 16;

pub(super) fn prctl(_: &Place) -> Prepared {
    let mut name = [0_u8; NAME];
    Ok(Box::new(move || {
        // SAFETY: PR_GET_NAME writes at most TASK_COMM_LEN bytes.
        Errno::result(unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) })?;
        Ok(())
    }))
}

pub(super) fn attach(_: &Place) -> Prepared {
    let peer = Peer::fork(|| {
        pause();
        Ok(())
    })?;
    Ok(Box::new(move || {
        peer.explain(ptrace::attach(peer.pid()).and_then(|()| stopped(peer.pid())))?;
        ptrace::detach(peer.pid(), None)?;
        io::Result::Ok(())
    }))
}

/// Waits until the process has stopped for its tracer.
fn stopped(pid: Pid) -> nix::Result<()> {
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, Signal::SIGSTOP) => Ok(()),
        _ => Err(Errno::ECHILD),
    }
}
