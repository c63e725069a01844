//! Signals.

use std::{
    io, mem, ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use nix::{
    errno::Errno,
    sys::signal::kill,
    unistd::{getpid, gettid},
};

use crate::{Error, error::Context, place::Place, workload::Prepared};

/// Signal handlers belong to the whole process: one operation at a time may have the workload's signal.
static SIGUSR1: Mutex<()> = Mutex::new(());
static SIGUSR2: Mutex<()> = Mutex::new(());
/// Signals that `count` has seen.
static HANDLED: AtomicU64 = AtomicU64::new(0);

pub(super) fn kill_nothing(_: &Place) -> Prepared {
    let own = getpid();
    Ok(Box::new(move || Ok(kill(own, None)?)))
}

pub(super) fn install(_: &Place) -> Prepared {
    let handler = Handler::install(libc::SIGUSR2, &SIGUSR2, count)?;
    Ok(Box::new(move || {
        // SAFETY: `count` only adds to an atomic; the new action outlives the call.
        Errno::result(unsafe { libc::sigaction(libc::SIGUSR2, &handler.action, ptr::null_mut()) })?;
        Ok(())
    }))
}

/// Sent to the thread, because for a process the kernel chooses any thread (`complete_signal`).
pub(super) fn deliver(_: &Place) -> Prepared {
    let handler = Handler::install(libc::SIGUSR1, &SIGUSR1, count)?;
    let (process, thread) = (getpid().as_raw(), gettid().as_raw());
    Ok(Box::new(move || {
        let _ = &handler;
        let before = HANDLED.load(Ordering::Relaxed);
        // SAFETY: tgkill takes numbers only.
        Errno::result(unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) })?;
        match HANDLED.load(Ordering::Relaxed) == before + 1 {
            true => Ok(()),
            false => Err(io::Error::other("the signal did not reach its handler")),
        }
    }))
}

extern "C" fn count(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// The signature of a handler: the signal, its origin, the interrupted context.
pub(super) type Handle = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// An installed signal handler; the previous action is restored on drop.
pub(super) struct Handler {
    signal: libc::c_int,
    action: libc::sigaction,
    before: libc::sigaction,
    _alone: MutexGuard<'static, ()>,
}

impl Handler {
    /// Installs an async-signal-safe handler; waits until no other operation uses the signal.
    pub(super) fn install(signal: libc::c_int, lock: &'static Mutex<()>, handle: Handle) -> Result<Handler, Error> {
        let alone = lock.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: sigaction is made of integers and a pointer; all zeros is its default action.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { (mem::zeroed(), mem::zeroed()) };
        action.sa_sigaction = handle as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler is async-signal-safe as promised; both actions outlive the call.
        let done = Errno::result(unsafe { libc::sigaction(signal, &action, &mut before) });
        done.context(format!("install a handler for signal {signal}"))?;
        Ok(Handler { signal, action, before, _alone: alone })
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: the action of before was valid then, and handlers are never unloaded.
        unsafe { libc::sigaction(self.signal, &self.before, ptr::null_mut()) };
    }
}
