//! A route, as the kernel lists it and as it is written again.

use std::collections::BTreeMap;

use tollgate_client::network::Prefix;

use super::super::{
    netlink::{self, Message, Request},
    prefix::{Family, bytes},
};

/// Length of struct rtmsg, with which messages about routes begin.
pub(super) const FIXED: usize = 12;
/// Attributes (RTA_...).
const DST: u16 = 1;
const SRC: u16 = 2;
const OIF: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const PREFSRC: u16 = 7;
const METRICS: u16 = 8;
const MULTIPATH: u16 = 9;
const FLOW: u16 = 11;
const TABLE: u16 = 15;
const VIA: u16 = 18;
const PREF: u16 = 20;
const ENCAP_TYPE: u16 = 21;
const ENCAP: u16 = 22;
const TTL_PROPAGATE: u16 = 26;
const NH_ID: u16 = 30;
/// Those that are part of a route. The kernel adds others when it lists one.
const KEPT: [u16; 14] = [
    SRC,
    OIF,
    GATEWAY,
    PRIORITY,
    PREFSRC,
    METRICS,
    MULTIPATH,
    FLOW,
    VIA,
    PREF,
    ENCAP_TYPE,
    ENCAP,
    TTL_PROPAGATE,
    NH_ID,
];
/// What a next hop has of its own (RTA_NH_ID), and what is therefore listed only.
const OF_NEXTHOP: [u16; 6] = [OIF, GATEWAY, MULTIPATH, VIA, ENCAP_TYPE, ENCAP];
/// Metrics (RTAX_LOCK, RTAX_MTU, RTAX_ADVMSS).
const LOCK: u16 = 1;
const MTU: u16 = 2;
const ADVMSS: u16 = 8;
/// The flags that a route may be written with (RTNH_F_PERVASIVE, RTNH_F_ONLINK).
const WRITTEN_FLAGS: u8 = 2 | 4;
/// A copy that a look-up has left (RTM_F_CLONED).
const CLONED: u32 = 0x200;

/// The protocol number of our own routes (rtm_protocol), by which they are recognized. No known program has it.
pub const PROTOCOL: u8 = 116;
/// The table of the machine's own addresses (RT_TABLE_LOCAL).
const LOCAL_TABLE: u32 = 255;

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Its table.
    pub table: u32,
    /// The destinations.
    pub prefix: Prefix,
    /// Who has made it (RTPROT_...).
    pub protocol: u8,
    /// The devices of its next hops.
    pub devices: Vec<u32>,
    /// Whether packets take it. Others end here: they are refused, or go on to other tables.
    pub is_unicast: bool,
    source_length: u8,
    tos: u8,
    scope: u8,
    kind: u8,
    flags: u8,
    attributes: BTreeMap<u16, Vec<u8>>,
}

/// What distinguishes a route from all others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The table.
    pub table: u32,
    /// The destinations.
    pub prefix: Prefix,
    /// The type of service.
    pub tos: u8,
    /// The priority: the lowest number counts.
    pub priority: u32,
    /// With IPv6: the device, if there is no gateway; else 0.
    pub device: u32,
    /// With IPv6: the sources.
    pub source: Vec<u8>,
}

impl Route {
    /// The route of a message; `None`: it is about none, a copy, or the machine's own addresses.
    #[must_use]
    pub fn read(message: &Message) -> Option<Self> {
        let (fixed, rest) = message.split(FIXED).filter(|_| message.kind == libc::RTM_NEWROUTE)?;
        let family = Family::numbered(fixed[0])?;
        let flags = netlink::u32_at(fixed, 8)?;
        let table = netlink::number(rest, TABLE).unwrap_or(u32::from(fixed[4]));
        if flags & CLONED != 0 || table == LOCAL_TABLE {
            return None;
        }
        let prefix = family.prefix(netlink::attribute(rest, DST).unwrap_or_default(), fixed[1])?;
        let devices = devices(rest);
        let has_nexthop = netlink::attribute(rest, NH_ID).is_some();
        let kept = netlink::attributes(rest)
            .filter(|(kind, _)| KEPT.contains(kind) && !(has_nexthop && OF_NEXTHOP.contains(kind)));
        let mut attributes: BTreeMap<u16, Vec<u8>> = kept.map(|(kind, value)| (kind, value.to_owned())).collect();
        attributes.entry(MULTIPATH).and_modify(written);
        attributes.retain(|kind, value| *kind != MULTIPATH || !value.is_empty());
        Some(Self {
            table,
            prefix,
            protocol: fixed[5],
            devices,
            is_unicast: fixed[7] == libc::RTN_UNICAST,
            source_length: fixed[2],
            tos: fixed[3],
            scope: fixed[6],
            kind: fixed[7],
            flags: flags as u8 & WRITTEN_FLAGS,
            attributes,
        })
    }

    /// What distinguishes it.
    #[must_use]
    pub fn key(&self) -> Key {
        let is_bare = Family::of(self.prefix) == Family::V6
            && ![GATEWAY, MULTIPATH, VIA, NH_ID].iter().any(|kind| self.attributes.contains_key(kind));
        Key {
            table: self.table,
            prefix: self.prefix,
            tos: self.tos,
            priority: self.priority(),
            device: self.devices.first().copied().filter(|_| is_bare).unwrap_or_default(),
            source: self.source(),
        }
    }

    /// The sources to which it is limited.
    #[must_use]
    pub fn source(&self) -> Vec<u8> {
        let address = self.attributes.get(&SRC).cloned().unwrap_or_default();
        [&[self.source_length][..], &address].concat()
    }

    /// The type of service for which it is.
    #[must_use]
    pub fn tos(&self) -> u8 {
        self.tos
    }

    /// The priority: the lowest number counts.
    #[must_use]
    pub fn priority(&self) -> u32 {
        self.attributes.get(&PRIORITY).and_then(|value| netlink::u32_at(value, 0)).unwrap_or_default()
    }

    fn metric(&self, kind: u16) -> Option<u32> {
        netlink::number(self.attributes.get(&METRICS)?, kind).filter(|value| *value != 0)
    }

    /// The same route with another metric.
    pub(super) fn with_metric(mut self, kind: u16, value: Option<u32>) -> Self {
        let metrics = self.attributes.remove(&METRICS).unwrap_or_default();
        let others = netlink::attributes(&metrics).filter(|(other, _)| *other != kind);
        let mut metrics: BTreeMap<u16, Vec<u8>> = others.map(|(kind, value)| (kind, value.to_owned())).collect();
        metrics.extend(value.map(|value| (kind, value.to_ne_bytes().to_vec())));
        if !metrics.is_empty() {
            self.attributes.insert(METRICS, netlink::write(&metrics));
        }
        self
    }

    /// The MTU that it says; `None`: none.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        self.metric(MTU)
    }

    /// The same route with another MTU.
    #[must_use]
    pub fn with_mtu(self, mtu: Option<u32>) -> Self {
        self.with_metric(MTU, mtu)
    }

    /// The same route, whose MTU is also that of packets which the machine forwards: those of IPv6 obey no other one. It
    /// does not end the discovery of smaller ones there (__ip6_rt_update_pmtu).
    #[must_use]
    pub fn with_locked_mtu(self) -> Self {
        let locked = self.metric(LOCK).unwrap_or_default() | 1 << MTU;
        self.with_metric(LOCK, Some(locked))
    }

    /// The same route, on which others are told to send segments of TCP no longer than this.
    #[must_use]
    pub fn with_segments(self, longest: u32) -> Self {
        let longest = self.metric(ADVMSS).map_or(longest, |own| own.min(longest));
        self.with_metric(ADVMSS, Some(longest))
    }

    /// The same route, with another MTU if there is one.
    #[must_use]
    pub fn with_mtu_if(self, mtu: Option<u32>) -> Self {
        if mtu.is_some() { self.with_mtu(mtu) } else { self }
    }

    /// A route of our own like it, to these destinations, with this priority.
    #[must_use]
    pub fn own(&self, prefix: Prefix, priority: u32) -> Self {
        let mut own = Self { prefix, protocol: PROTOCOL, ..self.clone() };
        own.attributes.remove(&PRIORITY);
        if priority != 0 {
            own.attributes.insert(PRIORITY, priority.to_ne_bytes().to_vec());
        }
        own
    }

    /// A request about it (RTM_NEWROUTE, RTM_DELROUTE).
    #[must_use]
    pub fn request(&self, kind: u16, flags: u16) -> Request {
        let fixed = [
            Family::of(self.prefix).number(),
            self.prefix.length(),
            self.source_length,
            self.tos,
            // The attribute counts.
            0,
            self.protocol,
            self.scope,
            self.kind,
        ];
        let fixed = [&fixed[..], &u32::from(self.flags).to_ne_bytes()].concat();
        let request = Request::new(kind, flags, &fixed).number(TABLE, self.table);
        // Without any metric, the kernel would take those of another route with the same next hop (fib_find_info_nh).
        let is_without = self.attributes.contains_key(&NH_ID) && !self.attributes.contains_key(&METRICS);
        let request = if is_without { request.nested(METRICS, |metrics| metrics.number(MTU, 0)) } else { request };
        let request = if self.prefix.length() > 0 { request.with(DST, &bytes(self.prefix)) } else { request };
        self.attributes.iter().fold(request, |request, (kind, value)| request.with(*kind, value))
    }
}

/// Length of struct rtnexthop, with which each next hop begins.
const HOP: usize = 8;

/// The next hops of RTA_MULTIPATH, each with its struct rtnexthop.
fn hops(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = usize::from(netlink::u16_at(bytes, 0)?);
        let hop = bytes.get(..length).filter(|_| length >= HOP)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(hop)
    })
}

/// Clears the flags of next hops with which none can be written.
fn written(bytes: &mut Vec<u8>) {
    let mut written = Vec::new();
    for hop in hops(bytes) {
        let at = written.len();
        written.extend(hop);
        written[at + 2] &= WRITTEN_FLAGS;
        written.resize(written.len().next_multiple_of(4), 0);
    }
    *bytes = written;
}

/// The devices of a route's next hops.
fn devices(attributes: &[u8]) -> Vec<u32> {
    let one = netlink::number(attributes, OIF);
    let several = hops(netlink::attribute(attributes, MULTIPATH).unwrap_or_default());
    one.into_iter().chain(several.filter_map(|hop| netlink::u32_at(hop, 4))).collect()
}
