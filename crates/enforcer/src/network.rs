//! What a policy labels in the network (`portcon`, `nodecon`, `netifcon`), as programs read it (`struct tg_network`).

use std::{net::IpAddr, ops::RangeInclusive};

use tollgate_abi::enforcer::{
    TG_INTERFACES, TG_NODES, TG_TRANSPORT_DCCP, TG_TRANSPORT_SCTP, TG_TRANSPORT_TCP, TG_TRANSPORT_UDP, tg_interface,
    tg_network, tg_node,
};
use tollgate_policy::model::{Context, InterfaceContext, NodeContext, Policy, PortContext};

use crate::contexts::Sid;

/// Protocols of ports, by their numbers in IP packets.
const TRANSPORTS: [(u8, u32); 4] =
    [(6, TG_TRANSPORT_TCP), (17, TG_TRANSPORT_UDP), (33, TG_TRANSPORT_DCCP), (132, TG_TRANSPORT_SCTP)];
/// With this policy capability, names of interfaces are patterns.
const WILDCARDS: &str = "netif_wildcard";
/// The size of the kernel's names of interfaces, including the NUL.
const INTERFACE_NAME_SIZE: usize = 16;

/// Labels, in the order of the policy. If several match, the first counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Network {
    ports: Vec<(u32, RangeInclusive<u16>, u16)>,
    nodes: Vec<tg_node>,
    interfaces: Vec<tg_interface>,
    /// Statements of the policy that the programs cannot apply, each with the reason. They label nothing.
    pub unsupported: Vec<String>,
}

/// The labels of `policy`. `sid` returns the SID of a context.
pub fn of<E>(policy: &Policy, sid: &mut dyn FnMut(&Context) -> Result<Sid, E>) -> Result<Network, E> {
    let mut network = Network::default();
    for statement in &policy.ports {
        network.port(statement, sid(&statement.context)?);
    }
    for statement in &policy.nodes {
        network.node(statement, sid(&statement.context)?);
    }
    let wildcards = policy.capabilities.iter().any(|name| name == WILDCARDS);
    for statement in &policy.interfaces {
        network.interface(statement, wildcards, sid(&statement.interface)?);
    }
    Ok(network)
}

impl Network {
    fn port(&mut self, statement: &PortContext, sid: Sid) {
        let PortContext { protocol, low, high, .. } = *statement;
        let transport = TRANSPORTS.iter().find(|(number, _)| *number == protocol);
        match (transport, u16::try_from(sid)) {
            (Some((_, transport)), Ok(sid)) => self.ports.push((*transport, low..=high, sid)),
            _ => self.unsupported.push(format!("portcon {protocol} {low}-{high}: the protocol is not known")),
        }
    }

    fn node(&mut self, statement: &NodeContext, sid: Sid) {
        let NodeContext { address, mask, .. } = statement;
        if self.nodes.len() >= TG_NODES as usize {
            return self.unsupported.push(format!("nodecon {address} {mask}: there are more than {TG_NODES}"));
        }
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        self.nodes.push(tg_node { sid, family: family.cast_unsigned(), address: words(*address), mask: words(*mask) });
    }

    fn interface(&mut self, statement: &InterfaceContext, wildcards: bool, sid: Sid) {
        let pattern = statement.name.as_str();
        let prefix = pattern.strip_suffix('*').filter(|_| wildcards);
        let name = prefix.unwrap_or(pattern);
        let reason = if self.interfaces.len() >= TG_INTERFACES as usize {
            format!("there are more than {TG_INTERFACES}")
        } else if name.len() >= INTERFACE_NAME_SIZE {
            "no interface has so long a name".to_owned()
        } else if wildcards && name.contains(['*', '?']) {
            "it is a pattern that is not a prefix".to_owned()
        } else {
            let (mut bytes, mut mask) = ([0_u8; INTERFACE_NAME_SIZE], [0_u8; INTERFACE_NAME_SIZE]);
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            mask[..prefix.map_or(INTERFACE_NAME_SIZE, str::len)].fill(0xff);
            return self.interfaces.push(tg_interface { sid, name: halves(bytes), mask: halves(mask), reserved: 0 });
        };
        self.unsupported.push(format!("netifcon {pattern}: {reason}"));
    }

    /// Writes the labels where programs read them, in place of earlier ones.
    pub fn put(&self, to: &mut tg_network) {
        to.port.as_flattened_mut().fill(0);
        for (transport, ports, sid) in self.ports.iter().rev() {
            to.port[*transport as usize][usize::from(*ports.start())..=usize::from(*ports.end())].fill(*sid);
        }
        to.node.fill(tg_node::default());
        to.node[..self.nodes.len()].copy_from_slice(&self.nodes);
        to.interface.fill(tg_interface::default());
        to.interface[..self.interfaces.len()].copy_from_slice(&self.interfaces);
    }
}

/// The words of an address, in network byte order.
fn words(address: IpAddr) -> [u32; 4] {
    let mut bytes = [0_u8; 16];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|word| u32::from_ne_bytes(words[word]))
}

fn halves(bytes: [u8; INTERFACE_NAME_SIZE]) -> [u64; 2] {
    let (halves, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|half| u64::from_ne_bytes(halves[half]))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A policy with these statements, whose SID is the context's type.
    fn network(set: impl FnOnce(&mut Policy)) -> Network {
        let mut policy = Policy::default();
        set(&mut policy);
        let Ok(network) = of(&policy, &mut |context| Ok::<_, Infallible>(context.type_));
        network
    }

    fn context(type_: u32) -> Context {
        Context { type_, ..Context::default() }
    }

    fn put(network: &Network) -> Box<tg_network> {
        let mut room: Box<tg_network> = Box::default();
        room.port[0][7] = 9;
        network.put(&mut room);
        room
    }

    fn interface(name: &str) -> InterfaceContext {
        InterfaceContext { name: name.into(), interface: context(5), packet: context(6) }
    }

    #[test]
    fn labels_a_port_by_the_first_statement_that_has_it() {
        let network = network(|policy| {
            let port = |protocol, low, high, type_| PortContext { protocol, low, high, context: context(type_) };
            policy.ports =
                vec![port(6, 80, 80, 40), port(6, 1, 1023, 41), port(17, 65535, 65535, 42), port(9, 1, 2, 43)];
        });
        let room = put(&network);
        let sids = |transport: u32, ports: [usize; 4]| ports.map(|port| room.port[transport as usize][port]);
        assert_eq!(sids(TG_TRANSPORT_TCP, [0, 1, 80, 1023]), [0, 41, 40, 41]);
        assert_eq!(sids(TG_TRANSPORT_TCP, [7, 1024, 65535, 79]), [41, 0, 0, 41]);
        assert_eq!(sids(TG_TRANSPORT_UDP, [80, 1, 65534, 65535]), [0, 0, 0, 42]);
        assert_eq!(network.unsupported.len(), 1);
    }

    #[test]
    fn keeps_hosts_in_their_order_and_in_the_order_of_packets() {
        let node = |address: &str, mask: &str, type_| NodeContext {
            address: address.parse().unwrap(),
            mask: mask.parse().unwrap(),
            context: context(type_),
        };
        let network = network(|policy| {
            policy.nodes = vec![node("127.0.0.0", "255.0.0.0", 3), node("::1", "ffff::", 4)];
        });
        let room = put(&network);
        assert_eq!(room.node[0].address, [u32::from_ne_bytes([127, 0, 0, 0]), 0, 0, 0]);
        assert_eq!(room.node[1].mask, [u32::from_ne_bytes([255, 255, 0, 0]), 0, 0, 0]);
        assert_eq!(room.node[1].address[3], u32::from_ne_bytes([0, 0, 0, 1]));
        assert_eq!([0, 1, 2].map(|at| room.node[at].sid), [3, 4, 0]);
        assert_eq!([0, 1].map(|at| room.node[at].family), [libc::AF_INET as u32, libc::AF_INET6 as u32]);
    }

    #[test]
    fn tells_patterns_of_interfaces_from_names() {
        let names = ["lo", "eth*", "*", "e?h0", "an_interface_of_no_kernel"].map(interface);
        let exact = network(|policy| policy.interfaces = names.to_vec());
        assert_eq!((exact.interfaces.len(), exact.unsupported.len()), (4, 1));
        assert!(exact.interfaces.iter().all(|interface| interface.mask == [u64::MAX; 2]));
        let patterns = network(|policy| {
            policy.interfaces = names.to_vec();
            policy.capabilities = vec![WILDCARDS.into()];
        });
        let masks: Vec<u64> = patterns.interfaces.iter().map(|interface| interface.mask[0]).collect();
        assert_eq!(masks, [u64::MAX, 0xff_ffff, 0]);
        assert_eq!(patterns.interfaces[1].name[0], u64::from_ne_bytes(*b"eth\0\0\0\0\0"));
        assert_eq!(patterns.unsupported.len(), 2, "{:?}", patterns.unsupported);
    }
}
