//! Pipes, sockets, System V and POSIX IPC.
//!
//! A *round trip* is: the measured process sends, its peer receives and answers, the measured process receives.

use crate::{
    place::Place,
    workload::{Group, Prepared, Scope, Tasks, Workload},
};

mod echo;
mod pipe;
pub(super) mod posix;
pub(super) mod sysv;
mod tcp;
mod udp;
pub(super) mod unix;

pub(super) use echo::{receive_all, send_all};
pub(super) use pipe::token_ring;
pub(super) use tcp::steady_connection;

/// Samples of an operation in which no other task takes part.
const SINGLE_TASK_SAMPLES: u32 = 200;
/// Samples of a round trip, which has at least two task switches.
const ROUND_TRIP: u32 = 100;

pub(super) static PIPES_AND_SOCKETS: &[Workload] = &[
    between_tasks("pipe", "round trip of 1 byte through two pipes", pipe::byte),
    between_tasks("unix-stream", "round trip of 1 byte over a UNIX stream socket", unix::stream::<1>),
    between_tasks("unix-dgram", "round trip of 1 byte over a UNIX datagram socket", unix::datagram),
    alone("unix-fd", "a descriptor sent to oneself with SCM_RIGHTS, received and closed", unix::descriptor),
    network("udp", Tasks::Several, "round trip of 1 byte by UDP", udp::byte),
    network("udp-1k", Tasks::Several, "round trip of 1 KB by UDP", udp::kilobyte),
    network("udp-self", Tasks::One, "1 byte by UDP, sent and received by the same task", udp::to_oneself),
    network("tcp", Tasks::Several, "round trip of 1 byte over an open TCP connection", tcp::byte),
    network("tcp-1k", Tasks::Several, "round trip of 1 KB over an open TCP connection", tcp::kilobyte),
    network("tcp-connect", Tasks::Several, "socket, connect, accept and close of both ends (by reset)", tcp::connect),
    network("tcp-stream", Tasks::Several, "64 KB sent by TCP until the peer has it all", tcp::stream),
];

/// A workload in which a peer takes part.
const fn between_tasks(name: &'static str, about: &'static str, setup: fn(&Place) -> Prepared) -> Workload {
    let (tasks, scope) = (Tasks::Several, Scope::Fixed);
    Workload { name, about, group: Group::Communication, tasks, scope, samples: ROUND_TRIP, setup }
}

/// A workload of one task that never waits.
const fn alone(name: &'static str, about: &'static str, setup: fn(&Place) -> Prepared) -> Workload {
    let (tasks, scope) = (Tasks::One, Scope::Fixed);
    Workload { name, about, group: Group::Communication, tasks, scope, samples: SINGLE_TASK_SAMPLES, setup }
}

/// A workload that sends packets.
const fn network(name: &'static str, tasks: Tasks, about: &'static str, setup: fn(&Place) -> Prepared) -> Workload {
    let samples = match tasks {
        Tasks::One => SINGLE_TASK_SAMPLES,
        Tasks::Several => ROUND_TRIP,
    };
    Workload { name, about, group: Group::Communication, tasks, scope: Scope::Network, samples, setup }
}
