//! Round trips over a pair of connected sockets.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::{
    errno::Errno,
    sys::socket::{MsgFlags, recv, send},
};

use crate::workload::Prepared;
use crate::workloads::peer::Peer;

/// Sends `size` bytes from `near` to a peer that sends them back from `far`.
pub(super) fn round_trip(near: OwnedFd, far: OwnedFd, size: usize) -> Prepared {
    let mut echoed = vec![0; size];
    let peer = Peer::fork(move || {
        receive_all(far.as_raw_fd(), &mut echoed)?;
        send_all(far.as_raw_fd(), &echoed)
    })?;
    let message = vec![1; size];
    let mut answer = vec![0; size];
    Ok(Box::new(move || {
        let sent = send_all(near.as_raw_fd(), &message);
        peer.explain(sent.and_then(|()| receive_all(near.as_raw_fd(), &mut answer)))
    }))
}

/// Sends all of it; a datagram goes in one call, a stream may take more.
pub(in crate::workloads) fn send_all(socket: RawFd, mut message: &[u8]) -> nix::Result<()> {
    while !message.is_empty() {
        let sent = send(socket, message, MsgFlags::empty())?;
        message = &message[sent..];
    }
    Ok(())
}

/// Receives until the buffer is full.
pub(in crate::workloads) fn receive_all(socket: RawFd, mut buffer: &mut [u8]) -> nix::Result<()> {
    while !buffer.is_empty() {
        match recv(socket, buffer, MsgFlags::empty())? {
            0 => return Err(Errno::ECONNRESET),
            received => buffer = &mut buffer[received..],
        }
    }
    Ok(())
}
