//! The networks with labels, and by how much labels make packets longer.

use tollgate_client::network::Tag;

use super::{
    config::{Config, Doi},
    prefix::Family,
    ranges,
    routes::Labelled,
};

/// What stands before a tag in a CIPSO option: kind, length, domain.
const CIPSO_HEADER: u32 = 6;
/// What stands before categories in a tag 1: kind, length, alignment, level.
const BITMAP_HEADER: u32 = 4;
/// All options of an IPv4 header, which end at a multiple of 4.
const MAX_OPTIONS: u32 = 40;
const IPV4_ALIGNMENT: u32 = 4;
/// A sealed label in an experimental option, with what pads it (TG_SEALED_OPTION). It is the same in both families.
const SEALED: u32 = 24;
/// What stands before categories in CALIPSO: kind, length, domain, sizes, level, checksum.
const CALIPSO_HEADER: u32 = 10;
/// What stands before options in a hop-by-hop header, which ends at a multiple of 8.
const HOP_BY_HOP_HEADER: u32 = 2;
const IPV6_ALIGNMENT: u32 = 8;

/// The networks whose packets have labels. `categories` is how many the policy has.
#[must_use]
pub fn networks(config: &Config, categories: usize) -> Vec<Labelled> {
    Family::ALL.into_iter().flat_map(|family| of_family(config, family, categories)).collect()
}

fn of_family(config: &Config, family: Family, categories: usize) -> Vec<Labelled> {
    let all = config.zones.iter().enumerate();
    let all = all.flat_map(|(place, zone)| zone.addresses.iter().map(move |prefix| (*prefix, place)));
    let ranges = ranges::of(all.filter(|(prefix, _)| Family::of(*prefix) == family), family.highest());
    let ends = ranges.iter().skip(1).map(|next| next.first - 1).chain([family.highest()]);
    let labelled = ranges.iter().zip(ends).filter_map(|(range, end)| {
        let doi = config.dois.get(config.zones.get(range.zone?)?.doi?)?;
        Some((range.first, end, overhead(doi, family, categories)))
    });
    labelled
        .flat_map(|(first, last, overhead)| {
            family.between(first, last).into_iter().map(move |prefix| Labelled { prefix, overhead })
        })
        .collect()
}

/// By how many bytes a domain's labels make packets longer, at most.
fn overhead(doi: &Doi, family: Family, categories: usize) -> u32 {
    let translated = doi.translation.as_ref().map(|numbers| {
        let highest = numbers.categories.values().max();
        highest.map_or(0, |highest| usize::from(*highest) + 1)
    });
    let bits = u32::try_from(translated.unwrap_or(categories)).unwrap_or(u32::MAX);
    match (family, doi.tag) {
        (_, Tag::Sealed) => SEALED,
        (Family::V4, Tag::Bitmap) => {
            (CIPSO_HEADER + BITMAP_HEADER + bits.div_ceil(8)).next_multiple_of(IPV4_ALIGNMENT).min(MAX_OPTIONS)
        }
        // They may be as long as a header has room.
        (Family::V4, Tag::Enumerated | Tag::Ranges) => MAX_OPTIONS,
        (Family::V6, _) => {
            (HOP_BY_HOP_HEADER + CALIPSO_HEADER + bits.div_ceil(32) * 4).next_multiple_of(IPV6_ALIGNMENT)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shown(text: &str, categories: usize) -> Vec<String> {
        let config = Config::parse(Path::new("/n"), text).unwrap();
        networks(&config, categories).iter().map(|own| format!("{} {}", own.prefix, own.overhead)).collect()
    }

    #[test]
    fn leaves_out_networks_whose_packets_have_no_label() {
        let text = "[[doi]]\nnumber = 5\ntag = \"bitmap\"\n[[zone]]\naddresses = [\"10.0.0.0/8\", \"fd00::/64\"]\ndoi = 5\n\
                    [[zone]]\naddresses = [\"10.128.0.0/9\", \"192.168.0.0/16\"]\n";
        assert_eq!(shown(text, 16), ["10.0.0.0/9 12", "fd00::/64 16"]);
        assert_eq!(shown("", 16), [""; 0]);
    }

    #[test]
    fn leaves_room_for_the_longest_label() {
        let of = |tag: &str, categories| {
            let zone = "[[zone]]\naddresses = [\"10.0.0.0/8\", \"fd00::/64\"]\ndoi = 5";
            shown(&format!("[sealed]\nnode = 1\n[[doi]]\nnumber = 5\ntag = \"{tag}\"\n{zone}"), categories).join(" ")
        };
        assert_eq!(of("bitmap", 0), "10.0.0.0/8 12 fd00::/64 16");
        assert_eq!(of("bitmap", 240), "10.0.0.0/8 40 fd00::/64 48");
        assert_eq!(of("bitmap", 1024), "10.0.0.0/8 40 fd00::/64 144");
        assert_eq!(of("ranges", 1024), "10.0.0.0/8 40 fd00::/64 144");
        assert_eq!(of("sealed", 1024), "10.0.0.0/8 24 fd00::/64 24");
    }
}
