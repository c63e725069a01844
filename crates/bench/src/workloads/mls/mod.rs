//! The workloads of a study of 2010 that asked what multilevel security costs (docs/mls.md), one or more for each of its rows.
//!
//! Most ran programs for seconds or minutes. Here they do the same a fixed number of times, and as little else as they can.

use crate::{
    place::Place,
    workload::{Group, Prepared, Scope, Tasks, Workload},
};

mod calculation;
mod exchange;
mod openssl;
mod storage;
mod streams;

pub(super) static WORKLOADS: &[Workload] = &[
    program(
        "digests",
        "openssl: 20,000 rounds of PBKDF2 with each of MD5, SHA-1, SHA-256 and SHA-512",
        openssl::digests,
    ),
    program(
        "prime",
        "openssl: whether a number of 1,024 bits is prime, by powers with a modulus, as RSA takes them",
        openssl::prime,
    ),
    alone("ray-trace", "2,000 pairs of rays through a lens of four surfaces", calculation::ray_trace),
    alone("fft", "the Fourier transform of a picture of 256 x 256 points, and back", calculation::fft),
    Workload {
        tasks: Tasks::Several,
        ..on_file("find", "find over a tree of 1,000 files in 50 directories, none of which is cached", storage::find)
    },
    on_file("read-direct", "4 MB of a file read from the disk (O_DIRECT), 1 MB at a time", storage::read_direct),
    on_file("read-cached", "4 MB of a file that is cached, 1 MB at a time", storage::read_cached),
    on_file("copy-1m", "4 MB from memory copied to a new file, 1 MB at a time", storage::copy_megabytes),
    on_file("copy-1", "10,000 bytes from memory copied to a new file, 1 byte at a time", storage::copy_bytes),
    network("stream-1", "256 times 1 byte sent by TCP until the peer has them", streams::bytes),
    network("stream-1k", "256 times 1 KB sent by TCP until the peer has them", streams::kilobytes),
    network("stream-16k", "64 times 16 KB sent by TCP until the peer has them", streams::blocks),
    network("ring", "8 bytes once around a ring of four processes over TCP", exchange::ring),
    network("ping-pong", "round trips over TCP of 1, 16, 64, 256 and 1,024 bytes", exchange::ping_pong),
    network(
        "exchange",
        "twice 16, 32 and 64 KB sent and received at once over TCP, without waiting in calls",
        exchange::at_once,
    ),
];

/// Samples of what takes some ten million instructions, and of what takes less.
const FEW: u32 = 4;
const MANY: u32 = 40;

type SetUp = fn(&Place) -> Prepared;

const fn program(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::Several, scope: Scope::Fixed, samples: FEW, setup }
}

const fn alone(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::One, scope: Scope::Fixed, samples: FEW, setup }
}

const fn on_file(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::One, scope: Scope::File, samples: FEW, setup }
}

const fn network(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::Several, scope: Scope::Network, samples: MANY, setup }
}
