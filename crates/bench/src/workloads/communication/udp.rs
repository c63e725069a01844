//! UDP: unconnected sockets, with the target in each call.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{MsgFlags, SockType, SockaddrIn, getsockname, recv, sendto};

use crate::{
    Error,
    error::Context,
    network::{Link, Side},
    place::Place,
    workload::Prepared,
    workloads::peer::Peer,
};

pub(super) fn byte(place: &Place) -> Prepared {
    round_trip(place, 1)
}

pub(super) fn kilobyte(place: &Place) -> Prepared {
    round_trip(place, 1024)
}

fn round_trip(place: &Place, size: usize) -> Prepared {
    let link = Link::open(place.net)?;
    let near = Sender::open(&link, Side::Near)?;
    let far = Sender::open(&link, Side::Far)?;
    let (near_address, far_address) = (near.address, far.address);
    let mut echoed = vec![0; size];
    let peer = Peer::fork(move || {
        far.receive(&mut echoed)?;
        far.send(&echoed, &near_address)
    })?;
    let mut message = vec![1; size];
    Ok(Box::new(move || {
        let sent = near.send(&message, &far_address);
        peer.explain(sent.and_then(|()| near.receive(&mut message)))
    }))
}

/// On loopback one socket sends to itself, across a veth the near one sends to the far one; in one task either way.
pub(super) fn to_oneself(place: &Place) -> Prepared {
    let link = Link::open(place.net)?;
    let near = Sender::open(&link, Side::Near)?;
    let far = match place.net {
        crate::place::Network::Loopback => None,
        crate::place::Network::Veth => Some(Sender::open(&link, Side::Far)?),
    };
    let mut message = [1];
    Ok(Box::new(move || {
        let receiver = far.as_ref().unwrap_or(&near);
        near.send(&message, &receiver.address)?;
        receiver.receive(&mut message)?;
        Ok(())
    }))
}

/// A bound socket and its address.
struct Sender {
    socket: OwnedFd,
    address: SockaddrIn,
}

impl Sender {
    fn open(link: &Link, side: Side) -> Result<Sender, Error> {
        let socket = link.socket(side, SockType::Datagram)?;
        let address = getsockname(socket.as_raw_fd()).context("read a socket's address")?;
        Ok(Sender { socket, address })
    }

    fn send(&self, message: &[u8], target: &SockaddrIn) -> nix::Result<()> {
        sendto(self.socket.as_raw_fd(), message, target, MsgFlags::empty()).map(drop)
    }

    fn receive(&self, buffer: &mut [u8]) -> nix::Result<()> {
        recv(self.socket.as_raw_fd(), buffer, MsgFlags::empty()).map(drop)
    }
}
