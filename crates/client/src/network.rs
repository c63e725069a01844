//! Labels in packets: which networks have them, in which form, and what became of packets.

mod fate;
mod flow;
mod prefix;
mod trace;

use std::{collections::BTreeMap, fmt, net::IpAddr};

use serde::{Deserialize, Serialize};

pub use fate::{FATES, Fate};
pub use flow::{Flow, Flows};
pub use prefix::{Prefix, PrefixError};
pub use trace::Traced;

/// In which form packets have labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tag {
    /// CIPSO's tag 1 in IPv4, CALIPSO in IPv6: a sensitivity, and categories as a bitmap.
    Bitmap,
    /// CIPSO's tag 2 in IPv4, CALIPSO in IPv6: a sensitivity, and categories as a list.
    Enumerated,
    /// CIPSO's tag 5 in IPv4, CALIPSO in IPv6: a sensitivity, and categories as ranges.
    Ranges,
    /// Tollgate's own label in both: a whole context, sealed by a key.
    Sealed,
}

impl Tag {
    /// All tags.
    pub const ALL: [Self; 4] = [Self::Bitmap, Self::Enumerated, Self::Ranges, Self::Sealed];

    /// Its name in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Enumerated => "enumerated",
            Self::Ranges => "ranges",
            Self::Sealed => "sealed",
        }
    }

    /// Its number in CIPSO options (`TG_TAG_...` in netlabel.h).
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Bitmap => 1,
            Self::Enumerated => 2,
            Self::Ranges => 5,
            Self::Sealed => 129,
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How packets number what the policy names. What is not listed cannot be sent, and is not accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Translation {
    /// The packet's number of each sensitivity, by the policy's name.
    pub levels: BTreeMap<String, u16>,
    /// The packet's number of each category, by the policy's name.
    pub categories: BTreeMap<String, u16>,
}

/// A domain of interpretation: a numbering of levels that hosts have agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doi {
    /// Its number in packets.
    pub number: u32,
    /// The form of labels.
    pub tag: Tag,
    /// How levels are numbered; `None`: as in the policy.
    pub translation: Option<Translation>,
}

/// Networks whose packets are treated alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its networks. An address belongs to the longest one that contains it, in whatever zone that is.
    pub addresses: Vec<Prefix>,
    /// The number of the domain of its packets' labels; `None`: packets have no label.
    pub doi: Option<u32>,
    /// The context of packets that come without a label; `None`: they are dropped.
    pub unlabelled: Option<String>,
    /// The levels between which labels from there must be; `None`: all.
    pub range: Option<String>,
}

/// How this machine seals labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// This machine's number in its cluster.
    pub node: u16,
    /// Numbers of the keys. The first one seals, all of them open.
    pub keys: Vec<u8>,
    /// How many windows of 8 seconds a label may be older or newer than the clock.
    pub tolerance: u16,
}

/// Contexts of other machines that sealed labels name: what was asked of them, and what they asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    /// The UDP port.
    pub port: u16,
    /// Why it is not open; `None`: it is.
    pub closed: Option<String>,
    /// Contexts that this machine has asked for.
    pub asked: u64,
    /// Those that it has learned.
    pub learned: u64,
    /// Those that nobody has told it in time.
    pub unanswered: u64,
    /// Answers that were no context, or a context that this machine does not take.
    pub refused: u64,
    /// Questions of other machines that it has answered.
    pub answered: u64,
}

/// A network device whose packets have no labels, though those of its networks should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlabelledDevice {
    /// Its name.
    pub device: String,
    /// The number of its network namespace: that of `ls -lL /proc/PID/ns/net`.
    pub namespace: u64,
    /// A process that was seen in the namespace; 0: none, as where only a mount keeps it.
    pub process: u32,
    /// What is wrong.
    pub why: String,
    /// What helps.
    pub remedy: String,
}

/// The network namespaces in which packets are labelled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespaces {
    /// How many there are.
    pub labelled: u64,
    /// How many there can be. Half of them are for namespaces that no user has made for himself.
    pub most: u64,
    /// Sockets that confined processes did not get because there were too many.
    pub denied: u64,
}

/// What is in force, and what became of packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The file that says it. It need not exist.
    pub file: String,
    /// The domains.
    pub dois: Vec<Doi>,
    /// The zones; empty: no packet has a label.
    pub zones: Vec<Zone>,
    /// How labels are sealed; `None`: no label is sealed or opened.
    pub seal: Option<Seal>,
    /// Contexts of other machines; `None`: nobody is asked for them.
    #[serde(default)]
    pub contexts: Option<Contexts>,
    /// Network namespaces.
    #[serde(default)]
    pub namespaces: Namespaces,
    /// Devices whose packets have no labels.
    #[serde(default)]
    pub devices: Vec<UnlabelledDevice>,
    /// How many more there are.
    #[serde(default)]
    pub devices_left_out: u64,
    /// Packets since enforcement began, by the names of [`FATES`].
    pub packets: BTreeMap<String, u64>,
}

impl Report {
    /// The zone of an address, with the network that decides; `None`: packets from and to there are left alone.
    #[must_use]
    pub fn zone_of(&self, address: IpAddr) -> Option<(&Zone, Prefix)> {
        let all = self.zones.iter().flat_map(|zone| zone.addresses.iter().map(move |prefix| (zone, *prefix)));
        all.filter(|(_, prefix)| prefix.contains(address)).max_by_key(|(_, prefix)| prefix.length())
    }

    /// How many packets had a fate.
    #[must_use]
    pub fn count(&self, fate: &Fate) -> u64 {
        self.packets.get(fate.name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tags_as_packets_have_them() {
        let header = include_str!("../../netlabel/bpf/netlabel.h");
        for tag in Tag::ALL {
            let line = format!("#define TG_TAG_{} {}u", tag.name().to_uppercase(), tag.number());
            assert!(header.lines().any(|own| own == line), "netlabel.h does not say: {line}");
        }
    }

    #[test]
    fn finds_the_zone_of_the_longest_network() {
        let zone = |name: &str, addresses: &[&str]| Zone {
            name: Some(name.to_owned()),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            doi: None,
            unlabelled: None,
            range: None,
        };
        let report = Report {
            zones: vec![zone("a", &["10.0.0.0/8", "10.1.2.3"]), zone("b", &["10.1.0.0/16", "::/0"])],
            ..Report::default()
        };
        let of = |address: &str| {
            let found = report.zone_of(address.parse().unwrap());
            found.map(|(zone, prefix)| format!("{} {prefix}", zone.name.as_deref().unwrap()))
        };
        assert_eq!(of("10.2.0.1").as_deref(), Some("a 10.0.0.0/8"));
        assert_eq!(of("10.1.2.4").as_deref(), Some("b 10.1.0.0/16"));
        assert_eq!(of("10.1.2.3").as_deref(), Some("a 10.1.2.3"));
        assert_eq!(of("fd00::1").as_deref(), Some("b ::/0"));
        assert_eq!(of("11.0.0.1"), None);
    }
}
