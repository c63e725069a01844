//! What travels over the guest's second serial port: from the agent to the host, and to a machine that was saved its next order.
//!
//! Firmware and kernel write to the first port only. Still every frame starts with a magic word, and whatever stands
//! before the first one is skipped: `MAGIC kind:u8 length:u32le payload`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Error, order::Order};

const MAGIC: &[u8; 4] = b"\x16TG\x01";
const HEADER: usize = 9;
/// Bytes in the largest frame: the agent cuts output into pieces.
const MAX_PAYLOAD: usize = 1 << 20;

/// A message from the guest's agent. Only [`Frame::Continue`] and [`Frame::Stdin`] go to the agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// The agent runs; the guest has booted.
    Ready(Ready),
    /// A piece of the command's standard output.
    Stdout(Vec<u8>),
    /// A piece of the command's standard error.
    Stderr(Vec<u8>),
    /// The command has ended; the guest powers off.
    Done(Done),
    /// The agent could not do its work.
    Failed(String),
    /// The machine can be saved; the agent waits for [`Frame::Continue`].
    Waiting(Waiting),
    /// The next order, to the agent of a machine that was saved.
    Continue(Continue),
    /// A piece of the command's standard input, to an agent whose order says that there is some.
    Stdin(Vec<u8>),
}

/// What the agent knows when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// `uname -r` in the guest.
    pub(crate) release: String,
    /// What the wait for a quiet kernel found; `None` if the order did not request it.
    pub(crate) settled: Option<String>,
}

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Its exit code, or `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Guest nanoseconds from its start to its end; on the instruction clock, instructions and idle time.
    pub(crate) elapsed_ns: u64,
    /// Guest nanoseconds of those in which the processor was idle; `None` if the kernel does not count them.
    pub(crate) idle_ns: Option<u64>,
    /// Processes that the kernel killed meanwhile because memory ran out.
    pub(crate) oom_kills: u64,
}

/// What the agent knows when the machine is to be saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// Files of the root file system as the image had them; `None` if no command ran that could have changed any.
    pub(crate) untouched: Option<Vec<String>>,
}

/// What a machine that was saved needs before it can go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Continue {
    /// The order that it follows from here.
    pub(crate) order: Order,
    /// The host's time, since 1970.
    pub(crate) time: Duration,
    /// Random bytes for the kernel's generator.
    pub(crate) seed: Vec<u8>,
    /// Length of the archive on the first disk, in bytes.
    pub(crate) parcel: u64,
}

impl Frame {
    /// Encodes the frame as bytes.
    #[must_use]
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, payload) = match self {
            Self::Ready(ready) => (1, json(ready)),
            Self::Stdout(bytes) => (2, bytes.clone()),
            Self::Stderr(bytes) => (3, bytes.clone()),
            Self::Done(done) => (4, json(done)),
            Self::Failed(reason) => (5, reason.as_bytes().to_vec()),
            Self::Waiting(waiting) => (6, json(waiting)),
            Self::Continue(next) => (7, json(next)),
            Self::Stdin(bytes) => (8, bytes.clone()),
        };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        bytes.extend(MAGIC);
        bytes.push(kind);
        bytes.extend(length.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn decode(kind: u8, payload: Vec<u8>) -> Result<Self, Error> {
        let garbled = |e: serde_json::Error| Error::Garbled(e.to_string());
        Ok(match kind {
            1 => Self::Ready(serde_json::from_slice(&payload).map_err(garbled)?),
            2 => Self::Stdout(payload),
            3 => Self::Stderr(payload),
            4 => Self::Done(serde_json::from_slice(&payload).map_err(garbled)?),
            5 => Self::Failed(String::from_utf8_lossy(&payload).into_owned()),
            6 => Self::Waiting(serde_json::from_slice(&payload).map_err(garbled)?),
            7 => Self::Continue(serde_json::from_slice(&payload).map_err(garbled)?),
            8 => Self::Stdin(payload),
            other => return Err(Error::Garbled(format!("unknown kind of frame {other}"))),
        })
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    // Plain structs of numbers and strings: serialising them cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Puts frames together from bytes that arrive in any pieces.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    synchronised: bool,
}

impl Decoder {
    /// Adds bytes that have arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Returns the next frame if all of it has arrived.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        if !self.synchronised && !self.synchronise() {
            return Ok(None);
        }
        if self.pending.len() < HEADER {
            return Ok(None);
        }
        if &self.pending[..4] != MAGIC {
            return Err(Error::Garbled("a frame does not start with its magic word".into()));
        }
        let mut length = [0; 4];
        length.copy_from_slice(&self.pending[5..HEADER]);
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_PAYLOAD {
            return Err(Error::Garbled(format!("a frame of {length} bytes")));
        }
        if self.pending.len() < HEADER + length {
            return Ok(None);
        }
        let kind = self.pending[4];
        let payload = self.pending[HEADER..HEADER + length].to_vec();
        self.pending.drain(..HEADER + length);
        Frame::decode(kind, payload).map(Some)
    }

    /// Drops what stands before the first magic word; keeps a tail that may be its beginning.
    fn synchronise(&mut self) -> bool {
        if let Some(at) = self.pending.windows(MAGIC.len()).position(|w| w == MAGIC) {
            self.pending.drain(..at);
            self.synchronised = true;
        } else {
            let keep = self.pending.len().min(MAGIC.len() - 1);
            self.pending.drain(..self.pending.len() - keep);
        }
        self.synchronised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let argv = vec!["true".into()];
        let modules = Vec::new();
        let order = Order {
            argv,
            env: Vec::new(),
            settle: false,
            modules,
            system: None,
            save: false,
            wire: false,
            stdin: false,
        };
        let next = Continue { order, time: Duration::new(1, 2), seed: vec![0, 255], parcel: 3 };
        vec![
            Frame::Ready(Ready { release: "6.1.0".into(), settled: None }),
            Frame::Stdout(b"a\x16TG\x01b".to_vec()),
            Frame::Stderr(Vec::new()),
            Frame::Done(Done { code: Some(3), signal: None, elapsed_ns: 7, idle_ns: Some(2), oom_kills: 0 }),
            Frame::Failed("no such program".into()),
            Frame::Waiting(Waiting { untouched: Some(vec!["/bin/tollgate".into()]) }),
            Frame::Continue(next),
            Frame::Stdin(b"\n".to_vec()),
        ]
    }

    fn decode_in_pieces(bytes: &[u8], size: usize) -> Vec<Frame> {
        let mut decoder = Decoder::default();
        let mut seen = Vec::new();
        for piece in bytes.chunks(size) {
            decoder.push(piece);
            while let Some(frame) = decoder.next_frame().unwrap() {
                seen.push(frame);
            }
        }
        seen
    }

    #[test]
    fn reads_back_what_was_written_in_pieces_of_any_size() {
        let bytes: Vec<u8> = frames().iter().flat_map(Frame::encode).collect();
        for size in [1, 2, 3, 7, 4096] {
            assert_eq!(decode_in_pieces(&bytes, size), frames(), "pieces of {size}");
        }
    }

    #[test]
    fn skips_firmware_noise_before_the_first_frame() {
        let mut bytes = b"\x1bc\x1b[?7lSeaBIOS \x16T\x16TG".to_vec();
        bytes.extend(frames()[0].encode());
        for size in [1, 5, 4096] {
            assert_eq!(decode_in_pieces(&bytes, size), frames()[..1]);
        }
    }

    #[test]
    fn refuses_noise_between_frames() {
        let mut decoder = Decoder::default();
        decoder.push(&frames()[0].encode());
        assert!(decoder.next_frame().unwrap().is_some());
        decoder.push(b"[   12.000000] kernel message");
        assert!(matches!(decoder.next_frame(), Err(Error::Garbled(_))));
    }

    #[test]
    fn refuses_a_frame_larger_than_any_the_agent_sends() {
        let mut decoder = Decoder::default();
        decoder.push(b"\x16TG\x01\x02\xff\xff\xff\xff");
        assert!(matches!(decoder.next_frame(), Err(Error::Garbled(_))));
    }
}
