//! The ring buffer `guard_events`.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tollgate_abi::guard::tg_guard_event;
use zerocopy::FromBytes;

/// How many events are taken at a time.
const BATCH: usize = 1024;

/// The reader's end of the ring buffer.
#[derive(Debug)]
pub struct Events {
    ring: RingBuffer<'static>,
    samples: Receiver<tg_guard_event>,
    map: MapHandle,
}

impl Events {
    pub(super) fn new(map: MapHandle) -> libbpf_rs::Result<Self> {
        let (sender, samples) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |sample| {
            // Each record is one event: this build's programs wrote it. The receiver lives as long as the ring.
            tg_guard_event::read_from_bytes(sample).map_or(0, |event| sender.send(event).map_or(-1, |()| 0))
        })?;
        let ring = builder.build()?;
        Ok(Self { ring, samples, map })
    }

    /// Waits for events for at most `timeout`, and takes them.
    pub fn wait(&self, timeout: Duration) -> io::Result<Vec<tg_guard_event>> {
        let mut wanted = [PollFd::new(self.map.as_fd(), PollFlags::POLLIN)];
        match poll(&mut wanted, PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => (),
            Err(errno) => return Err(errno.into()),
        }
        let taken = self.ring.consume_raw_n(BATCH);
        if taken < 0 {
            return Err(io::Error::from_raw_os_error(taken.wrapping_neg()));
        }
        Ok(self.samples.try_iter().collect())
    }
}

impl AsFd for Events {
    /// Becomes readable when there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
