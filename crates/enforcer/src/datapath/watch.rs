//! What changes in network namespaces: devices, routes and programs. The kernel announces it, also for other namespaces
//! that have a number in the daemon's own.

use std::{
    collections::BTreeSet,
    io::{self, IoSliceMut},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{ControlMessageOwned, MsgFlags, NetlinkAddr, SockFlag, recvmsg},
};

use super::{
    namespaces,
    netlink::{self, Message},
};

/// What is announced (RTNLGRP_...): devices, filters, addresses, routes and rules of both families, the settings of IPv6,
/// and numbers of namespaces.
const GROUPS: [u32; 10] = [1, 4, 5, 7, 8, 9, 11, 12, 19, 28];
/// The maximum length of what is received at once, in bytes.
const MAX_LENGTH: usize = 64 << 10;

/// The socket on which changes are announced.
#[derive(Debug)]
pub struct Watch(OwnedFd);

/// What has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The namespaces (nsid) in which something has changed.
    pub namespaces: BTreeSet<i32>,
    /// Those that are gone.
    pub gone: BTreeSet<i32>,
    /// Announcements were lost, so anything may have changed.
    pub lost: bool,
}

impl Watch {
    /// Receives announcements from now on.
    pub fn begin() -> io::Result<Self> {
        let own = netlink::open(SockFlag::SOCK_NONBLOCK)?;
        for group in GROUPS {
            netlink::set(own.as_fd(), libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)?;
        }
        netlink::set(own.as_fd(), libc::SOL_NETLINK, libc::NETLINK_LISTEN_ALL_NSID, 1)?;
        Ok(Self(own))
    }

    /// Adds what has changed since the last call. `own` is the number of the daemon's namespace.
    pub fn changes(&self, own: i32, changes: &mut Changes) -> io::Result<()> {
        let mut buffer = vec![0; MAX_LENGTH];
        loop {
            match self.receive(&mut buffer) {
                Ok(Some((length, namespace))) => {
                    changes.add(&netlink::messages(&buffer[..length]), namespace.unwrap_or(own));
                }
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => changes.lost = true,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(cause) => return Err(cause.into()),
            }
        }
    }

    /// Receives once: the length, and in which namespace something has changed. `None`: a program has sent it.
    fn receive(&self, buffer: &mut [u8]) -> Result<Option<(usize, Option<i32>)>, Errno> {
        let (mut parts, mut beside) = ([IoSliceMut::new(buffer)], nix::cmsg_space!([i32; 4]));
        let came = recvmsg::<NetlinkAddr>(self.0.as_raw_fd(), &mut parts, Some(&mut beside), MsgFlags::empty())?;
        let from_kernel = came.address.is_some_and(|from| from.pid() == 0);
        Ok(from_kernel.then(|| (came.bytes, came.cmsgs().ok().and_then(|mut found| found.find_map(nsid)))))
    }
}

/// The number of the namespace of an announcement.
fn nsid(beside: ControlMessageOwned) -> Option<i32> {
    let ControlMessageOwned::Unknown(beside) = beside else { return None };
    let kind = (beside.cmsg_header.cmsg_level, beside.cmsg_header.cmsg_type);
    let is_one = kind == (libc::SOL_NETLINK, libc::NETLINK_LISTEN_ALL_NSID);
    beside.data_bytes.first_chunk().filter(|_| is_one).map(|bytes| i32::from_ne_bytes(*bytes))
}

impl Changes {
    fn add(&mut self, messages: &[Message], namespace: i32) {
        for message in messages {
            match message.kind {
                libc::RTM_DELNSID => self.gone.extend(namespaces::announced(message)),
                libc::RTM_NEWNSID => {}
                _ => drop(self.namespaces.insert(namespace)),
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
