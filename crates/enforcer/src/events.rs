//! Ring buffers, by which programs report to the daemon: `events` of the enforcer, and the guard's.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    slice,
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tollgate_abi::enforcer::{
    TG_EVENT_AVC, TG_EVENT_IDENTIFIER, TG_EVENT_LABEL, TG_EVENT_MOUNT, TG_EVENT_NAMESPACE, TG_EVENT_PACKET,
    TG_EVENT_SERVICE, TG_EVENT_SID, tg_event,
};

/// How many events are taken at a time. In a storm there are always more.
const BATCH: usize = 1024;
/// The minimum length of an event: time and kind, with which every event begins.
const MIN_LENGTH: usize = std::mem::offset_of!(tg_event, kind) + size_of::<u32>();

/// A reader of a ring buffer, whose samples are each a `T`. Only one process reads it at a time.
pub struct Ring<T> {
    ring: RingBuffer<'static>,
    samples: Receiver<Option<T>>,
    map: MapHandle,
}

impl<T> std::fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("map", &self.map).finish_non_exhaustive()
    }
}

impl<T: 'static> Ring<T> {
    /// Reads a map. `parse` says what a sample is; `None`: it is malformed.
    pub fn new(map: MapHandle, parse: impl Fn(&[u8]) -> Option<T> + 'static) -> libbpf_rs::Result<Self> {
        let (sender, samples) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        // The receiver lives as long as the ring, so sending cannot fail.
        builder.add(&map, move |sample| sender.send(parse(sample)).map_or(-1, |()| 0))?;
        let ring = builder.build()?;
        Ok(Self { ring, samples, map })
    }

    /// Waits for samples for at most `timeout`, and takes at most [`BATCH`] of them.
    pub fn wait(&self, timeout: Duration) -> io::Result<impl Iterator<Item = Option<T>>> {
        let mut wanted = [PollFd::new(self.map.as_fd(), PollFlags::POLLIN)];
        let until = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        // Whether there are samples now is seen in the memory shared with the kernel, without a system call.
        match if timeout.is_zero() { Ok(0) } else { poll(&mut wanted, until) } {
            Ok(_) | Err(nix::errno::Errno::EINTR) => (),
            Err(errno) => return Err(errno.into()),
        }
        let taken = self.ring.consume_raw_n(BATCH);
        if taken < 0 {
            return Err(io::Error::from_raw_os_error(taken.wrapping_neg()));
        }
        Ok(self.samples.try_iter())
    }
}

impl<T> AsFd for Ring<T> {
    /// Becomes readable when there are samples.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// The daemon's end of the ring buffer `events`.
#[derive(Debug)]
pub struct Reader(Ring<tg_event>);

/// The events of one wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Events of a known kind. Those that name addresses or objects are complete; doorbells may be shorter, and are filled with
    /// zeros.
    pub events: Vec<tg_event>,
    /// Number of records that were not such an event.
    pub malformed: u64,
}

impl Reader {
    /// Reads the map `events`.
    pub fn new(map: MapHandle) -> libbpf_rs::Result<Self> {
        Ring::new(map, parse).map(Self)
    }

    /// Waits for events for at most `timeout`, and takes at most [`BATCH`] of them.
    pub fn wait(&self, timeout: Duration) -> io::Result<Batch> {
        Ok(self.0.wait(timeout)?.collect())
    }
}

impl AsFd for Reader {
    /// Becomes readable when there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl FromIterator<Option<tg_event>> for Batch {
    fn from_iter<I: IntoIterator<Item = Option<tg_event>>>(samples: I) -> Self {
        let mut batch = Self::default();
        for sample in samples {
            match sample {
                Some(event) => batch.events.push(event),
                None => batch.malformed += 1,
            }
        }
        batch
    }
}

/// Reads an event of a known kind, if its length is possible for that kind.
fn parse(sample: &[u8]) -> Option<tg_event> {
    let mut event = tg_event::default();
    if sample.len() < MIN_LENGTH || sample.len() > size_of::<tg_event>() {
        return None;
    }
    // SAFETY: a tg_event is integers without a gap (its size is the sum of theirs): any bytes are one, and all its bytes
    // may be written.
    let bytes = unsafe { slice::from_raw_parts_mut((&raw mut event).cast::<u8>(), size_of::<tg_event>()) };
    bytes[..sample.len()].copy_from_slice(sample);
    let whole = sample.len() == size_of::<tg_event>();
    match event.kind {
        TG_EVENT_AVC | TG_EVENT_PACKET | TG_EVENT_IDENTIFIER if whole => Some(event),
        TG_EVENT_LABEL | TG_EVENT_SID | TG_EVENT_MOUNT | TG_EVENT_SERVICE | TG_EVENT_NAMESPACE => Some(event),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: u32, length: usize) -> Vec<u8> {
        let mut bytes = vec![0x41; length];
        bytes[8..12].copy_from_slice(&kind.to_ne_bytes());
        bytes
    }

    #[test]
    fn takes_whole_denials_only() {
        let whole = size_of::<tg_event>();
        let event = parse(&bytes(TG_EVENT_AVC, whole)).unwrap();
        assert_eq!((event.kind, event.pid, event.name[511]), (TG_EVENT_AVC, 0x4141_4141, 0x41));
        for length in [12, whole - 1, whole + 1, whole + 4096] {
            assert_eq!(parse(&bytes(TG_EVENT_AVC, length)), None, "{length}");
        }
    }

    #[test]
    fn takes_doorbells_that_end_early() {
        for kind in [TG_EVENT_LABEL, TG_EVENT_SID, TG_EVENT_MOUNT, TG_EVENT_SERVICE] {
            let event = parse(&bytes(kind, 16)).unwrap();
            assert_eq!((event.kind, event.generation, event.source), (kind, 0x4141_4141, 0));
        }
    }

    #[test]
    fn refuses_unknown_kinds_and_scraps() {
        for kind in [0, TG_EVENT_PACKET + 1, u32::MAX] {
            assert_eq!(parse(&bytes(kind, size_of::<tg_event>())), None, "{kind}");
        }
        for length in 0..MIN_LENGTH {
            assert_eq!(parse(&vec![2; length]), None, "{length}");
        }
        let batch: Batch = [parse(&[]), parse(&bytes(TG_EVENT_SID, 12)), parse(&[1])].into_iter().collect();
        assert_eq!((batch.events.len(), batch.malformed), (1, 2));
    }
}
