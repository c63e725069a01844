//! The process at the other end of a workload.

use std::{
    convert::Infallible,
    io,
    sync::atomic::{AtomicI32, Ordering},
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, kill, sigaction, sigprocmask},
        wait::waitpid,
    },
    unistd::{ForkResult, Pid, fork, getpid, getppid, gettid},
};

use super::shared_memory::Shared;
use crate::{Error, error::Context};

/// The signal by which a failed peer notifies the measured thread. It is ignored by default, so one that comes after the end
/// of the workload does no harm.
const FAILED: Signal = Signal::SIGURG;
/// How often the signal is repeated: the first one may arrive before the thread is in the call that it must leave.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

/// A forked process that serves the measured one until this is dropped, or until the measured thread dies.
///
/// It never runs by itself: between two requests it sleeps in a system call.
#[derive(Debug)]
pub(crate) struct Peer {
    pid: Pid,
    /// The errno with which serving ended; 0 while it continues. Written by the peer.
    failure: Shared<AtomicI32>,
}

impl Peer {
    /// Forks a process that calls `serve` for ever.
    ///
    /// `serve` may only make system calls on prepared data: another thread of this process may hold any lock, for example the
    /// allocator's, during the fork. What `serve` owns is dropped in this process: the peer's descriptors are then its own,
    /// and their other ends report its death.
    pub(crate) fn fork(serve: impl FnMut() -> nix::Result<()>) -> Result<Peer, Error> {
        wake_on_failure()?;
        let failure = Shared::<AtomicI32>::zeroed().context("map memory to share with a peer process")?;
        let measured = Measured { process: getpid(), thread: gettid() };
        // SAFETY: the child only makes system calls (see `live`), as `serve` promises for itself; it never returns
        // from here and never unwinds.
        match unsafe { fork() }.context("fork a peer process")? {
            ForkResult::Child => {
                // SAFETY: the mapping was made before the fork and is never unmapped in the child.
                let failure = unsafe { &*failure.address() };
                live(&measured, failure, serve)
            }
            ForkResult::Parent { child } => Ok(Peer { pid: child, failure }),
        }
    }

    /// The peer's process id.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// The operation's result, with the peer's error if the peer has failed.
    pub(super) fn explain(&self, outcome: nix::Result<()>) -> io::Result<()> {
        outcome.map_err(|errno| {
            // SAFETY: the mapping lives as long as `self`; it is only ever read and written as an atomic.
            match unsafe { &*self.failure.address() }.load(Ordering::Relaxed) {
                0 => errno.into(),
                failure => io::Error::other(format!("the peer process failed: {}", Errno::from_raw(failure))),
            }
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only if another caller has reaped it already.
        let _ = kill(self.pid, Signal::SIGKILL);
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}

/// The thread that a peer serves.
#[derive(Debug, Clone, Copy)]
struct Measured {
    process: Pid,
    thread: Pid,
}

/// The main loop of a peer. `extern "C"`, so that a panic ends the process instead of unwinding into its copy of the caller.
extern "C" fn live<F: FnMut() -> nix::Result<()>>(measured: &Measured, failure: &AtomicI32, mut serve: F) -> ! {
    let Err(errno) = serve_for_ever(measured, &mut serve);
    failure.store(errno as i32, Ordering::Relaxed);
    loop {
        // SAFETY: tgkill takes numbers only. The thread is woken again and again until it drops the peer.
        let told = unsafe {
            libc::syscall(libc::SYS_tgkill, measured.process.as_raw(), measured.thread.as_raw(), FAILED as i32)
        };
        if told != 0 {
            // Not allowed to tell; the end of the peer's descriptors may still do.
            // SAFETY: _exit runs nothing of the copied program.
            unsafe { libc::_exit(1) }
        }
        std::thread::sleep(SIGNAL_INTERVAL);
    }
}

fn serve_for_ever(measured: &Measured, serve: &mut impl FnMut() -> nix::Result<()>) -> nix::Result<Infallible> {
    // Handlers were inherited with the memory, and must not run here.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != measured.process {
        return Err(Errno::ESRCH);
    }
    loop {
        serve()?;
    }
}

/// Lets [`FAILED`] interrupt system calls. The handler stays installed: it does nothing by itself.
fn wake_on_failure() -> Result<(), Error> {
    extern "C" fn do_nothing(_: i32) {}
    let action = SigAction::new(SigHandler::Handler(do_nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler touches nothing.
    unsafe { sigaction(FAILED, &action) }.context("install a handler for SIGURG")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::endurance::in_a_process_of_its_own;
    use nix::{
        sys::wait::WaitPidFlag,
        unistd::{pause, pipe, read, write},
    };
    use std::time::Instant;

    fn sleeping() -> Peer {
        Peer::fork(|| {
            pause();
            Ok(())
        })
        .unwrap()
    }

    /// Whether the process is gone; a zombie that is not reaped yet counts as gone.
    fn is_gone(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|fields| fields.is_empty() || fields.starts_with(['Z', 'X']))
    }

    fn wait_until_gone(pid: Pid) -> bool {
        let give_up = Instant::now() + Duration::from_secs(10);
        while !is_gone(pid) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_gone(pid)
    }

    #[test]
    fn leaves_no_process_when_dropped() {
        in_a_process_of_its_own(|| {
            let peer = sleeping();
            let pid = peer.pid();
            drop(peer);
            match (kill(pid, None), waitpid(None, Some(WaitPidFlag::WNOHANG))) {
                (Err(Errno::ESRCH), Err(Errno::ECHILD)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    }

    #[test]
    fn leaves_no_process_when_the_measured_one_dies() {
        let (reader, writer) = pipe().unwrap();
        in_a_process_of_its_own(move || {
            let (ready, starts) = pipe().map_err(|e| e.to_string())?;
            let peer = Peer::fork(move || {
                write(&starts, &[0])?;
                pause();
                Ok(())
            });
            let peer = peer.map_err(|e| e.to_string())?;
            // From here on only the death of this process can end it.
            read(&ready, &mut [0]).map_err(|e| e.to_string())?;
            write(&writer, &peer.pid().as_raw().to_ne_bytes()).map_err(|e| e.to_string())?;
            std::mem::forget(peer);
            Ok(())
        });
        let mut pid = [0; 4];
        assert_eq!(read(&reader, &mut pid), Ok(4));
        assert!(wait_until_gone(Pid::from_raw(i32::from_ne_bytes(pid))));
    }

    #[test]
    fn reports_why_a_peer_failed_to_an_operation_that_waits_for_it() {
        in_a_process_of_its_own(|| {
            // The writer stays open here, so that only the peer's message can end the read.
            let (reader, _writer) = pipe().map_err(|e| e.to_string())?;
            let peer = Peer::fork(|| Err(Errno::EACCES)).map_err(|e| e.to_string())?;
            let outcome = peer.explain(read(&reader, &mut [0]).map(drop));
            match outcome {
                Err(error) if error.to_string().contains("EACCES") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    }

    #[test]
    fn reports_the_operations_own_error_while_the_peer_is_well() {
        let peer = sleeping();
        assert!(peer.explain(Ok(())).is_ok());
        assert_eq!(peer.explain(Err(Errno::EBADF)).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
