//! The workloads of a study of 2010 that asked what multilevel security costs (docs/mls.md), one or more for each of its rows.
//!
//! Most ran programs for seconds or minutes. Here they do the same a fixed number of times, and as little else as they can.

use crate::{
    place::Place,
    workload::{Group, Prepared, Scope, Tasks, Workload},
};

mod calculation;
mod exchange;
mod levels;
mod openssl;
mod storage;
mod streams;

pub(crate) use levels::contexts;

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
    Workload {
        samples: MANY,
        ..on_file("read-direct", "4 MB of a file read from the disk (O_DIRECT), 1 MB at a time", storage::read_direct)
    },
    Workload {
        samples: MANY,
        ..on_file("read-cached", "4 MB of a file that is cached, 1 MB at a time", storage::read_cached)
    },
    on_file("copy-1m", "4 MB from memory copied to a new file, 1 MB at a time", storage::copy_megabytes),
    on_file("copy-1", "10,000 bytes from memory copied to a new file, 1 byte at a time", storage::copy_bytes),
    network("stream-1", "64 times 1 byte sent by TCP, 8 before each answer", MANY, streams::bytes),
    network("stream-1k", "64 times 1 KB sent by TCP, 8 before each answer", MANY, streams::kilobytes),
    network("stream-16k", "64 times 16 KB sent by TCP until the peer has them", MANY, streams::blocks),
    network("ring", "8 bytes once around a ring of four processes over TCP", MOST, exchange::ring),
    network("ping-pong", "round trips over TCP of 1, 16, 64, 256 and 1,024 bytes", MOST, exchange::ping_pong),
    network(
        "exchange",
        "twice 16, 32 and 64 KB sent and received at once over TCP, without waiting in calls",
        MANY,
        exchange::at_once,
    ),
    looks("levels-1", "the address of a socket", levels::looks::<1>),
    looks("levels-16", "the addresses of 16 sockets of as many levels", levels::looks::<16>),
    looks("levels-256", "the addresses of 256 sockets of as many levels", levels::looks::<256>),
    looks("levels-1024", "the addresses of 1,024 sockets of as many levels", levels::looks::<1024>),
];

/// Samples of what takes hundreds of millions of instructions, of tens of millions, of millions, and of what takes less.
const THREE: u32 = 3;
const FEW: u32 = 4;
const MANY: u32 = 40;
const MOST: u32 = 200;

type SetUp = fn(&Place) -> Prepared;

const fn program(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::Several, scope: Scope::Fixed, samples: THREE, setup }
}

const fn alone(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::One, scope: Scope::Fixed, samples: FEW, setup }
}

const fn on_file(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::One, scope: Scope::File, samples: FEW, setup }
}

const fn network(name: &'static str, about: &'static str, samples: u32, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::Several, scope: Scope::Network, samples, setup }
}

const fn looks(name: &'static str, about: &'static str, setup: SetUp) -> Workload {
    Workload { name, about, group: Group::Mls, tasks: Tasks::One, scope: Scope::Fixed, samples: MANY, setup }
}
