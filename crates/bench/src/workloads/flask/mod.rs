//! The operations of Flask's evaluation (Spencer et al., USENIX Security 1999): a message there and back by its size (Table
//! 2), a program's build (Tables 5 and 6).
//!
//! They are a family of their own, which `@all` leaves out, because a build takes a thousand times as long as anything else.

use super::communication::{sysv, unix};
use crate::{
    place::Place,
    workload::{Group, Prepared, Scope, Tasks, Workload},
};

mod build;
mod sources;

pub(super) static WORKLOADS: &[Workload] = &[
    round_trip("ipc-8", "round trip of 8 bytes over a UNIX stream socket", unix::stream::<8>),
    round_trip("ipc-16", "round trip of 16 bytes over a UNIX stream socket", unix::stream::<16>),
    round_trip("ipc-128", "round trip of 128 bytes over a UNIX stream socket", unix::stream::<128>),
    round_trip("ipc-1k", "round trip of 1 KB over a UNIX stream socket", unix::stream::<1024>),
    round_trip("ipc-4k", "round trip of 4 KB over a UNIX stream socket", unix::stream::<4096>),
    round_trip("ipc-8k", "round trip of 8 KB over a UNIX stream socket", unix::stream::<8192>),
    round_trip("ipc-64k", "round trip of 64 KB over a UNIX stream socket", unix::stream::<65536>),
    round_trip("msg-8", "round trip of 8 bytes through a System V message queue", sysv::messages::<8>),
    round_trip("msg-16", "round trip of 16 bytes through a System V message queue", sysv::messages::<16>),
    round_trip("msg-128", "round trip of 128 bytes through a System V message queue", sysv::messages::<128>),
    round_trip("msg-1k", "round trip of 1 KB through a System V message queue", sysv::messages::<1024>),
    round_trip("msg-4k", "round trip of 4 KB through a System V message queue", sysv::messages::<4096>),
    // The largest message (msgctl(2): MSGMAX).
    round_trip("msg-8k", "round trip of 8 KB through a System V message queue", sysv::messages::<8192>),
    Workload {
        name: "make",
        about: "make of 20 C files and 4 headers of 8,060 lines, by gcc -O0; before it the objects are removed",
        group: Group::Flask,
        tasks: Tasks::Several,
        scope: Scope::File,
        samples: build::SAMPLES,
        setup: build::make,
    },
];

/// Samples of a round trip: enough that their mean contains some timer ticks.
const SAMPLES: u32 = 1000;

const fn round_trip(name: &'static str, about: &'static str, setup: fn(&Place) -> Prepared) -> Workload {
    let (tasks, scope) = (Tasks::Several, Scope::Fixed);
    Workload { name, about, group: Group::Flask, tasks, scope, samples: SAMPLES, setup }
}
