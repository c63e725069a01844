//! Zones of a fleet (docs/fleet.md): each has groups of nodes and domains, and what crosses from one to another is named.
//!
//! Zones take permissions away, and give none: what a policy with zones allows, the policy without them allows as well.
//! All groups get the same policy, because machines that exchange sealed labels need that. So a process is in the zone of
//! its domain, and a host in the zone of its address. Whatever is in no zone is outside.

mod crossings;
mod file;
mod prefix;
mod questions;
mod statements;
#[cfg(test)]
mod tests;
mod world;

use std::fmt;

use serde::Serialize;
use tollgate_policy::built::{Built, BuiltError};

pub use self::{
    crossings::{Crossing, Port, Way},
    prefix::Prefix,
};
use crate::name::Name;

/// What is not in a zone, as the file names it.
const OUTSIDE: &str = "outside";

/// The zones of a fleet, and what crosses between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zones {
    zones: Vec<Zone>,
    flows: Vec<Flow>,
}

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Zone {
    /// Its name: a letter, then letters, digits and `_`.
    pub name: String,
    /// The groups of its nodes.
    pub groups: Vec<Name>,
    /// The addresses of its nodes.
    #[serde(serialize_with = "texts")]
    pub addresses: Vec<Prefix>,
    /// The types of its processes.
    pub domains: Vec<String>,
    /// The types of ports by which its own processes connect to one another.
    pub ports: Vec<String>,
}

/// What may cross: connections from one zone to another. Packets go both ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    from: End,
    to: End,
    /// The types of the ports.
    ports: Vec<String>,
}

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// What is in no zone.
    Outside,
    /// The zone of this number.
    Zone(usize),
}

/// Why zones cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZonesError {
    /// The file is not of the form that zones have.
    #[error("{0}")]
    Form(String),
    /// Something in it has no meaning.
    #[error("{place}: {message}")]
    Wrong {
        /// The zone, or the flow.
        place: String,
        /// What is wrong, and the remedy.
        message: String,
    },
    /// The policy lacks something that zones need.
    #[error("the policy {0}")]
    Policy(String),
    /// The policy cannot be read.
    #[error(transparent)]
    Built(#[from] BuiltError),
}

/// What a policy makes of zones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The zones.
    pub zones: Vec<Zone>,
    /// What crosses.
    pub crossings: Vec<Crossing>,
    /// What the policy allows and zones deny: sanity questions that it answers wrongly. Empty: it was built with them.
    pub open: Vec<String>,
}

impl Zones {
    /// The statements that put these zones into a policy, in CIL. They fit the policy with them, too.
    pub fn statements(&self, policy: &[u8]) -> Result<String, ZonesError> {
        let built = Built::from_bytes(policy)?;
        Ok(statements::write(self, &world::World::of(self, &built.policy)?))
    }

    /// What a policy makes of these zones.
    pub fn report(&self, policy: &[u8]) -> Result<Report, ZonesError> {
        let built = Built::from_bytes(policy)?;
        let world = world::World::of(self, &built.policy)?;
        let crossings = crossings::all(self, &world, &mut built.server()?);
        let open = questions::open(self, &world, &mut built.server()?);
        Ok(Report { zones: self.zones.clone(), crossings, open })
    }

    /// The sanity questions by which a node holds its policy to these zones.
    pub fn questions(&self, policy: &[u8]) -> Result<String, ZonesError> {
        let built = Built::from_bytes(policy)?;
        Ok(questions::text(self, &world::World::of(self, &built.policy)?))
    }

    /// Whether some zone has this group.
    #[must_use]
    pub fn has(&self, group: &Name) -> bool {
        self.zones.iter().any(|zone| zone.groups.contains(group))
    }

    fn name(&self, end: End) -> &str {
        match end {
            End::Outside => OUTSIDE,
            End::Zone(zone) => &self.zones[zone].name,
        }
    }

    /// Whether packets pass between a zone and another one, or the outside: connections cross in one direction at least.
    fn meets(&self, zone: usize, other: End) -> bool {
        let ends = [(End::Zone(zone), other), (other, End::Zone(zone))];
        other == End::Zone(zone) || self.flows.iter().any(|flow| ends.contains(&(flow.from, flow.to)))
    }

    /// The types of the ports that a zone's processes may connect to (`from`), or listen on.
    fn ports(&self, zone: usize, from: bool) -> Vec<&str> {
        let is_own = |flow: &&Flow| (if from { flow.from } else { flow.to }) == End::Zone(zone);
        let flows = self.flows.iter().filter(is_own).flat_map(|flow| &flow.ports);
        let mut ports: Vec<&str> = self.zones[zone].ports.iter().chain(flows).map(String::as_str).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

fn texts<T: fmt::Display, S: serde::Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(list.iter().map(T::to_string))
}
