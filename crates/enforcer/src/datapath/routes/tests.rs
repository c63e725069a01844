//! What must change in many layouts, and that a table of routes leads where it led before.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use fastrand::Rng;
use nix::time::{ClockId, clock_gettime};
use tollgate_client::network::Prefix;

use super::{
    super::{
        links::Device,
        netlink::{Request, messages},
        prefix::{Family, bytes},
    },
    Labelled, Plan, Routing,
    memory::Memory,
    plan,
    route::{PROTOCOL, Route},
};

/// A route in the words of `ip route`: `TYPE PREFIX WORD VALUE ...`.
fn route(text: &str) -> Route {
    let mut words = text.split(' ');
    let kind = match words.next().unwrap() {
        "unicast" => libc::RTN_UNICAST,
        "blackhole" => 6,
        other => panic!("{other}"),
    };
    let prefix: Prefix = words.next().unwrap().parse().unwrap();
    let words: Vec<&str> = words.collect();
    let word = |name: &str| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
    let number = |name: &str| word(name).map(|word| word.parse::<u32>().unwrap());
    let protocol = number("proto").unwrap_or(4) as u8;
    let fixed = [Family::of(prefix).number(), prefix.length(), 0, 0, 0, protocol, 0, kind, 0, 0, 0, 0];
    let mut request = Request::new(libc::RTM_NEWROUTE, 0, &fixed).number(15, number("table").unwrap_or(254));
    request = request.with(1, &bytes(prefix));
    for (attribute, name) in [(4, "dev"), (6, "metric")] {
        request = number(name).into_iter().fold(request, |request, value| request.number(attribute, value));
    }
    for (attribute, name) in [(5, "via"), (7, "src")] {
        let bytes = word(name).map(|word| match word.parse().unwrap() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        });
        request = bytes.into_iter().fold(request, |request, bytes| request.with(attribute, &bytes));
    }
    if let Some(hops) = word("hops") {
        let hop = |device: &str| [8, 0, 1, 0, device.parse::<u8>().unwrap(), 0, 0, 0];
        request = request.with(9, &hops.split(',').flat_map(hop).collect::<Vec<_>>());
    }
    let metrics = [(1, "lock"), (2, "mtu"), (8, "advmss")].map(|(kind, name)| Some((kind, number(name)?)));
    let metrics: Vec<_> = metrics.into_iter().flatten().collect();
    let request = if metrics.is_empty() {
        request
    } else {
        request.nested(8, |nested| metrics.iter().fold(nested, |nested, (kind, value)| nested.number(*kind, *value)))
    };
    Route::read(&messages(&request.finish(1))[0]).unwrap()
}

fn routes(text: &str) -> Vec<Route> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(route).collect()
}

/// lo, two Ethernet devices, a tunnel, and one that has no labels.
fn devices() -> Vec<Device> {
    let device = |index, arphrd, mtu| Device { index, arphrd, mtu, mtu6: mtu, ..Device::default() };
    vec![
        device(1, libc::ARPHRD_LOOPBACK, 65536),
        device(2, libc::ARPHRD_ETHER, 1500),
        device(3, libc::ARPHRD_ETHER, 1400),
        device(4, libc::ARPHRD_NONE, 1420),
        device(5, libc::ARPHRD_INFINIBAND, 2044),
    ]
}

fn routing(routes: Vec<Route>) -> Routing {
    Routing { routes, devices: devices(), suppressed: BTreeMap::new() }
}

fn labelled(prefix: &str, overhead: u32) -> Labelled {
    Labelled { prefix: prefix.parse().unwrap(), overhead }
}

/// What becomes of these routes: those of our own and those that are changed, as the test writes them.
#[track_caller]
fn becomes(networks: &[(&str, u32)], before: &str, own: &str, changed: &str) {
    let networks: Vec<_> = networks.iter().map(|(prefix, overhead)| labelled(prefix, *overhead)).collect();
    let plan = plan(&networks, &routing(routes(before)), &Memory::default());
    assert_eq!(sorted(plan.add), sorted(routes(own)), "added");
    assert_eq!(sorted(plan.change), sorted(routes(changed)), "changed");
    assert!(plan.remove.is_empty());
}

fn sorted(mut routes: Vec<Route>) -> Vec<Route> {
    routes.sort_by_key(Route::key);
    routes
}

#[test]
fn lowers_the_mtu_of_a_route_within_a_network() {
    let route = "unicast 10.0.0.0/24 dev 2 src 10.0.0.1 proto 2";
    becomes(&[("10.0.0.0/8", 12)], route, "", &format!("{route} mtu 1488"));
    becomes(&[("10.0.0.0/24", 12)], route, "", &format!("{route} mtu 1488"));
    // Its own lower MTU counts, and its other metrics stay.
    let own = "unicast 10.0.0.0/24 dev 2 advmss 900 mtu";
    becomes(&[("10.0.0.0/8", 12)], &format!("{own} 1000"), "", &format!("{own} 988"));
    becomes(&[("10.0.0.0/8", 12)], &format!("{own} 9000"), "", &format!("{own} 1488"));
}

#[test]
fn adds_a_route_towards_a_network_beside_a_wider_one() {
    let default = "unicast 0.0.0.0/0 dev 2 via 192.168.1.1 metric 100";
    let own = "dev 2 via 192.168.1.1 metric 100 mtu 1480 proto 116";
    becomes(&[("10.0.0.0/8", 20)], default, &format!("unicast 10.0.0.0/8 {own}"), "");
    // The longest prefix is the one that packets take.
    let longer = format!("{default}\nunicast 10.0.0.0/7 dev 3");
    becomes(&[("10.0.0.0/8", 20)], &longer, "unicast 10.0.0.0/8 dev 3 mtu 1380 proto 116", "");
    // Each table by itself.
    let tables = format!("{default}\nunicast 0.0.0.0/0 dev 4 table 100");
    let both = format!("unicast 10.0.0.0/8 {own}\nunicast 10.0.0.0/8 dev 4 mtu 1400 proto 116 table 100");
    becomes(&[("10.0.0.0/8", 20)], &tables, &both, "");
}

#[test]
fn keeps_the_smallest_mtu_of_several_next_hops() {
    let own = "unicast 10.0.0.0/8 hops 2,3 mtu 1388 proto 116";
    becomes(&[("10.0.0.0/8", 12)], "unicast 0.0.0.0/0 hops 2,3", own, "");
}

#[test]
fn leaves_routes_that_packets_with_labels_do_not_take() {
    for other in [
        "unicast 192.168.0.0/16 dev 2",
        "blackhole 10.1.0.0/16",
        "blackhole 0.0.0.0/0",
        "unicast 10.1.0.0/16 dev 1",
        "unicast 0.0.0.0/0 dev 5",
        "unicast ::/0 dev 2 via fe80::1 metric 1024",
        "unicast 0.0.0.0/0 dev 2\nblackhole 10.0.0.0/7",
    ] {
        becomes(&[("10.0.0.0/8", 12)], other, "", "");
    }
    becomes(&[], "unicast 0.0.0.0/0 dev 2", "", "");
}

#[test]
fn puts_a_route_of_ipv6_before_one_that_a_router_renews() {
    let onlink = "unicast fd00::/64 dev 2 metric 256 proto 2";
    becomes(&[("fd00::/8", 32)], onlink, "unicast fd00::/64 dev 2 metric 255 proto 116 mtu 1468 lock 4", "");
    let default = "unicast ::/0 dev 2 via fe80::1 metric 1024 proto 9";
    becomes(
        &[("fd00::/8", 32)],
        default,
        "unicast fd00::/8 dev 2 via fe80::1 metric 1024 proto 116 mtu 1468 lock 4",
        "",
    );
    // Nothing comes before this one.
    becomes(&[("fd00::/8", 32)], "unicast fd00::/64 dev 2 metric 1", "", "unicast fd00::/64 dev 2 metric 1 mtu 1468");
    // There is another one with the number that it would get.
    let two = "unicast fd00::/64 dev 5 metric 9\nunicast fd00::/64 dev 2 metric 10";
    becomes(&[("fd00::/8", 32)], two, "", "unicast fd00::/64 dev 2 metric 10 mtu 1468");
    // The same network on two devices.
    let both = "unicast fe80::/64 dev 2 metric 256 proto 2\nunicast fe80::/64 dev 3 metric 256 proto 2";
    let own = "unicast fe80::/64 dev 2 metric 255 proto 116 mtu 1468 lock 4\nunicast fe80::/64 dev 3 metric 255 proto 116 mtu 1368 lock 4";
    becomes(&[("fe80::/10", 32)], both, own, "");
}

#[test]
fn keeps_the_least_mtu_of_ipv6_and_shortens_segments_instead() {
    let onlink = "unicast fd00::/64 dev 3 metric 256 proto 2";
    let own = "unicast fd00::/64 dev 3 metric 255 proto 116 lock 4 mtu 1280 advmss";
    becomes(&[("fd00::/8", 144)], onlink, &format!("{own} 1196"), "");
    becomes(&[("fd00::/8", 144)], &format!("{onlink} advmss 900"), &format!("{own} 900"), "");
    // Somebody has chosen less than IPv6 may have.
    becomes(
        &[("fd00::/8", 144)],
        &format!("{onlink} mtu 1200"),
        &format!("{} mtu 1056", own.split(" mtu").next().unwrap()),
        "",
    );
}

#[test]
fn adds_no_route_where_a_rule_would_take_it_for_another() {
    let mut routing = routing(routes("unicast 0.0.0.0/0 dev 2"));
    routing.suppressed.insert((Family::V4, 254), 0);
    assert!(plan(&[labelled("10.0.0.0/8", 12)], &routing, &Memory::default()).is_empty());
}

#[test]
fn follows_a_route_that_was_renewed_and_one_that_has_gone() {
    let networks = [labelled("10.0.0.0/8", 12)];
    let before = "unicast 10.0.0.0/24 dev 2\nunicast 0.0.0.0/0 dev 2 via 192.168.1.1";
    let first = plan(&networks, &routing(routes(before)), &Memory::default());
    // DHCP has another router, and gave the network an MTU.
    let renewed = routes("unicast 10.0.0.0/24 dev 2 mtu 1400\nunicast 0.0.0.0/0 dev 3 via 192.168.2.1");
    let second = plan(&networks, &routing([renewed, first.add.clone()].concat()), &first.memory);
    assert_eq!(second.remove, first.add);
    assert_eq!(second.add, routes("unicast 10.0.0.0/8 dev 3 via 192.168.2.1 mtu 1388 proto 116"));
    assert_eq!(second.change, routes("unicast 10.0.0.0/24 dev 2 mtu 1388"));
    // The end restores what DHCP gave.
    let now = routes("unicast 10.0.0.0/24 dev 2 mtu 1388\nunicast 0.0.0.0/0 dev 3 via 192.168.2.1");
    let last = plan(&[], &routing([now, second.add.clone()].concat()), &second.memory);
    assert_eq!((last.remove, last.change), (second.add, routes("unicast 10.0.0.0/24 dev 2 mtu 1400")));
    assert!(last.memory.is_empty());
    // Without the default route, nothing leads to the network.
    let gone = plan(&networks, &routing(first.add.clone()), &first.memory);
    assert_eq!((gone.remove, gone.add), (first.add, vec![]));
}

#[test]
fn remembers_across_a_restart() {
    let networks = [labelled("10.0.0.0/8", 12), labelled("fd00::/8", 16)];
    let before =
        "unicast 10.0.0.0/24 dev 2\nunicast 10.1.0.0/24 dev 2 mtu 1000 metric 7\nunicast fd00::/64 dev 2 metric 1";
    let Plan { memory, .. } = plan(&networks, &routing(routes(before)), &Memory::default());
    assert_eq!(memory.to_lines().lines().count(), 3);
    assert_eq!(Memory::from_lines(&memory.to_lines()), memory);
    assert!(Memory::from_lines("254 10.0.0.0/24 0 0 0 00 0\n\nnothing\n254 ten 0 0 0 00 0 1").is_empty());
}

/// What the kernel does with a plan.
fn applied(routes: &[Route], plan: &Plan) -> Vec<Route> {
    let mut after: Vec<Route> = routes.iter().filter(|route| !plan.remove.contains(route)).cloned().collect();
    for new in &plan.change {
        *after.iter_mut().find(|route| route.key() == new.key()).unwrap() = new.clone();
    }
    for new in &plan.add {
        assert!(!after.iter().any(|route| route.key() == new.key()), "there is one already: {new:?}");
    }
    after.extend(plan.add.iter().cloned());
    after
}

/// The route that a packet takes in a table.
fn taken(routes: &[Route], table: u32, to: Prefix) -> Option<&Route> {
    let candidates = routes.iter().filter(|route| route.table == table && to.is_in(route.prefix));
    candidates.max_by_key(|route| (route.prefix.length(), std::cmp::Reverse(route.priority())))
}

/// Few bits, so that prefixes meet.
fn random_prefix(random: &mut Rng, family: Family, shortest: u8) -> Prefix {
    let bits = random.u8(..);
    let address: IpAddr = match family {
        Family::V4 => [10, bits, 0, 0].into(),
        Family::V6 => [0xfd00 | u16::from(bits), 0, 0, 0, 0, 0, 0, 0].into(),
    };
    Prefix::new(address, random.u8(shortest..=16))
}

fn random_routes(random: &mut Rng) -> Vec<Route> {
    let mut found = BTreeMap::new();
    for _ in 0..random.usize(1..12) {
        let family = random.choice(Family::ALL).unwrap();
        let prefix =
            if random.u8(..4) == 0 { Prefix::new("::".parse().unwrap(), 0) } else { random_prefix(random, family, 8) };
        let prefix = if prefix.length() == 0 && family == Family::V4 { "0.0.0.0/0".parse().unwrap() } else { prefix };
        let metric = random.u32(if family == Family::V4 { 0..3 } else { 1..4 });
        let kind = if random.u8(..5) == 0 { "blackhole" } else { "unicast" };
        let mut text = format!("{kind} {prefix} table {} proto 3", random.u32(253..255));
        if metric > 0 {
            text += &format!(" metric {metric}");
        }
        text += &match (kind, family) {
            ("blackhole", _) => String::new(),
            (_, Family::V4) if random.bool() => format!(" dev {} via 10.0.0.1", random.u8(1..6)),
            (_, Family::V6) if random.bool() => format!(" dev {} via fe80::1", random.u8(1..6)),
            _ if random.bool() => format!(" hops {},{}", random.u8(2..5), random.u8(1..6)),
            _ => format!(" dev {}", random.u8(1..6)),
        };
        if random.bool() {
            text += &format!(" mtu {}", random.u32(600..2000));
        }
        let route = route(&text);
        // Of several with one priority, a packet takes either.
        found.insert((route.table, route.prefix, route.priority()), route);
    }
    found.into_values().collect()
}

fn random_networks(random: &mut Rng) -> Vec<Labelled> {
    let mut networks: Vec<Labelled> = Vec::new();
    for _ in 0..random.usize(..6) {
        let family = random.choice(Family::ALL).unwrap();
        let prefix = random_prefix(random, family, 6);
        if !networks.iter().any(|own| prefix.is_in(own.prefix) || own.prefix.is_in(prefix)) {
            networks.push(Labelled { prefix, overhead: random.u32(1..6) * 8 });
        }
    }
    networks
}

/// The MTU of what a packet takes, as far as devices have labels.
fn mtu(route: &Route) -> u32 {
    let with = devices().into_iter().filter(|device| [2, 3, 4].contains(&device.index));
    let device = with.filter(|device| route.devices.contains(&device.index)).map(|device| device.mtu).min();
    device.unwrap_or(u32::MAX).min(route.mtu().unwrap_or(u32::MAX))
}

/// Checks all destinations of a family in both tables, before and after.
fn lead_alike(before: &[Route], after: &[Route], networks: &[Labelled]) {
    for (table, bits) in [253, 254].into_iter().flat_map(|table| (0..=255).map(move |bits| (table, bits))) {
        for to in [format!("10.{bits}.0.1/32"), format!("fd{bits:02x}::1/128")] {
            let to: Prefix = to.parse().unwrap();
            let (Some(old), new) = (taken(before, table, to), taken(after, table, to)) else {
                assert!(taken(after, table, to).is_none(), "{to} leads somewhere");
                continue;
            };
            let new = new.unwrap_or_else(|| panic!("{to} leads nowhere any more"));
            let without = |route: Route, metric| route.with_metric(metric, None);
            let plain = |route: &Route| [1, 2, 8].into_iter().fold(route.own("::/0".parse().unwrap(), 0), without);
            assert_eq!(plain(new), plain(old), "{to} leads elsewhere");
            let overhead = networks.iter().find(|network| to.is_in(network.prefix)).map_or(0, |own| own.overhead);
            let has_labels = old.is_unicast && mtu(&old.clone().with_mtu(None)) != u32::MAX;
            let least = if Family::of(to) == Family::V6 && mtu(old) >= 1280 { 1280 } else { 0 };
            let expected = if has_labels { (mtu(old) - overhead).max(least) } else { mtu(old) };
            assert_eq!(mtu(new), expected, "{to}\nfrom {old:?}\nto {new:?}");
        }
    }
}

#[test]
fn leads_packets_where_they_went_with_room_for_their_labels() {
    let mut random = Rng::with_seed(17);
    let (mut own, mut changed) = (0, 0);
    for _ in 0..2000 {
        let before = random_routes(&mut random);
        let (mut now, mut memory) = (before.clone(), Memory::default());
        // One set of networks after another, as reloads bring them.
        for _ in 0..2 {
            let networks = random_networks(&mut random);
            let plan = plan(&networks, &routing(now.clone()), &memory);
            (own, changed) = (own + plan.add.len(), changed + plan.change.len());
            (now, memory) = (applied(&now, &plan), plan.memory.clone());
            lead_alike(&before, &now, &networks);
            assert!(super::plan(&networks, &routing(now.clone()), &memory).is_empty(), "it does not come to rest");
        }
        let last = plan(&[], &routing(now.clone()), &memory);
        assert_eq!(applied(&now, &last), before);
        assert!(before.iter().all(|route| route.protocol != PROTOCOL));
    }
    assert!(own > 1000 && changed > 1000, "{own} {changed}");
}

/// A router with a full table: networks within labelled ones, and labelled ones within networks.
#[test]
fn plans_for_a_hundred_thousand_routes_in_seconds() {
    let four = (0..50_000).map(|number| format!("unicast 10.{}.{}.0/24 dev 2", number / 250, number % 250));
    let six = (0..50_000).map(|number| format!("unicast fd00:{number:x}::/32 dev 2 metric 1024"));
    let before: Vec<Route> = four.chain(six).map(|text| route(&text)).collect();
    let inside = (0..1000).map(|number| labelled(&format!("10.{}.{}.128/25", number % 100, number / 100), 24));
    let around = ["10.128.0.0/9", "fd00::/16"].map(|prefix| labelled(prefix, 24));
    let networks: Vec<_> = inside.chain(around).collect();
    // Processor time: other tests run meanwhile. Comparing each with each would take minutes.
    let used = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let began = used();
    let plan = plan(&networks, &routing(before), &Memory::default());
    let took = used() - began;
    assert!(took < Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 5 }), "{took:?}");
    assert_eq!((plan.add.len(), plan.change.len()), (1000 + 50_000, 72 * 250));
}
