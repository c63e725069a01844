//! What crosses between zones: what flows name, and the policy allows.

use serde::Serialize;
use tollgate_policy::server::SecurityServer;

use super::{
    End, Flow, OUTSIDE, Zones,
    world::{World, allows},
};

/// Protocols of ports, by their numbers in IP packets, with their classes of sockets.
const PROTOCOLS: [(u8, &str, &str); 4] =
    [(6, "tcp", "tcp_socket"), (17, "udp", "udp_socket"), (33, "dccp", "dccp_socket"), (132, "sctp", "sctp_socket")];
/// The protocol of which the port of a destination is not checked.
const UDP: u8 = 17;

/// A flow, with what the policy allows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Crossing {
    /// The zone from which connections come, or `outside`.
    pub from: String,
    /// The zone to which they go, or `outside`.
    pub to: String,
    /// The ports.
    pub ports: Vec<Port>,
    /// Which domains reach which. Empty: the policy allows nothing of the flow.
    pub ways: Vec<Way>,
}

/// A type of ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// The type.
    #[serde(rename = "type")]
    pub name: String,
    /// The ports that have it, such as `tcp 80` or `udp 1-1023`.
    pub numbers: Vec<String>,
}

/// A domain that reaches another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Way {
    /// The domain that connects, or sends; `outside`: any that the policy allows.
    pub source: String,
    /// The domain that listens; `outside`: any.
    pub target: String,
    /// The protocol.
    pub protocol: &'static str,
    /// The port's type.
    pub port: String,
}

/// All crossings, in the order of the flows.
pub(super) fn all(zones: &Zones, world: &World<'_>, server: &mut SecurityServer<'_>) -> Vec<Crossing> {
    zones.flows.iter().map(|flow| crossing(zones, world, server, flow)).collect()
}

fn crossing(zones: &Zones, world: &World<'_>, server: &mut SecurityServer<'_>, flow: &Flow) -> Crossing {
    let ports = flow.ports.iter().map(|port| {
        let numbers = world.numbers(port).into_iter().map(|(protocol, low, high)| number(protocol, low, high));
        Port { name: port.clone(), numbers: numbers.collect() }
    });
    let (sources, targets) = (ends(zones, world, flow.from), ends(zones, world, flow.to));
    let hosts = match flow.to {
        End::Zone(zone) => world.hosts(&zones.zones[zone]),
        End::Outside => None,
    };
    let mut ways = Vec::new();
    for port in &flow.ports {
        let Some(context) = world.port(port) else { continue };
        let mut protocols: Vec<u8> = world.numbers(port).into_iter().map(|(protocol, ..)| protocol).collect();
        protocols.dedup();
        let known = PROTOCOLS.into_iter().filter(|(number, ..)| protocols.contains(number));
        for (number, protocol, class) in known {
            for (source, target) in sources.iter().flat_map(|source| targets.iter().map(move |target| (source, target)))
            {
                let asked =
                    Asked { source, target, hosts: hosts.as_deref(), port: &context, class, named: number != UDP };
                if asked.is_allowed(server) {
                    let (source, target) = (source.name.to_owned(), target.name.to_owned());
                    ways.push(Way { source, target, protocol, port: port.clone() });
                }
            }
        }
    }
    Crossing {
        from: zones.name(flow.from).to_owned(),
        to: zones.name(flow.to).to_owned(),
        ports: ports.collect(),
        ways,
    }
}

fn number(protocol: u8, low: u16, high: u16) -> String {
    let protocol = PROTOCOLS.iter().find(|(number, ..)| *number == protocol).map_or("protocol", |(_, name, _)| name);
    if low == high { format!("{protocol} {low}") } else { format!("{protocol} {low}-{high}") }
}

/// A domain at one end of a flow.
struct Process<'a> {
    name: &'a str,
    /// `None`: it is outside, and may be anyone.
    context: Option<String>,
}

fn ends<'a>(zones: &'a Zones, world: &World<'_>, end: End) -> Vec<Process<'a>> {
    match end {
        End::Outside => vec![Process { name: OUTSIDE, context: None }],
        End::Zone(zone) => {
            let domains = zones.zones[zone].domains.iter();
            domains.map(|domain| Process { name: domain, context: world.domain(domain) }).collect()
        }
    }
}

/// Whether one process reaches another by a port.
struct Asked<'a> {
    source: &'a Process<'a>,
    target: &'a Process<'a>,
    /// The context of the target's hosts, if the policy knows it.
    hosts: Option<&'a str>,
    port: &'a str,
    class: &'static str,
    /// Whether the port of a destination is checked.
    named: bool,
}

impl Asked<'_> {
    fn is_allowed(&self, server: &mut SecurityServer<'_>) -> bool {
        let Self { source, target, hosts, port, class, named } = self;
        let (source, target) = (source.context.as_deref(), target.context.as_deref());
        let mut allows = |source: Option<&str>, target: Option<&str>, class: &str, permission: &str| {
            let (Some(source), Some(target)) = (source, target) else { return true };
            allows(server, source, target, class, permission)
        };
        (!named || allows(source, Some(port), class, "name_connect"))
            && allows(source, *hosts, "node", "sendto")
            && allows(target, Some(port), class, "name_bind")
            && allows(target, source, "peer", "recv")
            && allows(source, target, "peer", "recv")
    }
}
