//! The flows of sockets that have labels.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsFd,
};

use libbpf_rs::{MapCore, MapFlags};
use tollgate_abi::enforcer::{SECINITSID_UNLABELED, tg_heard, tg_labelled_socket};
use zerocopy::FromBytes;

use super::{Enforcer, EnforcerError, map_error};
use crate::contexts::Sid;

/// What a socket and its other end say to one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The socket's class.
    pub class: u32,
    /// Its own address.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The number of its network namespace's file.
    pub namespace: u64,
    /// The socket's SID.
    pub own: Sid,
    /// The other end's; `None`: it is not known.
    pub peer: Option<Sid>,
}

/// The labels that a datagram socket has received, by its cookie.
type Heard = HashMap<u64, Vec<(SocketAddr, Sid)>>;

impl Enforcer {
    /// The flows of sockets in all network namespaces. There are none while no network is labelled.
    pub fn flows(&self) -> Result<Vec<Flow>, EnforcerError> {
        let Some(datapath) = &self.datapath else { return Ok(Vec::new()) };
        let sockets = datapath.sockets(self.maps.sockets.as_fd());
        let sockets = sockets.map_err(|cause| map_error("list sockets")(cause.into()))?;
        let heard = self.all_heard();
        Ok(sockets.iter().flat_map(|socket| flows_of(socket, &heard)).collect())
    }

    fn all_heard(&self) -> Heard {
        let mut heard = Heard::new();
        for key in self.maps.heard.keys() {
            // It may have been removed meanwhile.
            let Ok(Some(value)) = self.maps.heard.lookup(&key, MapFlags::ANY) else { continue };
            if let (Ok(sender), Ok(sid)) = (tg_heard::read_from_bytes(&key), value.try_into()) {
                let address = address(sender.family, sender.address);
                let sender_of = heard.entry(sender.socket).or_default();
                sender_of.push((SocketAddr::new(address, sender.port as u16), Sid::from_ne_bytes(sid)));
            }
        }
        heard
    }
}

/// What was heard by a socket, and what it is connected to. One that waits for connections has no flow.
fn flows_of(socket: &tg_labelled_socket, heard: &Heard) -> Vec<Flow> {
    let (ends, label) = (&socket.ends, &socket.label);
    let end = |place: usize| SocketAddr::new(address(ends.family, ends.address[place]), ends.port[place]);
    let mut others: Vec<(SocketAddr, Sid)> = heard.get(&socket.cookie).cloned().unwrap_or_default();
    if ends.port[1] != 0 && others.iter().all(|(remote, _)| *remote != end(1)) {
        others.push((end(1), label.peer));
    }
    let flow = |(remote, peer): (SocketAddr, Sid)| Flow {
        class: label.class,
        local: end(0),
        remote,
        namespace: socket.namespace.into(),
        own: label.sid,
        peer: Some(peer).filter(|peer| ![0, SECINITSID_UNLABELED].contains(peer)),
    };
    others.into_iter().map(flow).collect()
}

/// An address of a packet or a socket. Sockets of IPv6 may have addresses of IPv4.
fn address(family: u32, words: [u32; 4]) -> IpAddr {
    let bytes = words.map(u32::to_ne_bytes);
    if family == libc::AF_INET.cast_unsigned() {
        return Ipv4Addr::from(bytes[0]).into();
    }
    let all: [u8; 16] = std::array::from_fn(|at| bytes[at / 4][at % 4]);
    IpAddr::from(Ipv6Addr::from(all)).to_canonical()
}

#[cfg(test)]
mod tests {
    use tollgate_abi::enforcer::{tg_endpoints, tg_socket};

    use super::*;

    fn socket(remote: u16) -> tg_labelled_socket {
        let words = |last: u8| [u32::from_ne_bytes([10, 0, 0, last]), 0, 0, 0];
        let family = libc::AF_INET.cast_unsigned();
        let ends = tg_endpoints {
            family,
            port: [53, remote],
            address: [words(1), if remote == 0 { [0; 4] } else { words(2) }],
            ..tg_endpoints::default()
        };
        tg_labelled_socket {
            cookie: 7,
            label: tg_socket { sid: 40, class: 3, peer: 41, labelled: 0 },
            namespace: 9,
            reserved: 0,
            ends,
        }
    }

    fn seen(socket: &tg_labelled_socket, heard: &Heard) -> Vec<(String, Option<Sid>)> {
        let flows = flows_of(socket, heard);
        assert!(flows.iter().all(|flow| (flow.class, flow.own, flow.namespace) == (3, 40, 9)));
        flows.iter().map(|flow| (format!("{} {}", flow.local, flow.remote), flow.peer)).collect()
    }

    #[test]
    fn lists_connections_and_the_senders_of_datagrams_once() {
        let nothing = Heard::new();
        assert_eq!(seen(&socket(0), &nothing), []);
        let both = ("10.0.0.1:53 10.0.0.2:99".to_owned(), Some(41));
        assert_eq!(seen(&socket(99), &nothing), std::slice::from_ref(&both));
        let sender = |text: &str, sid| (text.parse().unwrap(), sid);
        let heard = Heard::from([
            (
                7,
                vec![
                    sender("10.0.0.2:99", 41),
                    sender("10.0.0.3:98", 42),
                    sender("[fd00::1]:97", SECINITSID_UNLABELED),
                ],
            ),
            (8, vec![sender("10.0.0.4:1", 43)]),
        ]);
        let all =
            [both, ("10.0.0.1:53 10.0.0.3:98".to_owned(), Some(42)), ("10.0.0.1:53 [fd00::1]:97".to_owned(), None)];
        assert_eq!(seen(&socket(99), &heard), all);
        assert_eq!(seen(&socket(0), &heard), all);
    }

    #[test]
    fn reads_addresses_of_both_families() {
        let words =
            |bytes: [u8; 16]| std::array::from_fn(|at| u32::from_ne_bytes(std::array::from_fn(|b| bytes[at * 4 + b])));
        let six = |text: &str| address(10, words(text.parse::<Ipv6Addr>().unwrap().octets())).to_string();
        assert_eq!(six("fd00::1:2"), "fd00::1:2");
        assert_eq!(six("::ffff:10.1.2.3"), "10.1.2.3");
    }
}
