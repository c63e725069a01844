//! Routes in an order in which those of a network are found without looking at all: a router can have a million.

use std::collections::BTreeSet;

use tollgate_client::network::Prefix;

use super::{super::prefix::Family, route::Route};

/// A prefix as it is ordered: those within another one follow it.
type Rank = (Family, u128, u8);
/// What distinguishes routes of one priority: table, destinations, type of service, sources.
type Place = (u32, Prefix, u8, Vec<u8>);

fn rank(prefix: Prefix) -> Rank {
    (Family::of(prefix), prefix.bounds().0, prefix.length())
}

fn place(route: &Route) -> Place {
    (route.table, route.prefix, route.tos(), route.source())
}

/// Routes, ordered. Those with the same prefix are as they came.
pub(super) struct Ordered {
    routes: Vec<Route>,
    priorities: BTreeSet<(Place, u32)>,
}

impl Ordered {
    pub(super) fn of(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| rank(route.prefix));
        // What IPv4 is asked nothing of.
        let six = routes.iter().filter(|route| Family::of(route.prefix) == Family::V6);
        let priorities = six.map(|route| (place(route), route.priority())).collect();
        Self { routes, priorities }
    }

    /// Those that lead nowhere else than into a network.
    pub(super) fn within(&self, network: Prefix) -> &[Route] {
        let first = self.routes.partition_point(|route| rank(route.prefix) < rank(network));
        let last = (Family::of(network), network.bounds().1, u8::MAX);
        let count = self.routes[first..].partition_point(|route| rank(route.prefix) <= last);
        &self.routes[first..first + count]
    }

    /// Those that lead to the whole network.
    pub(super) fn around(&self, network: Prefix) -> impl Iterator<Item = &Route> {
        (0..=network.length()).flat_map(move |length| self.to(Prefix::new(network.first(), length)))
    }

    /// Those with exactly this prefix.
    fn to(&self, prefix: Prefix) -> &[Route] {
        let first = self.routes.partition_point(|route| rank(route.prefix) < rank(prefix));
        let count = self.routes[first..].partition_point(|route| route.prefix == prefix);
        &self.routes[first..first + count]
    }

    /// Whether there is one like this of IPv6, but with another priority.
    pub(super) fn has(&self, route: &Route, priority: u32) -> bool {
        self.priorities.contains(&(place(route), priority))
    }
}
