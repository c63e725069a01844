//! The file of zones, read and checked. What depends on the policy is checked when a [`World`](super::world::World) is made.

use std::collections::BTreeMap;

use serde::Deserialize;
use tollgate_policy::context::nearest;

use super::{End, Flow, OUTSIDE, Prefix, Zone, Zones, ZonesError};
use crate::name::Name;

/// The maximum length of a file, in bytes.
const MAX_LENGTH: usize = 1 << 20;
/// The maximum number of zones.
const MAX_ZONES: usize = 64;
/// How many networks a policy may label (`TG_NODES`), without the few that each policy has of its own.
const MAX_ADDRESSES: usize = 224;
/// The maximum length of a zone's name.
const MAX_NAME: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    zone: Vec<WrittenZone>,
    #[serde(default)]
    flow: Vec<WrittenFlow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenZone {
    name: String,
    groups: Vec<String>,
    addresses: Vec<String>,
    domains: Vec<String>,
    #[serde(default)]
    ports: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFlow {
    from: String,
    to: String,
    ports: Vec<String>,
}

impl Zones {
    /// Reads a file of zones.
    pub fn parse(bytes: &[u8]) -> Result<Self, ZonesError> {
        let form = |cause: String| ZonesError::Form(cause);
        if bytes.len() > MAX_LENGTH {
            return Err(form(format!("longer than {MAX_LENGTH} bytes: name a file of zones")));
        }
        let text = str::from_utf8(bytes).map_err(|_| form("no text: name a file of zones".to_owned()))?;
        let File { zone, flow } = toml::from_str(text).map_err(|cause| form(cause.to_string()))?;
        let zones = zone.into_iter().map(WrittenZone::read).collect::<Result<Vec<_>, _>>()?;
        apart(&zones)?;
        let flows = flow.into_iter().map(|flow| flow.read(&zones)).collect::<Result<Vec<_>, _>>()?;
        twice(&zones, &flows)?;
        Ok(Self { zones, flows })
    }
}

fn wrong<T>(place: &str, message: impl Into<String>) -> Result<T, ZonesError> {
    Err(ZonesError::Wrong { place: place.to_owned(), message: message.into() })
}

impl WrittenZone {
    fn read(self) -> Result<Zone, ZonesError> {
        let Self { name, groups, addresses, domains, ports } = self;
        let place = format!("zone {name}");
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if !begins || !name.bytes().all(is_letter) || name.len() > MAX_NAME || name == OUTSIDE {
            let remedy = format!("use a letter, then letters, digits and `_`, {MAX_NAME} at most, and not `{OUTSIDE}`");
            return wrong(&place, format!("no name of a zone: {remedy}"));
        }
        let lists = [("groups", groups.len()), ("addresses", addresses.len()), ("domains", domains.len())];
        if let Some((empty, _)) = lists.into_iter().find(|(_, length)| *length == 0) {
            return wrong(&place, format!("it has no {empty}: name at least one"));
        }
        are_types(&place, domains.iter().chain(&ports))?;
        let said = |cause: String| ZonesError::Wrong { place: place.clone(), message: cause };
        let groups: Result<Vec<Name>, _> = groups.iter().map(|group| group.parse()).collect();
        let addresses: Result<Vec<Prefix>, _> = addresses.iter().map(|address| address.parse()).collect();
        let (groups, addresses) =
            (groups.map_err(|cause| said(cause.to_string()))?, addresses.map_err(|cause| said(cause.to_string()))?);
        if let Some(address) = addresses.iter().find(|address| address.is_loopback()) {
            return wrong(
                &place,
                format!("{address} has addresses of each machine's own: leave 127.0.0.0/8 and ::1 out"),
            );
        }
        Ok(Zone { name, groups, addresses, domains, ports })
    }
}

impl WrittenFlow {
    fn read(self, zones: &[Zone]) -> Result<Flow, ZonesError> {
        let Self { from, to, ports } = self;
        let place = format!("flow from {from} to {to}");
        let end = |name: &str| match zones.iter().position(|zone| zone.name == name) {
            Some(zone) => Ok(End::Zone(zone)),
            None if name == OUTSIDE => Ok(End::Outside),
            None => {
                let known = zones.iter().map(|zone| zone.name.as_str()).chain([OUTSIDE]);
                let like = nearest(name, known).join(", ");
                let like = if like.is_empty() { String::new() } else { format!(" (like it: {like})") };
                wrong(
                    &place,
                    format!("there is no zone {name}{like}: add it, or write `{OUTSIDE}` for what is in none"),
                )
            }
        };
        let (from, to) = (end(&from)?, end(&to)?);
        if from == to {
            return wrong(&place, "a zone talks to itself without a flow: list the ports in the zone's own `ports`");
        }
        if ports.is_empty() {
            return wrong(&place, "it has no ports: name at least one type of ports");
        }
        are_types(&place, ports.iter())?;
        Ok(Flow { from, to, ports })
    }
}

/// Names that a policy may have, so that nothing else gets into its text.
fn are_types<'a>(place: &str, mut names: impl Iterator<Item = &'a String>) -> Result<(), ZonesError> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let is_type = |name: &&String| {
        name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) && name.bytes().all(is_known)
    };
    match names.find(|name| !is_type(name)) {
        None => Ok(()),
        Some(name) => wrong(place, format!("`{name}` is no type: name a type of the policy, such as httpd.t")),
    }
}

/// No name, group, domain or address is in two zones.
fn apart(zones: &[Zone]) -> Result<(), ZonesError> {
    let (mut names, mut groups, mut domains) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for zone in zones {
        let place = format!("zone {}", zone.name);
        if names.insert(&zone.name, ()).is_some() {
            return wrong(&place, "there are two of this name: join them, or rename one");
        }
        for group in &zone.groups {
            if let Some(other) = groups.insert(group, &zone.name) {
                let remedy = "a node is in one zone: leave the group out of one, or split it";
                return wrong(&place, format!("the group {group} is in zone {other} already; {remedy}"));
            }
        }
        for domain in &zone.domains {
            if let Some(other) = domains.insert(domain, &zone.name) {
                let remedy =
                    "zones are told apart by domains: give each zone a domain of its own, or leave it out of both";
                return wrong(&place, format!("the domain {domain} is in zone {other} already; {remedy}"));
            }
        }
    }
    let addresses: Vec<(&str, &Prefix)> =
        zones.iter().flat_map(|zone| zone.addresses.iter().map(|address| (zone.name.as_str(), address))).collect();
    for (at, (name, address)) in addresses.iter().enumerate() {
        if let Some((other, shared)) = addresses[..at].iter().find(|(_, before)| before.overlaps(address)) {
            let place = format!("zone {name}");
            return wrong(
                &place,
                format!("{address} and {shared} of zone {other} have addresses in common: split them"),
            );
        }
    }
    match zones.len() {
        0 => wrong("zones", "there is none: write [[zone]] above each"),
        1..=MAX_ZONES if addresses.len() <= MAX_ADDRESSES => Ok(()),
        _ => wrong("zones", format!("there are at most {MAX_ZONES}, with {MAX_ADDRESSES} networks: join some")),
    }
}

/// No two flows have the same ends.
fn twice(zones: &[Zone], flows: &[Flow]) -> Result<(), ZonesError> {
    let name = |end: End| match end {
        End::Outside => OUTSIDE,
        End::Zone(zone) => &zones[zone].name,
    };
    for (at, flow) in flows.iter().enumerate() {
        if flows[..at].iter().any(|before| (before.from, before.to) == (flow.from, flow.to)) {
            let place = format!("flow from {} to {}", name(flow.from), name(flow.to));
            return wrong(&place, "it is there twice: write all its ports into one");
        }
    }
    Ok(())
}
