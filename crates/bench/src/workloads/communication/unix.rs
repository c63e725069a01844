//! UNIX sockets.

use std::{
    io::{IoSlice, IoSliceMut},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::net::{UnixDatagram, UnixStream},
    },
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, RecvMsg, recvmsg, sendmsg},
};

use super::echo::round_trip;
use crate::{error::Context, place::Place, workload::Prepared};

pub(in crate::workloads) fn stream<const SIZE: usize>(_: &Place) -> Prepared {
    let (near, far) = UnixStream::pair().context("make a pair of UNIX stream sockets")?;
    round_trip(near.into(), far.into(), SIZE)
}

pub(super) fn datagram(_: &Place) -> Prepared {
    let (near, far) = UnixDatagram::pair().context("make a pair of UNIX datagram sockets")?;
    round_trip(near.into(), far.into(), 1)
}

/// The descriptor of /dev/null is sent, which the receiver's policy checks like any other file.
pub(super) fn descriptor(_: &Place) -> Prepared {
    let (out, back) = UnixDatagram::pair().context("make a pair of UNIX datagram sockets")?;
    let carried: OwnedFd = std::fs::File::open("/dev/null").context("open /dev/null")?.into();
    let mut control = cmsg_space!(RawFd);
    Ok(Box::new(move || {
        send_descriptor(&out, &carried)?;
        drop(receive_descriptor(&back, &mut control)?);
        Ok(())
    }))
}

fn send_descriptor(socket: &UnixDatagram, carried: &OwnedFd) -> nix::Result<()> {
    let carried = [carried.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&carried)];
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&[0])], &rights, MsgFlags::empty(), None).map(drop)
}

fn receive_descriptor(socket: &UnixDatagram, control: &mut [u8]) -> nix::Result<OwnedFd> {
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let message: RecvMsg<'_, '_, ()> =
        recvmsg(socket.as_raw_fd(), &mut parts, Some(control), MsgFlags::MSG_CMSG_CLOEXEC)?;
    match message.cmsgs()?.next() {
        // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
        Some(ControlMessageOwned::ScmRights(carried)) if carried.len() == 1 => unsafe {
            Ok(OwnedFd::from_raw_fd(carried[0]))
        },
        // A module that refuses the descriptor lets the byte arrive without it (scm_detach_fds).
        _ => Err(Errno::EACCES),
    }
}
