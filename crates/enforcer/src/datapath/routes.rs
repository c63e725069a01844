//! The MTU of routes. A label makes packets longer, and where there are no larger packets, none can become too large. So
//! routes to networks with labels say an MTU that leaves room. What must change is found here; [`apply`] changes it.
//!
//! A route within such a network gets the lower MTU itself. A route that leads to other networks as well stays, and so
//! does one of IPv6, because a router may renew it: a route of our own is added beside it, which leads to the network
//! alone, or comes first. Nothing is done to routes that packets with labels do not take.

pub mod apply;
pub mod memory;
mod ordered;
pub mod route;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use tollgate_client::network::Prefix;

use super::{
    links::{Device, Framing},
    prefix::Family,
};
use memory::{Changed, Memory};
use ordered::Ordered;
use route::{Key, PROTOCOL, Route};

/// A network with labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labelled {
    /// Its addresses, which no other such network has.
    pub prefix: Prefix,
    /// By how many bytes labels make packets longer, at most.
    pub overhead: u32,
}

/// The smallest MTU that is written (the least that IPv4 may have).
const MIN_MTU: u32 = 68;
/// The least that IPv6 may have (IPV6_MIN_MTU). With less, the kernel sends no datagrams at all (EINVAL).
const MIN_MTU6: u32 = 1280;
/// The headers of IPv6 and TCP, which a segment is without.
const TCP_HEADERS6: u32 = 60;
/// The first priority of IPv6 routes; 0 stands for the default.
const FIRST_PRIORITY: u32 = 1;

/// Routing, as it is.
#[derive(Debug, Default)]
pub struct Routing {
    /// All routes.
    pub routes: Vec<Route>,
    /// The devices.
    pub devices: Vec<Device>,
    /// Rules that leave out routes with prefixes of this length or shorter, by table.
    pub suppressed: BTreeMap<(Family, u32), u8>,
}

/// What must change.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Routes of our own that are not needed any more.
    pub remove: Vec<Route>,
    /// Routes of our own that are needed.
    pub add: Vec<Route>,
    /// Routes of others, with another MTU.
    pub change: Vec<Route>,
    /// What to remember of those that have another MTU.
    pub memory: Memory,
}

impl Plan {
    /// Whether nothing must change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.add.is_empty() && self.change.is_empty()
    }
}

/// What must change so that packets to these networks have room for labels. None of them: what was before is restored.
#[must_use]
pub fn plan(networks: &[Labelled], routing: &Routing, memory: &Memory) -> Plan {
    let (own, others): (Vec<_>, Vec<_>) = routing.routes.iter().partition(|route| route.protocol == PROTOCOL);
    let others = Ordered::of(others.into_iter().map(|route| memory.original(route)).collect());
    let mut wanted = Wanted::new(routing, &others);
    for network in networks {
        wanted.within(network);
        wanted.towards(network);
    }
    let Wanted { own: mut missing, changed, .. } = wanted;
    let mut plan = Plan::default();
    for route in own {
        match missing.remove(&route.key()) {
            Some(same) if same == *route => {}
            other => {
                plan.remove.push(route.clone());
                missing.extend(other.map(|other| (other.key(), other)));
            }
        }
    }
    plan.add.extend(missing.into_values());
    let mut seen = BTreeSet::new();
    for route in routing.routes.iter().filter(|route| route.protocol != PROTOCOL) {
        // A second one of these is never taken.
        if !seen.insert(route.key()) {
            continue;
        }
        let original = memory.original(route);
        let mtu = changed.get(&route.key()).copied();
        if let Some(mtu) = mtu {
            plan.memory.insert(route.key(), Changed { before: original.mtu(), set: mtu });
        }
        let wanted = original.with_mtu_if(mtu);
        if wanted != *route {
            plan.change.push(wanted);
        }
    }
    plan
}

/// What there should be.
struct Wanted<'r> {
    routing: &'r Routing,
    /// The routes of others, as they were before.
    others: &'r Ordered,
    /// The devices whose packets have labels, by their indices.
    devices: BTreeMap<u32, &'r Device>,
    own: BTreeMap<Key, Route>,
    changed: BTreeMap<Key, u32>,
}

impl<'r> Wanted<'r> {
    fn new(routing: &'r Routing, others: &'r Ordered) -> Self {
        let labelled = |device: &&Device| device.framing().is_some_and(|framing| framing != Framing::Loopback);
        let devices = routing.devices.iter().filter(labelled).map(|device| (device.index, device)).collect();
        Self { routing, others, devices, own: BTreeMap::new(), changed: BTreeMap::new() }
    }

    /// Routes that lead nowhere else than into a network.
    fn within(&mut self, network: &Labelled) {
        for route in self.others.within(network.prefix) {
            let Some(room) = self.room(route, network.overhead) else { continue };
            match self.before(route) {
                Some(priority) => self.add(room.on(route.own(route.prefix, priority))),
                None => drop(self.changed.entry(route.key()).or_insert(room.mtu)),
            }
        }
    }

    /// The priority of a route of our own that comes before this one of IPv6, and before no other.
    fn before(&self, route: &Route) -> Option<u32> {
        let is_six = Family::of(route.prefix) == Family::V6;
        let priority = route.priority().checked_sub(1).filter(|priority| is_six && *priority >= FIRST_PRIORITY)?;
        (!self.others.has(route, priority)).then_some(priority)
    }

    /// Routes that lead to a network and elsewhere: in each table those that packets take, with the longest prefix and
    /// the best priority.
    fn towards(&mut self, network: &Labelled) {
        let place = |route: &Route| (route.table, route.tos(), route.source());
        let rank = |route: &Route| (route.prefix.length(), Reverse(route.priority()));
        let leading: Vec<&Route> = self.others.around(network.prefix).collect();
        let mut best = BTreeMap::new();
        for route in &leading {
            let found = best.entry(place(route)).or_insert(rank(route));
            *found = rank(route).max(*found);
        }
        let is_wider = |route: &&&Route| route.prefix != network.prefix;
        for parent in leading.iter().filter(|route| best.get(&place(route)) == Some(&rank(route))).filter(is_wider) {
            let Some(room) = self.room(parent, network.overhead) else { continue };
            if !self.is_suppressed(parent, network.prefix) {
                self.add(room.on(parent.own(network.prefix, parent.priority())));
            }
        }
    }

    fn add(&mut self, route: Route) {
        self.own.entry(route.key()).or_insert(route);
    }

    /// Whether a rule leaves out a route that would not leave out one with a longer prefix.
    fn is_suppressed(&self, route: &Route, longer: Prefix) -> bool {
        let rule = self.routing.suppressed.get(&(Family::of(route.prefix), route.table));
        rule.is_some_and(|length| route.prefix.length() <= *length && longer.length() > *length)
    }

    /// What leaves room on a route; `None`: it has none, or packets on it have no label.
    fn room(&self, route: &Route, overhead: u32) -> Option<Room> {
        let family = Family::of(route.prefix);
        let mtu = |device: &&Device| match family {
            Family::V4 => device.mtu,
            Family::V6 => device.mtu6,
        };
        let labelled = route.devices.iter().filter_map(|index| self.devices.get(index));
        let smallest = labelled.map(mtu).min().filter(|_| route.is_unicast)?;
        let all = smallest.min(route.mtu().unwrap_or(u32::MAX));
        let mtu = all.checked_sub(overhead).filter(|mtu| *mtu >= MIN_MTU && overhead > 0)?;
        Some(if family == Family::V6 && mtu < MIN_MTU6 && all >= MIN_MTU6 {
            Room { mtu: MIN_MTU6, segments: Some(mtu - TCP_HEADERS6) }
        } else {
            Room { mtu, segments: None }
        })
    }
}

/// What leaves room for labels on a route.
struct Room {
    mtu: u32,
    /// Where IPv6 allows no MTU as low as that: the longest segments of TCP, since both ends say what fits. Other packets
    /// have room for a shorter label, or are dropped.
    segments: Option<u32>,
}

impl Room {
    fn on(&self, route: Route) -> Route {
        let route = route.with_mtu(Some(self.mtu));
        let route = if Family::of(route.prefix) == Family::V6 { route.with_locked_mtu() } else { route };
        if let Some(longest) = self.segments { route.with_segments(longest) } else { route }
    }
}
