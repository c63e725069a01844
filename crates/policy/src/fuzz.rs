//! Mutations of good input, for tests of what reads bytes that may be anyone's.
//!
//! Each test takes two seconds, or as many as `TOLLGATE_FUZZ_SECONDS` says. The mutations are the same each time, as far
//! as the time goes.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant},
};

use fastrand::Rng;

const SECONDS: u64 = 2;

/// How long a test may take.
pub(crate) fn duration() -> Duration {
    let seconds = std::env::var("TOLLGATE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(SECONDS))
}

/// Gives `reader` mutation after mutation of the good inputs. When it panics, says which mutation it was.
pub(crate) fn run(good: &[&[u8]], mut reader: impl FnMut(&[u8])) {
    let end = Instant::now() + duration();
    let mut count = 0;
    while Instant::now() < end {
        let input = mutated(good, count);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| reader(&input))) {
            eprintln!("the reader panicked on mutation {count}");
            resume_unwind(panic);
        }
        count += 1;
    }
    eprintln!("{count} mutations");
}

/// The mutation of that number.
pub(crate) fn mutated(good: &[&[u8]], number: u64) -> Vec<u8> {
    let random = &mut Rng::with_seed(number);
    let mut bytes = good[random.usize(..good.len())].to_vec();
    // One change for the most part, so that what lies after it is reached.
    for _ in 0..[1, 1, 1, 2, 4, 16][random.usize(..6)] {
        change(&mut bytes, good, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, good: &[&[u8]], random: &mut Rng) {
    if bytes.is_empty() {
        return bytes.push(random.u8(..));
    }
    let at = random.usize(..bytes.len());
    match random.usize(..8) {
        0 => bytes[at] ^= 1 << random.usize(..8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.u8(..)][random.usize(..6)],
        2 => bytes.truncate(at),
        // What may be a length, an offset or an identifier; they lie at multiples of 4 for the most part.
        3 | 4 => {
            let extreme = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, random.u32(..300), bytes.len() as u32];
            write(bytes, at & !(random.usize(..2) * 3), extreme[random.usize(..7)].to_le_bytes());
        }
        5 => {
            let delta = random.u32(..9);
            let at = at & !(random.usize(..2) * 3);
            let old = bytes.get(at..at + 4).map_or(0, |old| u32::from_le_bytes([old[0], old[1], old[2], old[3]]));
            write(bytes, at, old.wrapping_add(delta).wrapping_sub(4).to_le_bytes());
        }
        // A part of one input in the place of a part of this one.
        6 => {
            let other = good[random.usize(..good.len())];
            let from = random.usize(..other.len());
            let part = &other[from..other.len().min(from + random.usize(..64))];
            let end = bytes.len().min(at + random.usize(..64));
            bytes.splice(at..end, part.iter().copied());
        }
        _ => {
            let end = bytes.len().min(at + 4);
            bytes.drain(at..end);
        }
    }
}

fn write(bytes: &mut [u8], at: usize, content: [u8; 4]) {
    bytes[at..].iter_mut().zip(content).for_each(|(byte, new)| *byte = new);
}
