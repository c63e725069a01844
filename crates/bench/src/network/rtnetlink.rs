//! The few rtnetlink messages that join two network namespaces by a veth pair, and their exchange with the kernel.
//!
//! The encoder is pure. Layouts: include/uapi/linux/{netlink,rtnetlink,if_link,if_addr,neighbour,veth}.h.

use std::{
    io,
    net::Ipv4Addr,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};

/// `VETH_INFO_PEER`: the nested attribute that describes a veth's other end.
const VETH_INFO_PEER: u16 = 1;
/// Attributes of a VXLAN (`IFLA_VXLAN_...`), its network and its port.
const VXLAN_ID: u16 = 1;
const VXLAN_GROUP: u16 = 2;
const VXLAN_LINK: u16 = 3;
const VXLAN_LOCAL: u16 = 4;
const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT: u16 = 15;
const VXLAN_GBP: u16 = 23;
const VXLAN_NETWORK: u32 = 7;
const VXLAN_UDP_PORT: u16 = 4789;
/// `IFLA_INET6_ADDR_GEN_MODE` and its value `IN6_ADDR_GEN_MODE_NONE`.
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
/// Sizes of `struct nlmsghdr` and of the start of `struct nlmsgerr` after it.
const HEADER: usize = 16;
const ERROR: usize = 4;

/// One end of a veth pair: the name of the new link, and its hardware address.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) name: &'static str,
    pub(super) mac: [u8; 6],
}

/// A netlink message under construction: header, fixed part, then attributes.
#[derive(Debug)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A request with an acknowledgement; `flags` are the `NLM_F_*` beyond those two.
    fn new(kind: u16, flags: i32, fixed: &[u8]) -> Message {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Message(bytes)
    }

    /// Adds an attribute, padded to four bytes as every attribute must be.
    fn attribute(mut self, kind: u16, payload: &[u8]) -> Message {
        self.0.extend_from_slice(&attribute(kind, payload));
        self
    }

    /// The bytes to send, with length and sequence number in place.
    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }

    /// Makes a veth pair: `here` in the namespace of the socket, `there` in the one that `namespace` is open on.
    pub(super) fn new_veth(here: End, there: End, namespace: RawFd) -> Message {
        let mut peer = interface(0, 0);
        peer.extend(end_attributes(there));
        peer.extend(attribute(libc::IFLA_NET_NS_FD, &namespace.to_ne_bytes()));
        let data = attribute(VETH_INFO_PEER, &peer);
        let mut info = attribute(libc::IFLA_INFO_KIND, b"veth");
        info.extend(attribute(libc::IFLA_INFO_DATA, &data));
        let mut message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &interface(0, 0));
        message.0.extend(end_attributes(here));
        message.attribute(libc::IFLA_LINKINFO, &info)
    }

    /// Makes a VXLAN with group policies from one address to another, over the link with that index.
    pub(super) fn new_vxlan(end: End, over: u32, local: Ipv4Addr, remote: Ipv4Addr) -> Message {
        let mut data = attribute(VXLAN_ID, &VXLAN_NETWORK.to_ne_bytes());
        data.extend(attribute(VXLAN_GROUP, &remote.octets()));
        data.extend(attribute(VXLAN_LINK, &over.to_ne_bytes()));
        data.extend(attribute(VXLAN_LOCAL, &local.octets()));
        // It would learn the other end from each packet.
        data.extend(attribute(VXLAN_LEARNING, &[0]));
        data.extend(attribute(VXLAN_PORT, &VXLAN_UDP_PORT.to_be_bytes()));
        data.extend(attribute(VXLAN_GBP, &[]));
        let mut info = attribute(libc::IFLA_INFO_KIND, b"vxlan");
        info.extend(attribute(libc::IFLA_INFO_DATA, &data));
        let mut message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &interface(0, 0));
        message.0.extend(end_attributes(end));
        message.attribute(libc::IFLA_LINKINFO, &info)
    }

    /// Keeps IPv6 off a link, so that its router solicitations and duplicate address detection never run beside a
    /// measurement. Fails with `EAFNOSUPPORT` on a kernel without IPv6.
    pub(super) fn without_ipv6(index: u32) -> Message {
        let mode = attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
        let family = attribute(libc::AF_INET6 as u16, &mode);
        Message::new(libc::RTM_SETLINK, 0, &interface(index, 0)).attribute(libc::IFLA_AF_SPEC, &family)
    }

    /// Brings a link up.
    pub(super) fn link_up(index: u32) -> Message {
        Message::new(libc::RTM_SETLINK, 0, &interface(index, libc::IFF_UP as u32))
    }

    /// Gives a link an IPv4 address.
    pub(super) fn new_address(index: u32, address: Ipv4Addr, prefix: u8) -> Message {
        let mut fixed = vec![libc::AF_INET as u8, prefix, 0, libc::RT_SCOPE_UNIVERSE];
        fixed.extend(index.to_ne_bytes());
        Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &fixed)
            .attribute(libc::IFA_LOCAL, &address.octets())
            .attribute(libc::IFA_ADDRESS, &address.octets())
    }

    /// Adds a permanent neighbour, because ARP would repeat its request whenever its entry becomes stale.
    pub(super) fn new_neighbour(index: u32, address: Ipv4Addr, mac: [u8; 6]) -> Message {
        // struct ndmsg: family, padding, interface, state, flags, type.
        let mut fixed = vec![libc::AF_INET as u8, 0, 0, 0];
        fixed.extend(index.to_ne_bytes());
        fixed.extend(libc::NUD_PERMANENT.to_ne_bytes());
        fixed.extend([0, 0]);
        Message::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &fixed)
            .attribute(libc::NDA_DST, &address.octets())
            .attribute(libc::NDA_LLADDR, &mac)
    }
}

/// `struct ifinfomsg` with the given flags set and no others touched.
fn interface(index: u32, flags: u32) -> Vec<u8> {
    let mut bytes = vec![libc::AF_UNSPEC as u8, 0, 0, 0];
    bytes.extend(index.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes
}

fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = (4 + payload.len()) as u16;
    let mut bytes = Vec::from(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn end_attributes(end: End) -> Vec<u8> {
    let mut name = end.name.as_bytes().to_vec();
    name.push(0);
    let mut bytes = attribute(libc::IFLA_IFNAME, &name);
    bytes.extend(attribute(libc::IFLA_ADDRESS, &end.mac));
    bytes
}

/// Reads the kernel's answer to the request with that sequence number: an `NLMSG_ERROR`, whose error 0 means done.
fn acknowledged(answer: &[u8], sequence: u32) -> io::Result<()> {
    let field = |at: usize| answer.get(at..at + 4).map(|b| [b[0], b[1], b[2], b[3]]);
    let (Some(length), Some(kind), Some(answered), Some(error)) = (field(0), field(4), field(8), field(HEADER)) else {
        return Err(io::Error::other(format!("rtnetlink answered {} bytes, too few to be read", answer.len())));
    };
    let kind = u16::from_ne_bytes([kind[0], kind[1]]);
    if (u32::from_ne_bytes(length) as usize) < HEADER + ERROR || i32::from(kind) != libc::NLMSG_ERROR {
        return Err(io::Error::other(format!("rtnetlink answered with a message of type {kind}, not with a status")));
    }
    if u32::from_ne_bytes(answered) != sequence {
        return Err(io::Error::other("rtnetlink answered another request"));
    }
    match i32::from_ne_bytes(error) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(-errno)),
    }
}

/// A routing socket: it belongs to the network namespace it was opened in.
#[derive(Debug)]
pub(super) struct Socket {
    socket: OwnedFd,
    sequence: u32,
}

impl Socket {
    pub(super) fn open() -> io::Result<Socket> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
        Ok(Socket { socket, sequence: 0 })
    }

    /// Sends a request and waits for the kernel's verdict.
    pub(super) fn ask(&mut self, message: Message) -> io::Result<()> {
        self.sequence += 1;
        let request = message.finish(self.sequence);
        sendto(self.socket.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = [0; 4096];
        let length = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        acknowledged(&answer[..length], self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits attributes into (type, payload); panics on a length that does not fit.
    fn attributes(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
            found.push((u16::from_ne_bytes([bytes[2], bytes[3]]), bytes[4..length].to_vec()));
            bytes = &bytes[length.next_multiple_of(4)..];
        }
        found
    }

    fn answer(kind: i32, sequence: u32, error: i32) -> Vec<u8> {
        let mut bytes = Vec::from(36u32.to_ne_bytes());
        bytes.extend((kind as u16).to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(error.to_ne_bytes());
        bytes.resize(36, 0);
        bytes
    }

    #[test]
    fn encodes_an_address_as_iproute2_sends_it() {
        // `ip addr add 198.18.0.1/30 dev` the link of index 2, as `strace -x` shows it, flags and sequence ours.
        let expected: [u8; 40] = [
            40, 0, 0, 0, 20, 0, 0x05, 0x06, 7, 0, 0, 0, 0, 0, 0, 0, // nlmsghdr
            2, 30, 0, 0, 2, 0, 0, 0, // ifaddrmsg
            8, 0, 2, 0, 198, 18, 0, 1, // IFA_LOCAL
            8, 0, 1, 0, 198, 18, 0, 1, // IFA_ADDRESS
        ];
        assert_eq!(Message::new_address(2, Ipv4Addr::new(198, 18, 0, 1), 30).finish(7), expected);
    }

    #[test]
    fn encodes_a_veth_with_its_peer_in_the_other_namespace() {
        let here = End { name: "near", mac: [2, 0, 0, 0, 0, 1] };
        let there = End { name: "further", mac: [2, 0, 0, 0, 0, 2] };
        let bytes = Message::new_veth(here, there, 9).finish(1);
        assert_eq!(u32::from_ne_bytes(bytes[0..4].try_into().unwrap()) as usize, bytes.len());
        let top = attributes(&bytes[HEADER + 16..]);
        assert_eq!(top[0], (libc::IFLA_IFNAME, b"near\0".to_vec()));
        assert_eq!(top[1], (libc::IFLA_ADDRESS, here.mac.to_vec()));
        assert_eq!(top[2].0, libc::IFLA_LINKINFO);
        let info = attributes(&top[2].1);
        assert_eq!(info[0], (libc::IFLA_INFO_KIND, b"veth".to_vec()));
        let data = attributes(&info[1].1);
        assert_eq!(data[0].0, VETH_INFO_PEER);
        let peer = attributes(&data[0].1[16..]);
        assert_eq!(peer[0], (libc::IFLA_IFNAME, b"further\0".to_vec()));
        assert_eq!(peer[2], (libc::IFLA_NET_NS_FD, 9i32.to_ne_bytes().to_vec()));
    }

    #[test]
    fn encodes_a_tunnel_with_group_policies() {
        let end = End { name: "tunnel", mac: [2, 0, 0, 0, 1, 1] };
        let bytes = Message::new_vxlan(end, 2, Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)).finish(1);
        let top = attributes(&bytes[HEADER + 16..]);
        assert_eq!((top[0].0, &top[0].1[..]), (libc::IFLA_IFNAME, &b"tunnel\0"[..]));
        let info = attributes(&top[2].1);
        assert_eq!(info[0], (libc::IFLA_INFO_KIND, b"vxlan".to_vec()));
        let data = attributes(&info[1].1);
        assert_eq!(data[1], (VXLAN_GROUP, vec![198, 18, 0, 2]));
        assert_eq!(data[3], (VXLAN_LOCAL, vec![198, 18, 0, 1]));
        assert_eq!(data[5], (VXLAN_PORT, vec![0x12, 0xb5]));
        assert_eq!(data[6], (VXLAN_GBP, Vec::new()));
    }

    #[test]
    fn pads_each_attribute_to_four_bytes() {
        assert_eq!(attribute(3, b"abcde"), [9, 0, 3, 0, b'a', b'b', b'c', b'd', b'e', 0, 0, 0]);
    }

    #[test]
    fn accepts_an_acknowledgement() {
        assert!(acknowledged(&answer(libc::NLMSG_ERROR, 4, 0), 4).is_ok());
    }

    #[test]
    fn reports_the_errno_of_a_refusal() {
        let error = acknowledged(&answer(libc::NLMSG_ERROR, 4, -libc::EPERM), 4).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn rejects_answers_that_are_cut_foreign_or_no_status() {
        let full = answer(libc::NLMSG_ERROR, 4, 0);
        for cut in 0..HEADER + ERROR {
            assert!(acknowledged(&full[..cut], 4).is_err(), "{cut} bytes");
        }
        assert!(acknowledged(&full, 5).is_err());
        assert!(acknowledged(&answer(libc::NLMSG_DONE, 4, 0), 4).is_err());
    }
}
