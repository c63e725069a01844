//! The label that the receiver of a connection sees of its sender: whether labels really flow.

use std::{
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::sys::{
    socket::{
        AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrIn, accept4, bind, connect, getsockname, listen,
        sendto, setsockopt, socket, sockopt,
    },
    time::{TimeVal, TimeValLike},
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    error::Context,
    network::{Link, Side},
    place::Network,
    workloads::peer::Peer,
};

/// How long one attempt may take: packets may be dropped until they have labels.
const ATTEMPT: i64 = 200;
/// How long labels may take to flow, and how often that is tried.
const TIMEOUT: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(100);
/// The longest label.
const LONGEST: usize = 4096;

/// The label that a receiver sees of a sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The network between them.
    pub network: Network,
    /// The sender's context, or the mark that a tunnel brings; `None`: packets have no label.
    pub label: Option<String>,
}

/// Waits until receivers see these labels. If they do not, what they see instead is returned.
pub(crate) fn wait_for(labels: &[Label]) -> Result<Vec<Label>, Error> {
    let link = Link::open(Network::Veth)?;
    // Whoever labels packets may find a namespace by the confined processes in it.
    let _residents = [reside(&link, Side::Near)?, reside(&link, Side::Far)?];
    let give_up = Instant::now() + TIMEOUT;
    loop {
        let found = look(labels);
        if Instant::now() > give_up || found.as_ref().is_ok_and(|found| found == labels) {
            return found;
        }
        sleep(INTERVAL);
    }
}

/// A process that is in a namespace, and makes a socket there from time to time.
fn reside(link: &Link, side: Side) -> Result<Peer, Error> {
    let _inside = link.enter(side)?;
    // The child stays in the namespace in which it was forked.
    Peer::fork(|| {
        drop(socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?);
        sleep(INTERVAL);
        Ok(())
    })
}

/// What receivers see in these networks.
pub(crate) fn look(labels: &[Label]) -> Result<Vec<Label>, Error> {
    let seen = |label: &Label| Ok(Label { network: label.network, label: seen(&Link::open(label.network)?)? });
    labels.iter().map(seen).collect()
}

fn seen(link: &Link) -> Result<Option<String>, Error> {
    if link.is_tunnel() { mark(link) } else { peer(link) }
}

/// What the far side sees of a connection's near side.
fn peer(link: &Link) -> Result<Option<String>, Error> {
    let listener = open(link, Side::Far, SockType::Stream)?;
    listen(&listener, Backlog::MAXALLOWABLE).context("listen on a TCP socket")?;
    let near = open(link, Side::Near, SockType::Stream)?;
    connect(near.as_raw_fd(), &address_of(&listener)?).context("connect to see a label")?;
    let accepted = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC).context("accept to see a label")?;
    // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
    let accepted = unsafe { OwnedFd::from_raw_fd(accepted) };
    context_of(accepted.as_raw_fd()).context("read the label of a connection's other end")
}

/// The mark of a datagram that the far side receives.
fn mark(link: &Link) -> Result<Option<String>, Error> {
    let (near, far) = (link.socket(Side::Near, SockType::Datagram)?, link.socket(Side::Far, SockType::Datagram)?);
    limit(&far)?;
    let on: libc::c_int = 1;
    // SAFETY: the option takes an integer of that size.
    let set = unsafe {
        let size = mem::size_of_val(&on) as libc::socklen_t;
        libc::setsockopt(far.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVMARK, (&raw const on).cast(), size)
    };
    nix::Error::result(set).context("ask for marks beside datagrams")?;
    sendto(near.as_raw_fd(), &[1], &address_of(&far)?, MsgFlags::empty()).context("send to see a mark")?;
    let mark = received_mark(far.as_raw_fd()).context("receive to see a mark")?;
    Ok((mark != 0).then(|| format!("mark {mark:#x}")))
}

/// A socket of a side with a port of its own, whose calls do not last.
fn open(link: &Link, side: Side, kind: SockType) -> Result<OwnedFd, Error> {
    let made = link.within(side, || socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, None))?;
    let made = made.context("make a socket to see a label")?;
    let address = SockaddrIn::from(std::net::SocketAddrV4::new(link.address(side), 0));
    bind(made.as_raw_fd(), &address).context("bind a socket to see a label")?;
    let reset = libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(&made, sockopt::Linger, &reset).context("set SO_LINGER")?;
    limit(&made)?;
    Ok(made)
}

fn limit(socket: &OwnedFd) -> Result<(), Error> {
    let attempt = TimeVal::milliseconds(ATTEMPT);
    setsockopt(socket, sockopt::ReceiveTimeout, &attempt).context("set a receive timeout")?;
    setsockopt(socket, sockopt::SendTimeout, &attempt).context("set a send timeout")
}

fn address_of(socket: &OwnedFd) -> Result<SockaddrIn, Error> {
    getsockname(socket.as_raw_fd()).context("read a socket's address")
}

/// `SO_PEERSEC`; `None`: the kernel knows none.
fn context_of(socket: RawFd) -> io::Result<Option<String>> {
    let mut text = vec![0_u8; LONGEST];
    let mut length = LONGEST as libc::socklen_t;
    // SAFETY: the buffer has the length that the kernel is told.
    let got = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERSEC, text.as_mut_ptr().cast(), &raw mut length)
    };
    match nix::Error::result(got) {
        Err(nix::Error::ENOPROTOOPT) => Ok(None),
        Err(errno) => Err(errno.into()),
        Ok(_) => {
            text.truncate(length as usize);
            Ok(Some(String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned()))
        }
    }
}

/// The mark beside the next datagram; 0 if it has none.
fn received_mark(socket: RawFd) -> io::Result<u32> {
    let mut byte = [0_u8; 1];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = [0_u64; 8];
    // SAFETY: all-zero bytes are a message without anything.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control);
    // SAFETY: the message names buffers that live until the end, with their lengths.
    nix::Error::result(unsafe { libc::recvmsg(socket, &raw mut message, 0) })?;
    // SAFETY: the kernel has filled in the control data, as far as the macros go.
    unsafe {
        let mut one = libc::CMSG_FIRSTHDR(&raw const message);
        while !one.is_null() {
            if ((*one).cmsg_level, (*one).cmsg_type) == (libc::SOL_SOCKET, libc::SO_MARK) {
                return Ok(libc::CMSG_DATA(one).cast::<u32>().read_unaligned());
            }
            one = libc::CMSG_NXTHDR(&raw const message, one);
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_no_label_where_nobody_gives_one() {
        let unlabelled = Label { network: Network::Loopback, label: None };
        assert_eq!(look(std::slice::from_ref(&unlabelled)).unwrap(), [unlabelled]);
    }
}
