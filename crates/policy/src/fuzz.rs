//! Mutations of valid input, for tests of code that reads bytes from anyone.
//!
//! Each test takes two seconds, or as many as `TOLLGATE_FUZZ_SECONDS` says. The mutations are always the same; only
//! their number depends on the time.

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

/// Passes one mutation of the valid inputs after another to `reader`. If it panics, prints the number of the mutation.
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

/// The mutation with this number.
pub(crate) fn mutated(good: &[&[u8]], number: u64) -> Vec<u8> {
    let random = &mut Rng::with_seed(number);
    let mut bytes = good[random.usize(..good.len())].to_vec();
    // Mostly one change, so that the code behind it is reached.
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
        // These may be lengths, offsets or identifiers, which are mostly at multiples of 4.
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
        // A part of one input replaces a part of this one.
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
