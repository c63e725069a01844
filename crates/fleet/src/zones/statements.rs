//! Zones as statements of a policy, in CIL: types of hosts, and constraints. No statement allows anything by itself; only
//! what the policy says of all hosts (`node_type`) holds for the hosts of zones, too.

use super::{
    End, Zones,
    world::{NODE_TYPE, World, node},
};

/// Classes of sockets with ports. Only those that the policy has are constrained.
const CONNECTING: [&str; 3] = ["tcp_socket", "dccp_socket", "sctp_socket"];
const LISTENING: [&str; 4] = ["tcp_socket", "udp_socket", "dccp_socket", "sctp_socket"];
/// Sockets by which processes of one machine reach one another.
const LOCAL: [(&str, &str); 2] = [("unix_stream_socket", "connectto"), ("unix_dgram_socket", "sendto")];

/// All processes of zones, and all hosts of zones.
const ZONED: &str = "zoned";
const ZONE_NODES: &str = "zone_node_type";

pub(super) fn write(zones: &Zones, world: &World<'_>) -> String {
    let mut text = "; The zones of a fleet (docs/fleet.md), written by `tollgate fleet zones --cil`.\n".to_owned();
    let attributes = zones.zones.iter().map(|zone| format!("zone_{}", zone.name)).collect::<Vec<_>>();
    let nodes: Vec<String> = zones.zones.iter().map(node).collect();
    text += &set(ZONED, &attributes);
    nodes.iter().for_each(|node| text += &format!("(type {node})\n(roletype object_r {node})\n"));
    text += &format!("{}(typeattributeset {NODE_TYPE} {ZONE_NODES})\n", set(ZONE_NODES, &nodes));
    for (number, zone) in zones.zones.iter().enumerate() {
        text += &format!("\n; ---- {}\n", zone.name);
        for address in &zone.addresses {
            let context = world.host_context(&nodes[number]);
            text += &format!("(nodecon ({}) ({}) {context})\n", address.address(), address.mask());
        }
        text += &Constrained { zones, world, zone: number, name: &attributes[number] }.write(&attributes, &nodes);
    }
    text
}

/// An attribute with these members.
fn set(name: &str, members: &[String]) -> String {
    format!("(typeattribute {name})\n(typeattributeset {name} ({}))\n", members.join(" "))
}

/// A zone whose constraints are written.
struct Constrained<'a, 'p> {
    zones: &'a Zones,
    world: &'a World<'p>,
    zone: usize,
    /// The attribute of its processes.
    name: &'a str,
}

impl Constrained<'_, '_> {
    /// `attributes` and `nodes` have the processes and the hosts of each zone.
    fn write(&self, attributes: &[String], nodes: &[String]) -> String {
        let Self { zones, zone, name, .. } = self;
        let met = |all: &[String]| -> Vec<String> {
            let met = all.iter().enumerate().filter(|(other, _)| zones.meets(*zone, End::Zone(*other)));
            met.map(|(_, name)| name.clone()).collect()
        };
        let loopback = self.world.loopback.iter().map(|name| (*name).to_owned());
        let (peers, own) = (format!("{name}_peers"), format!("{name}_hosts"));
        let reached: Vec<String> = met(nodes).into_iter().chain(loopback.clone()).collect();
        let hosts: Vec<String> = [nodes[*zone].clone()].into_iter().chain(loopback).collect();
        let mut text = set(name, &zones.zones[*zone].domains) + &set(&peers, &met(attributes));
        text += &set(&format!("{name}_reached"), &reached);
        text += &set(&own, &hosts);
        let outside = zones.meets(*zone, End::Outside);
        let or_outside = |met: String, all: &str| if outside { format!("(or {met} (neq t2 {all}))") } else { met };
        // Whom it receives from, where it sends to, and from which hosts others receive what it sends.
        text += &self.constrain("peer", "recv", &or_outside(format!("(eq t2 {peers})"), ZONED));
        text += &self.constrain("node", "sendto", &or_outside(format!("(eq t2 {name}_reached)"), ZONE_NODES));
        text += &self.constrain("node", "recvfrom", &format!("(eq t2 {own})"));
        if !outside {
            text += &format!("(constrain (peer (recv)) (or (neq t2 {name}) (eq t1 {ZONED})))\n");
        }
        text += &self.ports("connects", true, &CONNECTING, "name_connect");
        text += &self.ports("listens", false, &LISTENING, "name_bind");
        for (class, permission) in LOCAL {
            text += &self.constrain(class, permission, &format!("(or (eq t2 {peers}) (neq t2 {ZONED}))"));
        }
        text
    }

    /// What must be true of an object for the zone's processes to have a permission on it.
    fn constrain(&self, class: &str, permission: &str, condition: &str) -> String {
        if !self.world.has(class, permission) {
            return String::new();
        }
        format!("(constrain ({class} ({permission})) (or (neq t1 {}) {condition}))\n", self.name)
    }

    fn ports(&self, word: &str, from: bool, classes: &[&str], permission: &str) -> String {
        let ports: Vec<String> = self.zones.ports(self.zone, from).into_iter().map(str::to_owned).collect();
        let attribute = format!("{}_{word}", self.name);
        if ports.is_empty() {
            let has = classes.iter().filter(|class| self.world.has(class, permission));
            return has.map(|class| format!("(constrain ({class} ({permission})) (neq t1 {}))\n", self.name)).collect();
        }
        let condition = format!("(eq t2 {attribute})");
        let constraints: String = classes.iter().map(|class| self.constrain(class, permission, &condition)).collect();
        set(&attribute, &ports) + &constraints
    }
}
