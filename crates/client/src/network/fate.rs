//! What becomes of packets (`enum tg_fate`), for people and for programs.

use tollgate_abi::enforcer::{
    TG_DROPPED_DOI, TG_DROPPED_EGRESS, TG_DROPPED_FORGED, TG_DROPPED_FRAGMENT, TG_DROPPED_FULL, TG_DROPPED_GENERATION,
    TG_DROPPED_IDENTIFIER, TG_DROPPED_KEY, TG_DROPPED_MALFORMED, TG_DROPPED_MEMORY, TG_DROPPED_NO_CONTEXT,
    TG_DROPPED_NO_LEVEL, TG_DROPPED_NO_ROOM, TG_DROPPED_RANGE, TG_DROPPED_SEAL, TG_DROPPED_STRIPPED,
    TG_DROPPED_UNMAPPED, TG_DROPPED_WINDOW, TG_PACKET_ACCEPTED, TG_PACKET_LABELLED, TG_PACKET_LOCAL, TG_PACKET_PLAIN,
    TG_PACKET_UNLABELLED,
};

/// What may become of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// Its number in `enum tg_fate`, and in the map `packets`.
    pub number: u32,
    /// Its name for programs: the one in C without `TG_` and `PACKET_`.
    pub name: &'static str,
    /// Its name for people.
    pub text: &'static str,
    /// What an administrator can do about it; empty: nothing is wrong.
    pub remedy: &'static str,
}

const fn fate(number: u32, name: &'static str, text: &'static str, remedy: &'static str) -> Fate {
    Fate { number, name, text, remedy }
}

/// All fates, by number.
pub const FATES: &[Fate] = &[
    fate(TG_PACKET_LABELLED, "labelled", "sent with a label", ""),
    fate(TG_PACKET_PLAIN, "plain", "sent without a label, as their zones say", ""),
    fate(TG_PACKET_LOCAL, "local", "to this machine itself, labelled beside the packet", ""),
    fate(TG_PACKET_ACCEPTED, "accepted", "came with a label, which was taken off", ""),
    fate(TG_PACKET_UNLABELLED, "unlabelled", "came without a label", ""),
    fate(
        TG_DROPPED_NO_CONTEXT,
        "dropped_no_context",
        "sent by a context that the policy in force lacks",
        "the policy must keep contexts that processes have: `tollgate ps` shows them, then restart these processes",
    ),
    fate(
        TG_DROPPED_NO_LEVEL,
        "dropped_no_level",
        "sent at a level that the domain cannot write",
        "list the level in the domain's `levels` and `categories`, or choose a tag that can hold the categories",
    ),
    fate(
        TG_DROPPED_NO_ROOM,
        "dropped_no_room",
        "sent with no room for the label",
        "the program sets other IP options or ignores the route's MTU, the level has many categories (`tag = \"ranges\"` needs \
         less room), or packets are longer than 64 KiB (BIG TCP: `ip link set DEVICE gso_max_size 65536`)",
    ),
    fate(
        TG_DROPPED_FORGED,
        "dropped_forged",
        "sent with a label that the process has set itself",
        "find the process by `tollgate audit`; only Tollgate writes labels",
    ),
    fate(
        TG_DROPPED_EGRESS,
        "dropped_egress",
        "the policy denies sending them",
        "`tollgate audit` has the denials, `tollgate explain` says what would allow them",
    ),
    fate(
        TG_DROPPED_MALFORMED,
        "dropped_malformed",
        "came with options or a label that cannot be read",
        "look at the sender: no host of good faith sends them",
    ),
    fate(
        TG_DROPPED_DOI,
        "dropped_doi",
        "came with a label of another domain than their zone's",
        "give the zone the sender's `doi`, or set the sender's domain to the zone's",
    ),
    fate(
        TG_DROPPED_STRIPPED,
        "dropped_stripped",
        "came without a label, which their zone demands",
        "a router between may take options off, or the sender has no labels; `unlabelled` can give a context instead",
    ),
    fate(
        TG_DROPPED_RANGE,
        "dropped_range",
        "came with a level that their zone may not claim",
        "widen the zone's `range` if its hosts may claim that level",
    ),
    fate(
        TG_DROPPED_UNMAPPED,
        "dropped_unmapped",
        "came with a level that the policy does not have",
        "list the number in the domain's `levels` or `categories`, or add the level to the policy",
    ),
    fate(
        TG_DROPPED_FULL,
        "dropped_full",
        "came with a new label when there was no place left",
        "limit the levels of zones by `range`: somebody may be sending ever new ones",
    ),
    fate(
        TG_DROPPED_FRAGMENT,
        "dropped_fragment",
        "came as fragments with different labels",
        "look at the sender: no host of good faith sends them",
    ),
    fate(
        TG_DROPPED_KEY,
        "dropped_key",
        "came with a label sealed by a key that is not valid here",
        "copy the file of keys to both machines and reload both; `tollgate net doi` lists the keys' numbers",
    ),
    fate(
        TG_DROPPED_WINDOW,
        "dropped_window",
        "came too late, or the clocks differ",
        "synchronize the clocks (NTP), or raise `tolerance`; otherwise somebody replays packets",
    ),
    fate(
        TG_DROPPED_GENERATION,
        "dropped_generation",
        "came from a machine with another policy in force",
        "put the same built policy in force on all machines of the cluster",
    ),
    fate(
        TG_DROPPED_SEAL,
        "dropped_seal",
        "came with a label that is forged, changed, or of another flow",
        "a translation of addresses between may change packets; or keys of one number differ, or somebody forges",
    ),
    fate(
        TG_DROPPED_IDENTIFIER,
        "dropped_identifier",
        "came with a context that is not known here yet",
        "they are sent again once it is known; if it lasts, look whether the sender's daemon runs",
    ),
    fate(
        TG_DROPPED_MEMORY,
        "dropped_memory",
        "the kernel could not make room for a label, or read the packet",
        "look for a lack of memory in the kernel's log, and at the MTU of the device",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_every_fate_of_the_kernels_half() {
        let header = include_str!("../../../abi/datapath.h");
        let words = header.split(|char: char| !(char.is_ascii_uppercase() || char == '_'));
        let names: Vec<&str> =
            words.filter(|word| word.starts_with("TG_PACKET_") || word.starts_with("TG_DROPPED_")).collect();
        assert!(names.len() > 20, "{names:?}");
        let named: Vec<String> = FATES
            .iter()
            .map(|fate| {
                let kind = if fate.name.starts_with("dropped_") { "TG_" } else { "TG_PACKET_" };
                format!("{kind}{}", fate.name.to_uppercase())
            })
            .collect();
        assert_eq!(named, names, "left: FATES, right: enum tg_fate");
        assert!(FATES.iter().zip(0..).all(|(fate, number)| fate.number == number));
    }

    #[test]
    fn says_what_to_do_about_each_packet_that_is_dropped() {
        for Fate { name, remedy, .. } in FATES {
            assert_eq!(name.starts_with("dropped_"), !remedy.is_empty(), "{name}");
        }
    }
}
