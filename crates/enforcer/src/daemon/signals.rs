//! Signals, as wishes of whoever runs the daemon.

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

/// Signals that have come, and what wakes up when one comes.
#[derive(Debug)]
pub struct Signals {
    wakes: UnixStream,
    ended: Arc<AtomicBool>,
    reread: Arc<AtomicBool>,
}

impl Signals {
    /// Takes SIGTERM, SIGINT and SIGHUP from now on.
    pub fn take() -> io::Result<Self> {
        let (wakes, ours) = UnixStream::pair()?;
        let (ended, reread) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        for (signal, flag) in [(SIGTERM, &ended), (SIGINT, &ended), (SIGHUP, &reread)] {
            // In this order: who wakes up finds the flag set.
            flag::register(signal, Arc::clone(flag))?;
            pipe::register(signal, ours.try_clone()?)?;
        }
        Ok(Self { wakes, ended, reread })
    }

    /// What can be read from when one has come.
    #[must_use]
    pub fn wakes(&self) -> &UnixStream {
        &self.wakes
    }

    /// What is wished for; the end goes first.
    #[must_use]
    pub fn wish(&self) -> Option<Wish> {
        if self.ended.swap(false, Ordering::SeqCst) {
            return Some(Wish::End);
        }
        self.reread.swap(false, Ordering::SeqCst).then_some(Wish::Reread)
    }
}
