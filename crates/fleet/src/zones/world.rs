//! What zones need to know of a policy: contexts of its domains, ports and hosts.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use tollgate_policy::{
    context::{self, Kind, Names},
    model::{Context, Level, NodeContext, Policy, Range},
    server::SecurityServer,
};

use super::{Zone, Zones, ZonesError};

/// The attribute of hosts' types, to which those of zones are added: rules about hosts go by it.
pub(super) const NODE_TYPE: &str = "node_type";
/// The policy capability with which packets are checked by their peer.
const PEERS: &str = "network_peer_controls";
/// The role of everything that is not a process.
const OBJECT_R: &str = "object_r";
/// The initial SIDs whose types are the machine's own.
const MACHINE: [&str; 2] = ["kernel", "init"];
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// A policy, for the zones that it was checked for.
pub(super) struct World<'p> {
    policy: &'p Policy,
    names: Names,
    /// The context of hosts for which the policy has no statement.
    node: Context,
    /// The types of the addresses by which a machine speaks to itself.
    pub(super) loopback: Vec<&'p str>,
}

impl<'p> World<'p> {
    /// This policy, if it has all that these zones name.
    pub(super) fn of(zones: &Zones, policy: &'p Policy) -> Result<Self, ZonesError> {
        let names = Names::of(policy);
        let lacks = |what: &str| ZonesError::Policy(what.to_owned());
        if let Some(fault) = fault(policy, &names) {
            return Err(lacks(fault));
        }
        let node = initial(policy, "node").ok_or_else(|| lacks("has no context for the initial SID `node`"))?.clone();
        let loopback = LOOPBACK.map(|address| host(policy, address).map_or(node.type_, |found| found.context.type_));
        if loopback.contains(&node.type_) {
            return Err(lacks("labels 127.0.0.1 or ::1 as any host: add a nodecon for each, with a type of its own"));
        }
        let mut loopback: Vec<&str> =
            loopback.into_iter().filter_map(|number| policy.types.get(number as usize)).map(|t| &t.name[..]).collect();
        loopback.dedup();
        let world = Self { policy, names, node, loopback };
        zones.zones.iter().try_for_each(|zone| world.check(zone))?;
        let flows = zones
            .flows
            .iter()
            .map(|flow| (format!("flow from {} to {}", zones.name(flow.from), zones.name(flow.to)), &flow.ports));
        let own = zones.zones.iter().map(|zone| (format!("zone {}", zone.name), &zone.ports));
        flows
            .chain(own)
            .try_for_each(|(place, ports)| ports.iter().try_for_each(|port| world.check_port(&place, port)))?;
        Ok(world)
    }

    fn check(&self, zone: &Zone) -> Result<(), ZonesError> {
        let wrong = |message: String| Err(ZonesError::Wrong { place: format!("zone {}", zone.name), message });
        for domain in &zone.domains {
            let number = match self.names.find(Kind::Type, domain) {
                Ok(number) => number,
                Err(cause) => return wrong(format!("{cause}: name a domain of the policy")),
            };
            if MACHINE.iter().any(|sid| initial(self.policy, sid).is_some_and(|own| own.type_ == number)) {
                return wrong(format!("{domain} is the machine's own domain, which nothing confines: leave it out"));
            }
            if self.role(number).is_none() {
                return wrong(format!("{domain} is no domain: no role may have it; name a type of processes"));
            }
        }
        Ok(())
    }

    fn check_port(&self, place: &str, port: &str) -> Result<(), ZonesError> {
        let wrong = |message: String| Err(ZonesError::Wrong { place: place.to_owned(), message });
        match self.names.find(Kind::Type, port) {
            Err(cause) => wrong(format!("{cause}: name a type of ports")),
            Ok(_) if self.numbers(port).is_empty() => wrong(format!(
                "no port has the type {port}: give it one with a portcon, or with `tollgate port add -t {port}`"
            )),
            Ok(_) => Ok(()),
        }
    }

    /// Whether the policy has a permission of a class.
    pub(super) fn has(&self, class: &str, permission: &str) -> bool {
        has(&self.names, class, permission)
    }

    /// The ports of a type, as (protocol, lowest, highest), in their order.
    pub(super) fn numbers(&self, port: &str) -> Vec<(u8, u16, u16)> {
        let Ok(number) = self.names.find(Kind::Type, port) else { return Vec::new() };
        let own = self.policy.ports.iter().filter(|statement| statement.context.type_ == number);
        let mut numbers: Vec<_> = own.map(|port| (port.protocol, port.low, port.high)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// All types of ports.
    pub(super) fn ports(&self) -> Vec<&'p str> {
        let numbers: BTreeSet<u32> = self.policy.ports.iter().map(|port| port.context.type_).collect();
        numbers.into_iter().filter_map(|number| Some(&self.policy.types.get(number as usize)?.name[..])).collect()
    }

    /// A context of a port's type.
    pub(super) fn port(&self, port: &str) -> Option<String> {
        let number = self.names.find(Kind::Type, port).ok()?;
        let statement = self.policy.ports.iter().find(|statement| statement.context.type_ == number)?;
        Some(context::text(self.policy, &statement.context))
    }

    /// The context of a zone's hosts; `None`: the policy was not built with the zone.
    pub(super) fn hosts(&self, zone: &Zone) -> Option<String> {
        let type_ = self.names.find(Kind::Type, &node(zone)).ok()?;
        Some(context::text(self.policy, &Context { type_, ..self.node.clone() }))
    }

    /// The contexts of packets without a label, and of those whose label is a level only.
    pub(super) fn strangers(&self) -> Vec<String> {
        let named = ["unlabeled", "netmsg"].into_iter().filter_map(|name| initial(self.policy, name));
        named.map(|context| context::text(self.policy, context)).collect()
    }

    /// A context that processes of a domain may have, at the lowest level of its user.
    pub(super) fn domain(&self, domain: &str) -> Option<String> {
        let type_ = self.names.find(Kind::Type, domain).ok()?;
        let role = self.role(type_)?;
        let has_role = |user: &&tollgate_policy::model::User| !user.name.is_empty() && user.roles.has(role);
        let (number, user) = (0..).zip(&self.policy.users).find(|(_, user)| has_role(user))?;
        let range = Range { low: user.range.low.clone(), high: user.range.low.clone() };
        Some(context::text(self.policy, &Context { user: number, role, type_, range }))
    }

    /// A role that processes of a type may have.
    fn role(&self, type_: u32) -> Option<u32> {
        let roles = (0..).zip(&self.policy.roles);
        let may = |(_, role): &(u32, &tollgate_policy::model::Role)| {
            !role.name.is_empty() && role.name != OBJECT_R && role.types.has(type_)
        };
        roles.into_iter().find(may).map(|(number, _)| number)
    }

    /// User, role and range of hosts in CIL, around a type.
    pub(super) fn host_context(&self, type_: &str) -> String {
        let Context { user, role, range, .. } = &self.node;
        let user = self.policy.users.get(*user as usize).map_or("", |user| &user.name);
        let role = self.policy.roles.get(*role as usize).map_or("", |role| &role.name);
        format!("({user} {role} {type_} ({}{}))", self.level(&range.low), self.level(&range.high))
    }

    /// A level in CIL.
    fn level(&self, level: &Level) -> String {
        let name = self.policy.sensitivities.get(level.sensitivity as usize).map_or("", |known| &known.name);
        let numbers: Vec<u32> = level.categories.iter().collect();
        let category = |number: &u32| self.policy.categories.get(*number as usize).map_or("", |known| &known.name);
        match &numbers[..] {
            [] => format!("({name})"),
            [first, .., last] if (last - first) as usize + 1 == numbers.len() => {
                format!("({name} (range {} {}))", category(first), category(last))
            }
            numbers => format!("({name} ({}))", numbers.iter().map(category).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// Whether a policy allows a permission. What it does not know it does not allow.
pub(super) fn allows(
    server: &mut SecurityServer<'_>,
    source: &str,
    target: &str,
    class: &str,
    permission: &str,
) -> bool {
    server.make_room();
    let asked = (server.context(source), server.context(target), server.class(class));
    let (Ok(source), Ok(target), Ok(class)) = asked else { return false };
    let allowed = server.access(source, target, class).allowed;
    server.permissions(class, allowed).contains(&permission)
}

/// What a policy lacks for any zones.
fn fault(policy: &Policy, names: &Names) -> Option<&'static str> {
    let checks = [("peer", "recv"), ("node", "sendto"), ("node", "recvfrom")];
    if !policy.capabilities.iter().any(|name| name == PEERS) {
        Some("does not check the peers of packets: add (policycap network_peer_controls)")
    } else if !checks.iter().all(|(class, permission)| has(names, class, permission)) {
        Some("lacks the classes peer and node of packets: add them, such as by 10-classes.cil")
    } else if names.attribute(NODE_TYPE).is_none() {
        Some("has no attribute node_type for the types of hosts: add it, and rules about it")
    } else {
        None
    }
}

fn has(names: &Names, class: &str, permission: &str) -> bool {
    names.find(Kind::Class, class).is_ok_and(|class| names.permission(class, permission).is_ok())
}

/// The type of a zone's hosts.
pub(super) fn node(zone: &Zone) -> String {
    format!("zone_{}_node", zone.name)
}

/// The context of an initial SID.
fn initial<'p>(policy: &'p Policy, name: &str) -> Option<&'p Context> {
    policy.initial_sids.iter().find(|sid| sid.name == name).map(|sid| &sid.context)
}

/// The statement that labels a host: the first that matches.
fn host(policy: &Policy, address: IpAddr) -> Option<&NodeContext> {
    policy.nodes.iter().find(|statement| match (address, statement.mask, statement.address) {
        (IpAddr::V4(own), IpAddr::V4(mask), IpAddr::V4(network)) => own & mask == network,
        (IpAddr::V6(own), IpAddr::V6(mask), IpAddr::V6(network)) => own & mask == network,
        _ => false,
    })
}
