//! The network devices of a network namespace.

use std::io;

use super::netlink::{self, Message, Socket};

/// Length of struct ifinfomsg, with which messages about devices begin.
const FIXED: usize = 16;
/// Attributes of a device (IFLA_...).
const NAME: u16 = 3;
const MTU: u16 = 4;
const LINKINFO: u16 = 18;
const INFO_KIND: u16 = 1;
const AF_SPEC: u16 = 26;
const EXT_MASK: u16 = 29;
/// The settings of IPv6 (IFLA_INET6_CONF), and which of them is the MTU (DEVCONF_MTU6).
const INET6_CONF: u16 = 2;
const MTU6: usize = 2;
/// Requests no statistics (RTEXT_FILTER_SKIP_STATS).
const SKIP_STATISTICS: u32 = 8;

/// A network device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Its index in its namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// What its packets begin with (ARPHRD_...).
    pub arphrd: u16,
    /// IFF_...
    pub flags: u32,
    /// In bytes; 0: none.
    pub mtu: u32,
    /// Likewise for IPv6, where routers may have lowered it.
    pub mtu6: u32,
    /// Its driver's name for its kind, such as `veth`; empty: none.
    pub kind: String,
}

/// What packets look like where programs see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framing {
    /// They begin with an Ethernet header.
    Ether,
    /// They begin with the IP header.
    Ip,
    /// They do not leave the machine.
    Loopback,
}

impl Device {
    /// What its packets look like; `None`: as no program here reads them.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        match self.arphrd {
            libc::ARPHRD_ETHER => Some(Framing::Ether),
            libc::ARPHRD_LOOPBACK => Some(Framing::Loopback),
            libc::ARPHRD_NONE
            | libc::ARPHRD_PPP
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6
            | libc::ARPHRD_SIT
            | libc::ARPHRD_RAWHDLC
            | ARPHRD_RAWIP => Some(Framing::Ip),
            // With many ends, packets begin with the header of the tunnel (ipgre_header).
            libc::ARPHRD_IPGRE | ARPHRD_IP6GRE if self.flags & libc::IFF_POINTOPOINT as u32 != 0 => Some(Framing::Ip),
            _ => None,
        }
    }
}

const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_IP6GRE: u16 = 823;

/// The devices of the socket's namespace.
pub fn devices(socket: &Socket) -> io::Result<Vec<Device>> {
    let found = socket.list(libc::RTM_GETLINK, &[0; FIXED], |request| request.number(EXT_MASK, SKIP_STATISTICS))?;
    Ok(found.iter().filter_map(device).collect())
}

/// The device that a message is about; `None`: it is about none, or malformed.
fn device(message: &Message) -> Option<Device> {
    if message.kind != libc::RTM_NEWLINK {
        return None;
    }
    let (fixed, attributes) = message.split(FIXED)?;
    let kind = netlink::attribute(attributes, LINKINFO).and_then(|info| netlink::string(info, INFO_KIND));
    let mtu = netlink::number(attributes, MTU).unwrap_or_default();
    let inet6 = netlink::attribute(attributes, AF_SPEC).and_then(|all| netlink::attribute(all, libc::AF_INET6 as u16));
    let settings = inet6.and_then(|inet6| netlink::attribute(inet6, INET6_CONF));
    let mtu6 = settings.and_then(|settings| netlink::u32_at(settings, MTU6 * size_of::<u32>()));
    Some(Device {
        index: netlink::u32_at(fixed, 4)?,
        name: netlink::string(attributes, NAME)?,
        arphrd: netlink::u16_at(fixed, 2)?,
        flags: netlink::u32_at(fixed, 8)?,
        mtu,
        mtu6: mtu6.filter(|own| *own != 0).map_or(mtu, |own| own.min(mtu)),
        kind: kind.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_loopback_device() {
        let found = devices(&Socket::open().unwrap()).unwrap();
        let loopback = found.iter().find(|device| device.name == "lo").unwrap();
        assert_eq!((loopback.index, loopback.framing()), (1, Some(Framing::Loopback)));
        assert!(loopback.mtu > 1280, "{loopback:?}");
    }

    #[test]
    fn knows_what_packets_begin_with() {
        let framing = |arphrd, flags: i32| Device { arphrd, flags: flags as u32, ..Device::default() }.framing();
        assert_eq!(framing(libc::ARPHRD_ETHER, libc::IFF_BROADCAST), Some(Framing::Ether));
        for without in [libc::ARPHRD_NONE, libc::ARPHRD_PPP, libc::ARPHRD_TUNNEL, libc::ARPHRD_SIT, ARPHRD_RAWIP] {
            assert_eq!(framing(without, 0), Some(Framing::Ip), "{without}");
        }
        for tunnel in [libc::ARPHRD_IPGRE, ARPHRD_IP6GRE] {
            assert_eq!(framing(tunnel, libc::IFF_POINTOPOINT), Some(Framing::Ip));
            assert_eq!(framing(tunnel, 0), None);
        }
        for other in [libc::ARPHRD_CAN, libc::ARPHRD_INFINIBAND, libc::ARPHRD_IEEE802154, libc::ARPHRD_IEEE80211] {
            assert_eq!(framing(other, 0), None, "{other}");
        }
    }
}
