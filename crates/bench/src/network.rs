//! The network of the workloads: loopback, or a veth pair between two network namespaces.
//!
//! A socket stays in the namespace in which it was created, whichever process uses it afterwards. So a set-up creates each
//! socket [`Link::within`] its side. Only a workload that creates sockets inside its operation stays in a namespace
//! ([`Link::enter`]).

mod rtnetlink;

use std::{
    cell::RefCell,
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use nix::{
    net::if_::{InterfaceFlags, if_nametoindex},
    sched::{CloneFlags, setns, unshare},
    sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket, sockopt},
};

use crate::{Error, error::Context, place::Network};
use rtnetlink::{End, Message, Socket};

/// The index of `lo` in every namespace: `LOOPBACK_IFINDEX` of include/net/net_namespace.h.
const LOOPBACK_INDEX: u32 = 1;
/// The network's two hosts, out of the block that RFC 2544 sets apart for benchmarks.
const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Their addresses in the tunnel.
const TUNNEL_NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
const TUNNEL_FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);
/// The prefix length: room for these two hosts.
const PREFIX: u8 = 30;
const NEAR_END: End = End { name: "near", mac: [0x02, 0, 0, 0, 0, 1] };
const FAR_END: End = End { name: "far", mac: [0x02, 0, 0, 0, 0, 2] };
const TUNNEL_NEAR_END: End = End { name: "tunnel", mac: [0x02, 0, 0, 0, 1, 1] };
const TUNNEL_FAR_END: End = End { name: "tunnel", mac: [0x02, 0, 0, 0, 1, 2] };
/// The label of what sockets send through the tunnel: a VXLAN's group policy is the packet's mark.
pub(crate) const TUNNEL_LABEL: u32 = 0x123;
/// The sides' ports.
const NEAR_PORT: u16 = 5001;
const FAR_PORT: u16 = 5002;
/// How long a new link may take until packets pass: linkwatch starts the transmit queue from a kernel worker, and may delay
/// that for a second.
const LINK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for one trial packet.
const TRIAL_TIMEOUT: Duration = Duration::from_millis(20);

/// A side of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The side of the measured process.
    Near,
    /// The side of its peer.
    Far,
}

/// Two sides that packets pass between.
#[derive(Debug, Clone)]
pub(crate) struct Link(Option<Arc<Namespaces>>);

impl Link {
    /// Prepares the network.
    ///
    /// [`Network::Veth`] needs `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, so a run opens it once, before it confines itself. The
    /// namespaces are created once per thread and end with it: the kernel removes them in a worker (`cleanup_net`), whose
    /// instructions would fall into the samples of the next workload. No lock guards them, because the child of a fork would
    /// wait forever for a lock that another thread held.
    pub(crate) fn open(network: Network) -> Result<Link, Error> {
        match network {
            Network::Loopback => raise_loopback().map(|()| Link(None)),
            Network::Veth => Link::between_namespaces(false),
        }
    }

    /// Prepares [`Network::Veth`] so that its packets go through a tunnel. Nothing has opened it before.
    pub(crate) fn open_tunnel() -> Result<Link, Error> {
        Link::between_namespaces(true)
    }

    fn between_namespaces(tunnel: bool) -> Result<Link, Error> {
        thread_local! {
            static NAMESPACES: RefCell<Option<Arc<Namespaces>>> = const { RefCell::new(None) };
        }
        NAMESPACES.with_borrow_mut(|made| {
            if made.is_none() {
                *made = Some(Arc::new(Namespaces::join(tunnel)?));
            }
            Ok(Link(made.clone()))
        })
    }

    /// Whether packets go through a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.0.as_ref().is_some_and(|namespaces| namespaces.tunnel)
    }

    /// The IPv4 address of a side.
    pub(crate) fn address(&self, side: Side) -> Ipv4Addr {
        let Some(namespaces) = &self.0 else { return Ipv4Addr::LOCALHOST };
        match (namespaces.tunnel, side) {
            (false, Side::Near) => NEAR,
            (false, Side::Far) => FAR,
            (true, Side::Near) => TUNNEL_NEAR,
            (true, Side::Far) => TUNNEL_FAR,
        }
    }

    /// A socket bound to a side's address, and to the side's own port if that is free. A port that the kernel chooses is
    /// random, and the hash chain of a packet would then differ from run to run.
    pub(crate) fn socket(&self, side: Side, kind: SockType) -> Result<OwnedFd, Error> {
        let address = self.address(side);
        let port = match side {
            Side::Near => NEAR_PORT,
            Side::Far => FAR_PORT,
        };
        let bound = self.within(side, || {
            let made = socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, None)?;
            if self.is_tunnel() {
                setsockopt(&made, sockopt::Mark, &TUNNEL_LABEL)?;
            }
            let bind_to = |port| bind(made.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address, port)));
            match bind_to(port) {
                Err(nix::Error::EADDRINUSE) => bind_to(0),
                done => done,
            }?;
            nix::Result::Ok(made)
        })?;
        bound.context(format!("make a socket bound to {address}"))
    }

    /// Calls `make` in a side's namespace; sockets that it opens stay there.
    pub(crate) fn within<T>(&self, side: Side, make: impl FnOnce() -> T) -> Result<T, Error> {
        let inside = self.enter(side)?;
        let made = make();
        inside.leave()?;
        Ok(made)
    }

    /// Moves the calling thread into a side's namespace until the result is dropped.
    pub(crate) fn enter(&self, side: Side) -> Result<Inside, Error> {
        let Some(namespaces) = &self.0 else { return Ok(Inside { home: None }) };
        let home = current_namespace()?;
        let target = match side {
            Side::Near => &namespaces.near,
            Side::Far => &namespaces.far,
        };
        setns(target, CloneFlags::CLONE_NEWNET).context("enter the network namespace of a veth's end")?;
        Ok(Inside { home: Some(home) })
    }
}

/// The calling thread is in a side's namespace; dropping this moves it back.
#[derive(Debug)]
pub(crate) struct Inside {
    home: Option<OwnedFd>,
}

impl Inside {
    fn leave(mut self) -> Result<(), Error> {
        match self.home.take() {
            Some(home) => return_to(&home),
            None => Ok(()),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(home) = self.home.take()
            && let Err(error) = return_to(&home)
        {
            // Continuing would measure another network than the results say.
            panic!("{error}");
        }
    }
}

/// Two network namespaces and the veth pair between them; the pair goes when both descriptors are closed.
#[derive(Debug)]
struct Namespaces {
    near: OwnedFd,
    far: OwnedFd,
    /// Whether the workloads' addresses are those of a tunnel over the veth pair.
    tunnel: bool,
}

impl Namespaces {
    fn join(tunnel: bool) -> Result<Namespaces, Error> {
        let namespaces = Namespaces { near: new_namespace()?, far: new_namespace()?, tunnel };
        let link = Link(Some(Arc::new(namespaces)));
        let far = link.0.as_ref().map_or(-1, |n| n.far.as_raw_fd());
        link.within(Side::Near, || make_veth(far))??;
        link.within(Side::Near, || configure(NEAR_END, NEAR, FAR_END, FAR))??;
        link.within(Side::Far, || configure(FAR_END, FAR, NEAR_END, NEAR))??;
        if tunnel {
            link.within(Side::Near, || make_tunnel(NEAR_END, NEAR, FAR, TUNNEL_NEAR_END))??;
            link.within(Side::Far, || make_tunnel(FAR_END, FAR, NEAR, TUNNEL_FAR_END))??;
            link.within(Side::Near, || configure(TUNNEL_NEAR_END, TUNNEL_NEAR, TUNNEL_FAR_END, TUNNEL_FAR))??;
            link.within(Side::Far, || configure(TUNNEL_FAR_END, TUNNEL_FAR, TUNNEL_NEAR_END, TUNNEL_NEAR))??;
        }
        link.wait_until_packets_pass()?;
        link.0.and_then(Arc::into_inner).ok_or_else(|| Error::Unavailable("the veth pair is in use".into()))
    }
}

impl Link {
    /// Sends trial packets both ways until each has arrived.
    fn wait_until_packets_pass(&self) -> Result<(), Error> {
        let bind = |side| -> Result<UdpSocket, Error> {
            let socket = self.within(side, || UdpSocket::bind((self.address(side), 0)))?;
            let socket = socket.context(format!("bind a UDP socket to {}", self.address(side)))?;
            socket.set_read_timeout(Some(TRIAL_TIMEOUT)).context("set a receive timeout")?;
            Ok(socket)
        };
        let (near, far) = (bind(Side::Near)?, bind(Side::Far)?);
        let give_up = Instant::now() + LINK_TIMEOUT;
        for (from, to) in [(&near, &far), (&far, &near)] {
            let target = to.local_addr().context("read a socket's address")?;
            loop {
                // Until the route exists a send fails; the deadline then decides, as for a lost packet.
                let sent = from.send_to(&[0], target);
                if sent.is_ok() && to.recv_from(&mut [0]).is_ok() {
                    break;
                }
                if Instant::now() > give_up {
                    let why = sent.err().map_or_else(|| "packets are lost".to_owned(), |e| e.to_string());
                    return Err(Error::Unavailable(format!("no packet passes to {target} over the veth pair: {why}")));
                }
            }
        }
        Ok(())
    }
}

/// Creates a network namespace without staying in it.
fn new_namespace() -> Result<OwnedFd, Error> {
    let home = current_namespace()?;
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
        nix::Error::EPERM => Error::Unavailable(
            "two network namespaces need root (CAP_SYS_ADMIN): run as root, or choose :loopback".to_owned(),
        ),
        _ => Error::Io { what: "make a network namespace".to_owned(), cause: errno.into() },
    })?;
    let made = current_namespace();
    return_to(&home)?;
    made
}

/// The calling thread's network namespace.
fn current_namespace() -> Result<OwnedFd, Error> {
    let path = "/proc/thread-self/ns/net";
    Ok(File::open(path).context(format!("open {path}"))?.into())
}

fn return_to(home: &OwnedFd) -> Result<(), Error> {
    setns(home.as_fd(), CloneFlags::CLONE_NEWNET).context("return to the network namespace of before")
}

/// Creates the pair in the caller's namespace and moves its far end into the other.
fn make_veth(far: std::os::fd::RawFd) -> Result<(), Error> {
    let mut kernel = Socket::open().context("open an rtnetlink socket")?;
    kernel.ask(Message::new_veth(NEAR_END, FAR_END, far)).map_err(|cause| match cause.raw_os_error() {
        Some(libc::EOPNOTSUPP) => {
            Error::Unavailable("this kernel has no veth device: load the module veth, or choose :loopback".to_owned())
        }
        _ => Error::Io { what: "make a veth pair".to_owned(), cause },
    })
}

/// Creates the end of a tunnel in the caller's namespace, over the end of the veth pair there.
fn make_tunnel(over: End, local: Ipv4Addr, remote: Ipv4Addr, end: End) -> Result<(), Error> {
    let index = if_nametoindex(over.name).context(format!("find the link {}", over.name))?;
    let mut kernel = Socket::open().context("open an rtnetlink socket")?;
    kernel.ask(Message::new_vxlan(end, index, local, remote)).map_err(|cause| match cause.raw_os_error() {
        Some(libc::EOPNOTSUPP) => Error::Unavailable("this kernel has no VXLAN: load the module vxlan".to_owned()),
        _ => Error::Io { what: "make a tunnel".to_owned(), cause },
    })
}

/// Gives the end in the caller's namespace its address and its neighbour, and brings it up.
fn configure(end: End, address: Ipv4Addr, other: End, neighbour: Ipv4Addr) -> Result<(), Error> {
    let name = end.name;
    let index = if_nametoindex(name).context(format!("find the link {name}"))?;
    let mut kernel = Socket::open().context("open an rtnetlink socket")?;
    match kernel.ask(Message::without_ipv6(index)) {
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
        done => done.context(format!("keep IPv6 off the link {name}")),
    }?;
    kernel.ask(Message::new_address(index, address, PREFIX)).context(format!("give {name} the address {address}"))?;
    kernel.ask(Message::link_up(index)).context(format!("bring the link {name} up"))?;
    kernel
        .ask(Message::new_neighbour(index, neighbour, other.mac))
        .context(format!("name {neighbour} as a neighbour of {name}"))
}

/// Brings `lo` up if it is down, as it is after a guest's boot.
fn raise_loopback() -> Result<(), Error> {
    let wanted = InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_UP;
    let mut interfaces = nix::ifaddrs::getifaddrs().context("list the network interfaces")?;
    if interfaces.any(|interface| interface.flags.contains(wanted)) {
        return Ok(());
    }
    let raise = || -> io::Result<()> { Socket::open()?.ask(Message::link_up(LOOPBACK_INDEX)) };
    raise().context("bring the loopback interface up (it is down; `ip link set lo up` as root does it)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::endurance::{become_nobody, become_root, in_a_process_of_its_own};

    #[test]
    fn gives_both_sides_of_loopback_the_same_address() {
        let link = Link::open(Network::Loopback).unwrap();
        assert_eq!(link.address(Side::Near), Ipv4Addr::LOCALHOST);
        assert_eq!(link.address(Side::Far), Ipv4Addr::LOCALHOST);
    }

    #[test]
    fn stays_in_the_callers_namespace_on_loopback() {
        let link = Link::open(Network::Loopback).unwrap();
        let name = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let home = name();
        assert_eq!(link.within(Side::Far, name).unwrap(), home);
    }

    #[test]
    fn separates_the_sides_of_a_veth_and_comes_back() {
        in_a_process_of_its_own(|| {
            become_root()?;
            let name = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
            let home = name();
            let link = Link::open(Network::Veth).map_err(|error| error.to_string())?;
            let [near, far] = [Side::Near, Side::Far].map(|side| link.within(side, name).unwrap());
            let apart = near != far && near != home && far != home && name() == home;
            if apart { Ok(()) } else { Err(format!("{home:?} {near:?} {far:?}, then {:?}", name())) }
        });
    }

    #[test]
    fn asks_for_root_or_loopback_where_a_veth_is_not_permitted() {
        in_a_process_of_its_own(|| {
            become_nobody()?;
            let error = Link::open(Network::Veth).err().map(|error| error.to_string()).unwrap_or_default();
            if error.contains("root") && error.contains(":loopback") { Ok(()) } else { Err(format!("said: {error}")) }
        });
    }
}
