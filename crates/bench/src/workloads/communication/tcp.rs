//! TCP.
//!
//! Every socket lingers for 0 seconds: closing it resets the connection, so that no port is left in TIME_WAIT for the next
//! operation.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, accept4, connect as connect_to, getsockname, listen,
    setsockopt, socket, sockopt,
};

use super::echo::{receive_all, round_trip, send_all};
use crate::{
    Error,
    error::Context,
    network::{Link, Side},
    place::Place,
    workload::{LeavesWork, Prepared},
    workloads::peer::Peer,
};

/// Bytes that one operation of `tcp-stream` sends.
const STREAM: usize = 64 * 1024;

pub(super) fn byte(place: &Place) -> Prepared {
    let (near, far) = connection(place)?;
    round_trip(near, far, 1)
}

pub(super) fn kilobyte(place: &Place) -> Prepared {
    let (near, far) = connection(place)?;
    round_trip(near, far, 1024)
}

/// The peer answers the last byte with one of its own: the operation is over when everything has arrived.
pub(super) fn stream(place: &Place) -> Prepared {
    let (near, far) = connection(place)?;
    let mut received = vec![0; STREAM];
    let peer = Peer::fork(move || {
        receive_all(far.as_raw_fd(), &mut received)?;
        send_all(far.as_raw_fd(), &[0])
    })?;
    let message = vec![1; STREAM];
    Ok(Box::new(move || {
        let sent = send_all(near.as_raw_fd(), &message);
        peer.explain(sent.and_then(|()| receive_all(near.as_raw_fd(), &mut [0])))
    }))
}

/// One task makes the calls of both sides: the kernel does the handshake, which is over before `accept`.
pub(super) fn connect(place: &Place) -> Prepared {
    let link = Link::open(place.net)?;
    let listener = Listener::open(&link)?;
    // The operation creates sockets, so it stays on the near side.
    let inside = link.enter(Side::Near)?;
    Ok(Box::new(LeavesWork(move || {
        let _ = &inside;
        let near = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        connect_to(near.as_raw_fd(), &listener.address)?;
        // The far end first: it has its listener's linger, and its reset closes the near end too.
        drop(listener.accept()?);
        drop(near);
        Ok(())
    })))
}

/// An open connection's two ends.
fn connection(place: &Place) -> Result<(OwnedFd, OwnedFd), Error> {
    let link = Link::open(place.net)?;
    let listener = Listener::open(&link)?;
    let near = link.socket(Side::Near, SockType::Stream)?;
    close_by_reset(&near)?;
    connect_to(near.as_raw_fd(), &listener.address).context("connect a TCP socket")?;
    let far = listener.accept().context("accept a TCP connection")?;
    for end in [&near, &far] {
        setsockopt(end, sockopt::TcpNoDelay, &true).context("set TCP_NODELAY")?;
    }
    Ok((near, far))
}

/// The same, with buffers of one size: the kernel would give more and more to a connection, and how fast it does so depends on
/// the time.
pub(in crate::workloads) fn steady_connection(place: &Place) -> Result<(OwnedFd, OwnedFd), Error> {
    const BUFFER: usize = 64 * 1024;
    let (near, far) = connection(place)?;
    for end in [&near, &far] {
        setsockopt(end, sockopt::SndBuf, &BUFFER).context("set SO_SNDBUF")?;
        setsockopt(end, sockopt::RcvBuf, &BUFFER).context("set SO_RCVBUF")?;
    }
    Ok((near, far))
}

/// The far side's listening socket.
struct Listener {
    socket: OwnedFd,
    address: SockaddrIn,
}

impl Listener {
    fn open(link: &Link) -> Result<Listener, Error> {
        let socket = link.socket(Side::Far, SockType::Stream)?;
        // Accepted sockets inherit it (sk_clone_lock copies the listener).
        close_by_reset(&socket)?;
        listen(&socket, Backlog::MAXALLOWABLE).context("listen on a TCP socket")?;
        let address = getsockname(socket.as_raw_fd()).context("read a socket's address")?;
        Ok(Listener { socket, address })
    }

    fn accept(&self) -> nix::Result<OwnedFd> {
        let accepted = accept4(self.socket.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
        // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(accepted) })
    }
}

fn close_by_reset(socket: &OwnedFd) -> Result<(), Error> {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(socket, sockopt::Linger, &at_once).context("set SO_LINGER")
}
