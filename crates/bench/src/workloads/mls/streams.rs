//! One direction over TCP, by the size of a write.

use std::os::fd::AsRawFd;

use crate::{
    place::Place,
    workload::Prepared,
    workloads::{
        communication::{connection, receive_all, send_all},
        peer::Peer,
    },
};

pub(super) fn bytes(place: &Place) -> Prepared {
    stream(place, 1, 256)
}

pub(super) fn kilobytes(place: &Place) -> Prepared {
    stream(place, 1024, 256)
}

pub(super) fn blocks(place: &Place) -> Prepared {
    stream(place, 16 * 1024, 64)
}

/// Sends blocks. The peer answers the last one with a byte of its own: the operation is over when everything has arrived.
fn stream(place: &Place, size: usize, count: usize) -> Prepared {
    let (near, far) = connection(place)?;
    let mut received = vec![0; size * count];
    let peer = Peer::fork(move || {
        receive_all(far.as_raw_fd(), &mut received)?;
        send_all(far.as_raw_fd(), &[0])
    })?;
    let block = vec![1; size];
    Ok(Box::new(move || {
        let sent = (0..count).try_for_each(|_| send_all(near.as_raw_fd(), &block));
        peer.explain(sent.and_then(|()| receive_all(near.as_raw_fd(), &mut [0])))
    }))
}
