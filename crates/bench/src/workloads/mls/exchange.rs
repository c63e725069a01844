//! What programs that calculate together say to one another, as MPI's tests measure it, over TCP.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{MsgFlags, recv, send},
};

use crate::{
    place::Place,
    workload::{Paced, Prepared},
    workloads::{
        communication::{receive_all, send_all, steady_connection},
        peer::Peer,
    },
};

/// Bytes that go around the ring.
const TOKEN: usize = 8;
/// Bytes of the round trips.
const SHORT: [usize; 5] = [1, 16, 64, 256, 1024];
/// Bytes that go both ways at once. Twice: whoever begins finds the other ready every second time, which costs less.
const LONG: [usize; 6] = [16 << 10, 32 << 10, 64 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Four processes, of which this is one, each on the other side of its neighbours.
pub(super) fn ring(place: &Place) -> Prepared {
    let [one, two, three, four] =
        [steady_connection(place)?, steady_connection(place)?, steady_connection(place)?, steady_connection(place)?];
    let peers = [pass_on(one.1, two.1)?, pass_on(two.0, three.0)?, pass_on(three.1, four.1)?];
    let (out, back) = (one.0, four.0);
    let mut token = [1; TOKEN];
    Ok(Box::new(Paced(move || {
        let passed = send_all(out.as_raw_fd(), &token).and_then(|()| receive_all(back.as_raw_fd(), &mut token));
        peers.iter().try_for_each(|peer| peer.explain(passed))
    })))
}

/// A process that passes on what it receives.
fn pass_on(from: OwnedFd, to: OwnedFd) -> Result<Peer, crate::Error> {
    let mut token = [0; TOKEN];
    Peer::fork(move || {
        receive_all(from.as_raw_fd(), &mut token)?;
        send_all(to.as_raw_fd(), &token)
    })
}

pub(super) fn ping_pong(place: &Place) -> Prepared {
    let (near, far) = steady_connection(place)?;
    let mut echoed = [0; SHORT[SHORT.len() - 1]];
    let peer = Peer::fork(move || {
        SHORT.into_iter().try_for_each(|size| {
            receive_all(far.as_raw_fd(), &mut echoed[..size])?;
            send_all(far.as_raw_fd(), &echoed[..size])
        })
    })?;
    let mut message = [1; SHORT[SHORT.len() - 1]];
    Ok(Box::new(Paced(move || {
        peer.explain(SHORT.into_iter().try_for_each(|size| {
            send_all(near.as_raw_fd(), &message[..size])?;
            receive_all(near.as_raw_fd(), &mut message[..size])
        }))
    })))
}

pub(super) fn at_once(place: &Place) -> Prepared {
    let (near, far) = steady_connection(place)?;
    let mut theirs = Both::default();
    let peer = Peer::fork(move || LONG.into_iter().try_for_each(|size| theirs.exchange(&far, size)))?;
    let mut ours = Both::default();
    Ok(Box::new(Paced(move || peer.explain(LONG.into_iter().try_for_each(|size| ours.exchange(&near, size))))))
}

/// Memory for both directions.
struct Both {
    out: Vec<u8>,
    received: Vec<u8>,
}

impl Default for Both {
    fn default() -> Self {
        let longest = LONG[LONG.len() - 1];
        Self { out: vec![1; longest], received: vec![0; longest] }
    }
}

impl Both {
    /// Sends and receives as many bytes, whichever can go on, and waits when neither can.
    fn exchange(&mut self, socket: &OwnedFd, size: usize) -> nix::Result<()> {
        let (mut sent, mut received) = (0, 0);
        while sent < size || received < size {
            let out = moved(send(socket.as_raw_fd(), &self.out[sent..size], MsgFlags::MSG_DONTWAIT))?;
            let wanted = &mut self.received[received..size];
            let back = match recv(socket.as_raw_fd(), wanted, MsgFlags::MSG_DONTWAIT) {
                Ok(0) if received < size => return Err(Errno::ECONNRESET),
                other => moved(other)?,
            };
            (sent, received) = (sent + out, received + back);
            if out + back == 0 {
                let wanted = [(received < size, PollFlags::POLLIN), (sent < size, PollFlags::POLLOUT)];
                let flags = wanted.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).collect();
                poll(&mut [PollFd::new(socket.as_fd(), flags)], PollTimeout::NONE)?;
            }
        }
        Ok(())
    }
}

/// Bytes of a call that may not wait.
fn moved(done: nix::Result<usize>) -> nix::Result<usize> {
    match done {
        Err(Errno::EAGAIN) => Ok(0),
        other => other,
    }
}
