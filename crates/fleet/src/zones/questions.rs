//! What zones deny, as sanity questions: a node asks them of each policy before it puts it in force.

use tollgate_policy::server::SecurityServer;

use super::{
    End, Zones,
    world::{World, allows},
};

/// A permission that a policy with zones must deny.
struct Denied {
    source: String,
    target: String,
    class: &'static str,
    permission: &'static str,
}

impl Denied {
    /// As a line of sanity questions.
    fn line(&self) -> String {
        let Self { source, target, class, permission } = self;
        format!("{source}\t{target}\t{class}\t-{permission}")
    }

    fn is_allowed(&self, server: &mut SecurityServer<'_>) -> bool {
        allows(server, &self.source, &self.target, self.class, self.permission)
    }
}

/// The questions, a line each.
pub(super) fn text(zones: &Zones, world: &World<'_>) -> String {
    denied(zones, world).iter().map(|denied| denied.line() + "\n").collect()
}

/// Those that a policy answers wrongly.
pub(super) fn open(zones: &Zones, world: &World<'_>, server: &mut SecurityServer<'_>) -> Vec<String> {
    let lacking = zones.zones.iter().filter(|zone| world.hosts(zone).is_none());
    let lacking: Vec<String> =
        lacking.map(|zone| format!("its hosts have no type of the zone {}", zone.name)).collect();
    let allowed = denied(zones, world).into_iter().filter(|denied| denied.is_allowed(server));
    lacking.into_iter().chain(allowed.map(|denied| denied.line())).collect()
}

/// What a process of one zone must not do to those and to the hosts of another, and a claim that a host must not make.
fn denied(zones: &Zones, world: &World<'_>) -> Vec<Denied> {
    let mut all = Vec::new();
    for (number, zone) in zones.zones.iter().enumerate() {
        for source in zone.domains.iter().filter_map(|domain| world.domain(domain)) {
            for (other, apart) in zones.zones.iter().enumerate().filter(|(other, _)| *other != number) {
                let denied = |class, permission, target: &str| Denied {
                    source: source.clone(),
                    target: target.to_owned(),
                    class,
                    permission,
                };
                let hosts = world.hosts(apart);
                all.extend(hosts.iter().map(|hosts| denied("node", "recvfrom", hosts)));
                if !zones.meets(number, End::Zone(other)) {
                    let peers = apart.domains.iter().filter_map(|domain| world.domain(domain));
                    all.extend(peers.map(|peer| denied("peer", "recv", &peer)));
                    all.extend(hosts.iter().map(|hosts| denied("node", "sendto", hosts)));
                }
            }
            all.extend(ports(zones, world, number, &source));
            let strangers = world.strangers().into_iter().filter(|_| !zones.meets(number, End::Outside));
            all.extend(strangers.map(|target| Denied {
                source: source.clone(),
                target,
                class: "peer",
                permission: "recv",
            }));
        }
    }
    all
}

/// The ports to which a zone's process must not connect, and on which it must not listen: all but those that flows name.
fn ports(zones: &Zones, world: &World<'_>, zone: usize, source: &str) -> Vec<Denied> {
    let (connects, listens) = (zones.ports(zone, true), zones.ports(zone, false));
    let mut all = Vec::new();
    for (port, target) in world.ports().into_iter().filter_map(|port| Some((port, world.port(port)?))) {
        let denied =
            |class, permission| Denied { source: source.to_owned(), target: target.clone(), class, permission };
        all.extend((!connects.contains(&port)).then(|| denied("tcp_socket", "name_connect")));
        let listening = ["tcp_socket", "udp_socket"].into_iter().filter(|_| !listens.contains(&port));
        all.extend(listening.map(|class| denied(class, "name_bind")));
    }
    all
}
