//! Networks as ranges of addresses, which programs search by bisection.

use tollgate_client::network::Prefix;

/// Addresses from `first` up to that of the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first address, as a number.
    pub first: u128,
    /// What they belong to; `None`: nothing.
    pub zone: Option<usize>,
}

/// The ranges of networks of one family, sorted and disjoint. The first one begins at address 0, and `highest` is the
/// family's highest address. Where networks overlap, the longest prefix decides. No two networks may be equal.
#[must_use]
pub fn of(networks: impl Iterator<Item = (Prefix, usize)>, highest: u128) -> Vec<Range> {
    let mut networks: Vec<(u128, u128, usize)> = networks
        .map(|(prefix, zone)| {
            let (first, last) = prefix.bounds();
            (first, last, zone)
        })
        .collect();
    // Of those that begin at the same address, the larger one comes first: the others lie in it.
    networks.sort_unstable_by_key(|(first, last, _)| (*first, std::cmp::Reverse(*last)));
    let mut ranges = vec![Range { first: 0, zone: None }];
    // The networks around the current address, the largest first.
    let mut around: Vec<(u128, usize)> = Vec::new();
    for (first, last, zone) in networks {
        leave(&mut ranges, &mut around, first);
        begin(&mut ranges, first, Some(zone));
        around.push((last, zone));
    }
    leave(&mut ranges, &mut around, highest);
    ranges
}

/// Ends the networks that lie before an address.
fn leave(ranges: &mut Vec<Range>, around: &mut Vec<(u128, usize)>, address: u128) {
    while let Some((last, _)) = around.pop_if(|(last, _)| *last < address) {
        begin(ranges, last + 1, around.last().map(|(_, zone)| *zone));
    }
}

fn begin(ranges: &mut Vec<Range>, first: u128, zone: Option<usize>) {
    // A network that begins with another one hides the beginning of it.
    ranges.pop_if(|range| range.first == first);
    if ranges.last().is_none_or(|range| range.zone != zone) {
        ranges.push(Range { first, zone });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[(&str, usize)]) -> Vec<(Prefix, usize)> {
        texts.iter().map(|(text, zone)| (text.parse().unwrap(), *zone)).collect()
    }

    const IPV4: u128 = u32::MAX as u128;

    fn shown(texts: &[(&str, usize)]) -> Vec<(u128, Option<usize>)> {
        let networks = networks(texts);
        let highest = if networks.iter().all(|(prefix, _)| prefix.first().is_ipv4()) { IPV4 } else { u128::MAX };
        of(networks.into_iter(), highest).iter().map(|range| (range.first, range.zone)).collect()
    }

    /// The longest network that contains an address.
    fn longest(networks: &[(Prefix, usize)], address: u128) -> Option<usize> {
        let contains = |prefix: Prefix| {
            let (first, last) = prefix.bounds();
            (first..=last).contains(&address)
        };
        let found = networks.iter().filter(|(prefix, _)| contains(*prefix));
        found.max_by_key(|(prefix, _)| prefix.length()).map(|(_, zone)| *zone)
    }

    fn found(ranges: &[Range], address: u128) -> Option<usize> {
        ranges[ranges.partition_point(|range| range.first <= address) - 1].zone
    }

    #[test]
    fn begins_at_the_first_address_and_returns_to_what_is_around() {
        let ten = 10 << 24;
        assert_eq!(shown(&[]), [(0, None)]);
        assert_eq!(
            shown(&[("10.1.0.0/16", 1), ("10.0.0.0/8", 0)]),
            [(0, None), (ten, Some(0)), (ten + (1 << 16), Some(1)), (ten + (2 << 16), Some(0)), (11 << 24, None)]
        );
        assert_eq!(shown(&[("10.0.0.0/8", 0), ("10.0.0.0/16", 1)])[1..3], [(ten, Some(1)), (ten + (1 << 16), Some(0))]);
    }

    #[test]
    fn covers_all_addresses_up_to_the_last() {
        assert_eq!(shown(&[("0.0.0.0/0", 3)]), [(0, Some(3))]);
        assert_eq!(shown(&[("255.255.255.255", 3), ("128.0.0.0/1", 4)]).last(), Some(&(IPV4, Some(3))));
        assert_eq!(shown(&[("::/0", 3)]), [(0, Some(3))]);
        let last = u128::MAX;
        assert_eq!(
            shown(&[("::/0", 3), ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 4)]),
            [(0, Some(3)), (last, Some(4))]
        );
    }

    #[test]
    fn joins_adjacent_networks_of_one_zone() {
        assert_eq!(
            shown(&[("10.0.0.0/9", 0), ("10.128.0.0/9", 0), ("11.0.0.0/8", 1)]),
            [(0, None), (10 << 24, Some(0)), (11 << 24, Some(1)), (12 << 24, None)]
        );
    }

    #[test]
    fn finds_what_a_search_for_the_longest_network_finds() {
        let mut random = fastrand::Rng::with_seed(17);
        for _ in 0..2000 {
            let mut networks: Vec<(Prefix, usize)> = Vec::new();
            // Few bits, so that many networks overlap or touch.
            for zone in 0..random.usize(0..12) {
                let length = random.u32(0..=6);
                let first = if length == 0 { 0 } else { random.u32(0..1 << length) << (32 - length) };
                let prefix: Prefix = format!("{}/{length}", std::net::Ipv4Addr::from_bits(first)).parse().unwrap();
                if networks.iter().all(|(other, _)| *other != prefix) {
                    networks.push((prefix, zone % 4));
                }
            }
            let ranges = of(networks.iter().copied(), IPV4);
            assert_eq!(ranges[0].first, 0);
            assert!(ranges.is_sorted_by(|one, next| one.first < next.first && one.zone != next.zone), "{networks:?}");
            let edges = (0..=64).map(|place| place << 26);
            for address in edges.flat_map(|edge: u128| [edge.saturating_sub(1), edge]).filter(|edge| *edge < 1 << 32) {
                assert_eq!(found(&ranges, address), longest(&networks, address), "{address:x} in {networks:?}");
            }
        }
    }
}
