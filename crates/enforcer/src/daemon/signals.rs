//! Signals, as requests of the administrator or the service manager.

use std::{
    io,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
    low_level::pipe,
};

use super::Wish;

/// The signals that have come, and the socket that becomes readable when one comes.
#[derive(Debug)]
pub struct Signals {
    wakes: UnixStream,
    ended: Arc<AtomicBool>,
    reread: Arc<AtomicBool>,
}

impl Signals {
    /// Handles SIGTERM, SIGINT and SIGHUP from now on.
    pub fn take() -> io::Result<Self> {
        let (wakes, ours) = UnixStream::pair()?;
        let (ended, reread) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        for (signal, flag) in [(SIGTERM, &ended), (SIGINT, &ended), (SIGHUP, &reread)] {
            // In this order, so that the flag is set when the daemon wakes up.
            flag::register(signal, Arc::clone(flag))?;
            pipe::register(signal, ours.try_clone()?)?;
        }
        Ok(Self { wakes, ended, reread })
    }

    /// Becomes readable when a signal has come.
    #[must_use]
    pub fn wakes(&self) -> &UnixStream {
        &self.wakes
    }

    /// What the signals request. The end of the daemon comes first.
    #[must_use]
    pub fn wish(&self) -> Option<Wish> {
        if self.ended.swap(false, Ordering::SeqCst) {
            return Some(Wish::End);
        }
        self.reread.swap(false, Ordering::SeqCst).then_some(Wish::Reread)
    }
}
