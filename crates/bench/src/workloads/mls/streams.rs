//! One direction over TCP, by the size of a write.

use std::os::fd::AsRawFd;

use crate::{
    place::Place,
    workload::{Paced, Prepared},
    workloads::{
        communication::{receive_all, send_all, steady_connection},
        peer::Peer,
    },
};

/// Small writes that may be on their way at once. TCP sends ten packets before the first is acknowledged (`TCP_INIT_CWND`), and
/// joins what is written after that: how much of it depends on the state of the connection.
const UNANSWERED: usize = 8;

pub(super) fn bytes(place: &Place) -> Prepared {
    stream(place, 1, UNANSWERED, 8)
}

pub(super) fn kilobytes(place: &Place) -> Prepared {
    stream(place, 1024, UNANSWERED, 8)
}

pub(super) fn blocks(place: &Place) -> Prepared {
    stream(place, 16 * 1024, 64, 1)
}

/// Sends blocks, and again when the peer has answered the last one with a byte of its own. So the operation is over when
/// everything has arrived.
fn stream(place: &Place, size: usize, unanswered: usize, times: usize) -> Prepared {
    let (near, far) = steady_connection(place)?;
    let mut received = vec![0; size * unanswered];
    let peer = Peer::fork(move || {
        receive_all(far.as_raw_fd(), &mut received)?;
        send_all(far.as_raw_fd(), &[0])
    })?;
    let block = vec![1; size];
    Ok(Box::new(Paced(move || {
        let answered = (0..times).try_for_each(|_| {
            (0..unanswered).try_for_each(|_| send_all(near.as_raw_fd(), &block))?;
            receive_all(near.as_raw_fd(), &mut [0])
        });
        peer.explain(answered)
    })))
}
