//! Addresses and ports in an event (LSM_AUDIT_DATA_NET of security/lsm_audit.c).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use serde::{Deserialize, Serialize};
use tollgate_abi::enforcer::{TG_OBJECT_SOCKET, tg_event};

use super::Untrusted;

/// The addresses that are known, under the kernel's names, which are also the names in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    /// Address of the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub laddr: Option<IpAddr>,
    /// Port of the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lport: Option<u16>,
    /// Address that the socket is connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faddr: Option<IpAddr>,
    /// Port that the socket is connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fport: Option<u16>,
    /// Address that a packet comes from, or that a socket is to be bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saddr: Option<IpAddr>,
    /// Port that a packet comes from, or that a socket is to be bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<u16>,
    /// Address that a packet goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daddr: Option<IpAddr>,
    /// Port that a packet or a connection goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest: Option<u16>,
    /// Network interface of the packet.
    #[serde(skip_serializing_if = "Untrusted::is_empty")]
    pub netif: Untrusted,
}

/// Offsets in `struct tg_endpoints`, which lies in an event's name: family, two ports, two addresses of four words, the
/// name of an interface.
const PORTS: usize = 4;
const ADDRESSES: usize = 8;
const INTERFACE: usize = 40;
const END: usize = 56;
const AF_INET6: u32 = libc::AF_INET6.cast_unsigned();

impl Endpoints {
    /// The addresses of an event whose object is a socket, a port or a packet.
    #[must_use]
    pub fn new(event: &tg_event) -> Self {
        let bytes: Vec<u8> = event.name.iter().take(END).map(|&c| c.cast_unsigned()).collect();
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let port = |place: usize| {
            let at = PORTS + 2 * place;
            Some(u16::from_ne_bytes([bytes[at], bytes[at + 1]])).filter(|port| *port != 0)
        };
        let address = |place: usize| {
            let words: [u32; 4] = std::array::from_fn(|at| word(ADDRESSES + 16 * place + 4 * at));
            let [first, ..] = words;
            let address = match word(0) {
                AF_INET6 => IpAddr::V6(Ipv6Addr::from(octets(words))),
                _ => IpAddr::V4(Ipv4Addr::from(first.to_ne_bytes())),
            };
            Some(address).filter(|_| words != [0; 4])
        };
        if event.object == TG_OBJECT_SOCKET {
            let (laddr, faddr) = (address(0), address(1));
            return Self { laddr, lport: port(0), faddr, fport: port(1), ..Self::default() };
        }
        let netif = Untrusted::new(bytes[INTERFACE..].split(|&byte| byte == 0).next().unwrap_or_default());
        Self { saddr: address(0), src: port(0), daddr: address(1), dest: port(1), netif, ..Self::default() }
    }
}

fn octets(words: [u32; 4]) -> [u8; 16] {
    let mut octets = [0; 16];
    for (to, word) in octets.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    octets
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = [
            ("laddr", self.laddr, "lport", self.lport),
            ("faddr", self.faddr, "fport", self.fport),
            ("saddr", self.saddr, "src", self.src),
            ("daddr", self.daddr, "dest", self.dest),
        ];
        for (host, address, name, port) in pairs {
            if let Some(address) = address {
                write!(f, " {host}={address}")?;
            }
            if let Some(port) = port {
                write!(f, " {name}={port}")?;
            }
        }
        // The kernel writes the name of an interface as it is. Interface names can hold nothing dangerous.
        if self.netif.is_empty() { Ok(()) } else { write!(f, " netif={}", self.netif.for_people()) }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_abi::enforcer::TG_OBJECT_PORT;

    use super::*;

    fn event(object: u32, family: i32, ports: [u16; 2], addresses: [[u8; 16]; 2], netif: &[u8]) -> tg_event {
        let mut event = tg_event { object, ..tg_event::default() };
        let parts = [&family.to_ne_bytes()[..], &ports.map(u16::to_ne_bytes).concat(), &addresses.concat(), netif];
        for (to, from) in event.name.iter_mut().zip(parts.concat()) {
            *to = from.cast_signed();
        }
        event
    }

    fn v4(address: [u8; 4]) -> [u8; 16] {
        std::array::from_fn(|at| *address.get(at).unwrap_or(&0))
    }

    #[test]
    fn tells_a_connection_as_the_kernel_does() {
        let own = event(TG_OBJECT_SOCKET, libc::AF_INET, [80, 1024], [v4([127, 0, 0, 1]), v4([10, 0, 0, 2])], b"");
        let told = Endpoints::new(&own).to_string();
        assert_eq!(told, " laddr=127.0.0.1 lport=80 faddr=10.0.0.2 fport=1024");
        let unbound = event(TG_OBJECT_SOCKET, libc::AF_INET, [0, 0], [[0; 16]; 2], b"");
        assert_eq!(Endpoints::new(&unbound).to_string(), "");
    }

    #[test]
    fn tells_ports_hosts_and_interfaces_as_the_kernel_does() {
        let mut loopback = [0; 16];
        loopback[15] = 1;
        let packet = event(TG_OBJECT_PORT, libc::AF_INET6, [53, 9], [loopback, loopback], b"lo\0");
        assert_eq!(Endpoints::new(&packet).to_string(), " saddr=::1 src=53 daddr=::1 dest=9 netif=lo");
        let port = event(TG_OBJECT_PORT, 0, [0, 443], [[0; 16]; 2], b"");
        assert_eq!(Endpoints::new(&port).to_string(), " dest=443");
    }

    #[test]
    fn keeps_what_an_interface_is_called_from_beginning_a_line() {
        let packet = event(TG_OBJECT_PORT, 0, [0, 0], [[0; 16]; 2], b"a\nb\0");
        assert_eq!(Endpoints::new(&packet).to_string(), " netif=a\\nb");
    }
}
