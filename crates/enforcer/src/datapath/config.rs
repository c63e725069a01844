//! The file of labelled networks (docs/network.md), read and checked. What depends on the policy is checked when a table is
//! made of it ([`table`](super::table)).

mod members;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::IpAddr,
    num::NonZeroU16,
    ops::Range,
    path::{Path, PathBuf},
};

use tollgate_abi::enforcer::{TG_DOI_CATEGORIES, TG_DOI_SENSITIVITIES, TG_DOIS, TG_ZONE_RANGES, TG_ZONES};
use tollgate_client::network::{Prefix, Tag, Translation};
use tollgate_policy::context::nearest;
use toml::de::DeTable;

use self::members::{At, Entry, Numbers, Wrong};
use super::{
    keys::{self, KeysError},
    ranges,
};

/// How many windows a label may be older or newer than the clock at most (`TG_SEALED_TOLERANCE`), and by default.
const MAX_TOLERANCE: u32 = 1 << 14;
const DEFAULT_TOLERANCE: u32 = 1;

/// The UDP port on which daemons ask one another for contexts, by default.
const DEFAULT_PORT: u32 = 4748;

/// The value of `unlabelled` by which packets without a label are dropped.
const REFUSE: &str = "refuse";

/// Why labelled networks cannot be put in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}; name a file of labelled networks that exists and is text", .file.display())]
    Unreadable {
        /// Path of the file.
        file: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}: {message}", .file.display())]
    Wrong {
        /// Path of the file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The entry, the value, what is wrong with it, and the remedy.
        message: String,
    },
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// The domains.
    pub dois: Vec<Doi>,
    /// The zones; empty: no packet has a label.
    pub zones: Vec<Zone>,
    /// How labels are sealed.
    pub seal: Option<Seal>,
}

/// A domain of interpretation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doi {
    /// The line of the file, from 1.
    pub line: usize,
    /// Its number in packets, not 0.
    pub number: u32,
    /// The form of labels.
    pub tag: Tag,
    /// How levels are numbered; `None`: as in the policy.
    pub translation: Option<Translation>,
}

/// Networks whose packets are treated alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// The line of the file, from 1.
    pub line: usize,
    /// Its name.
    pub name: Option<String>,
    /// Its networks. No two zones have the same one.
    pub addresses: Vec<Prefix>,
    /// The place of its domain in [`Config::dois`]; `None`: packets have no label.
    pub doi: Option<usize>,
    /// What packets get that come without a label.
    pub unlabelled: Unlabelled,
    /// The range of levels that labels from there may have.
    pub range: Option<String>,
}

/// What packets get that come without a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlabelled {
    /// The context of the policy's initial SID `unlabeled`.
    Initial,
    /// This context.
    Context(String),
    /// They are dropped.
    Refused,
}

/// How labels are sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// This machine's number in its cluster.
    pub node: u16,
    /// The file of the keys.
    pub keys: PathBuf,
    /// How many windows of 8 seconds a label may be older or newer than the clock.
    pub tolerance: u16,
    /// The UDP port on which daemons ask one another for contexts; 0: they do not.
    pub port: u16,
}

impl Config {
    /// Reads the text of a file.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Reader { text }.config().map_err(|Wrong { at, message }| ConfigError::Wrong {
            file: file.to_owned(),
            line: line_of(text, at.start),
            message,
        })
    }

    /// The port on which this machine asks others for contexts. `None`: it does not, or no packet has a sealed label.
    #[must_use]
    pub fn port(&self) -> Option<NonZeroU16> {
        let port = NonZeroU16::new(self.seal.as_ref()?.port)?;
        self.zones.iter().any(|zone| self.is_sealed(zone)).then_some(port)
    }

    /// Whether packets from an address have sealed labels.
    #[must_use]
    pub fn seals(&self, address: IpAddr) -> bool {
        let all = self.zones.iter().flat_map(|zone| zone.addresses.iter().map(move |prefix| (zone, prefix)));
        let found = all.filter(|(_, prefix)| prefix.contains(address)).max_by_key(|(_, prefix)| prefix.length());
        found.is_some_and(|(zone, _)| self.is_sealed(zone))
    }

    fn is_sealed(&self, zone: &Zone) -> bool {
        zone.doi.is_some_and(|place| self.dois[place].tag == Tag::Sealed)
    }

    /// The networks of one family of addresses, as ranges. The number is the place of the zone.
    #[must_use]
    pub fn ranges(&self, ipv4: bool) -> Vec<ranges::Range> {
        let zones = (0..).zip(&self.zones);
        let all = zones.flat_map(|(place, zone)| zone.addresses.iter().map(move |prefix| (*prefix, place)));
        let highest = if ipv4 { u32::MAX.into() } else { u128::MAX };
        ranges::of(all.filter(|(prefix, _)| prefix.first().is_ipv4() == ipv4), highest)
    }
}

/// The line of a byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn config(&self) -> Result<Config, Wrong> {
        let syntax = |cause: toml::de::Error| Wrong {
            at: cause.span().unwrap_or(0..0),
            message: format!("it is not TOML: {}", cause.message()),
        };
        let table = DeTable::parse(self.text).map_err(syntax)?;
        let root = Entry::root(self.text, &table, &["doi", "zone", "sealed"])?;
        let seal = root.table("sealed", &["node", "keys", "tolerance", "port"])?;
        let seal = seal.map(|entry| self::seal(&entry)).transpose()?;
        let dois = root.tables("doi", &["number", "tag", "levels", "categories"])?;
        let dois = self.dois(&dois, seal.is_some())?;
        let zones = root.tables("zone", &["name", "addresses", "doi", "unlabelled", "range"])?;
        let config = Config { zones: self.zones(&zones, &dois)?, dois, seal };
        for (ipv4, family) in [(true, "IPv4"), (false, "IPv6")] {
            let count = config.ranges(ipv4).len();
            if count > TG_ZONE_RANGES as usize {
                let message = format!(
                    "the zones divide {family}'s addresses into {count} ranges, and there is room for {TG_ZONE_RANGES}; \
                     join networks, or leave some out"
                );
                return Err(root.wrong(0..0, message));
            }
        }
        Ok(config)
    }

    fn line(&self, at: &Range<usize>) -> usize {
        line_of(self.text, at.start)
    }

    fn dois(&self, entries: &[Entry<'_>], seals: bool) -> Result<Vec<Doi>, Wrong> {
        at_most(entries, TG_DOIS, "domains")?;
        let mut dois: Vec<Doi> = Vec::new();
        for entry in entries {
            let number = entry.number("number", 1..=u32::MAX)?;
            let number = entry.needed("number", number, "1")?;
            if dois.iter().any(|doi| doi.number == number.value) {
                return Err(entry.value("number", &number, "another [[doi]] has it; leave one out"));
            }
            let tag = tag(entry)?;
            if tag.value == Tag::Sealed && !seals {
                let message = "labels are sealed by keys: add [sealed] with node and keys";
                return Err(entry.value("tag", &tag, message));
            }
            let translation = translation(entry, &tag)?;
            dois.push(Doi { line: self.line(&entry.at), number: number.value, tag: tag.value, translation });
        }
        Ok(dois)
    }

    fn zones(&self, entries: &[Entry<'_>], dois: &[Doi]) -> Result<Vec<Zone>, Wrong> {
        at_most(entries, TG_ZONES, "zones")?;
        let mut names = BTreeSet::new();
        let mut taken: BTreeMap<Prefix, &str> = BTreeMap::new();
        let mut zones = Vec::new();
        for entry in entries {
            let name = entry.text("name")?;
            if let Some(name) = &name {
                zone_name(entry, name, &mut names)?;
            }
            let addresses = addresses(entry, &mut taken)?;
            let doi = doi(entry, dois)?;
            let unlabelled = unlabelled(entry, doi.is_some())?;
            let range = entry.text("range")?;
            if let Some(range) = range.as_ref().filter(|_| doi.is_none()) {
                let message =
                    "it limits the levels of labels, and packets of this zone have none; leave it out, or add doi";
                return Err(entry.value("range", range, message));
            }
            let (name, range) = [name, range].map(|text| text.map(|text| text.value.to_owned())).into();
            zones.push(Zone { line: self.line(&entry.at), name, addresses, doi, unlabelled, range });
        }
        Ok(zones)
    }
}

fn at_most(entries: &[Entry<'_>], most: u32, what: &str) -> Result<(), Wrong> {
    let refused = |entry: &Entry<'_>| {
        Err(entry.wrong(entry.at.clone(), format!("there are more than {most} {what}; leave some out")))
    };
    entries.get(most as usize).map_or(Ok(()), refused)
}

fn tag(entry: &Entry<'_>) -> Result<At<Tag>, Wrong> {
    let names = Tag::ALL.map(Tag::name);
    let text = entry.text("tag")?;
    let text = entry.needed("tag", text, "\"bitmap\"")?;
    let refused = || {
        let near = nearest(text.value, names.iter().copied());
        let remedy = near.first().map_or_else(|| names.join(", "), |near| format!("write \"{near}\""));
        entry.value("tag", &text, format!("there is no such form of labels; {remedy}"))
    };
    let tag = Tag::ALL.into_iter().find(|tag| tag.name() == text.value).ok_or_else(refused)?;
    Ok(At { value: tag, at: text.at.clone() })
}

/// The numbers of a domain. With either table, the domain is translated.
fn translation(entry: &Entry<'_>, tag: &At<Tag>) -> Result<Option<Translation>, Wrong> {
    let levels = entry.numbers("levels", 0..=TG_DOI_SENSITIVITIES - 1)?;
    let categories = entry.numbers("categories", 0..=TG_DOI_CATEGORIES - 1)?;
    if levels.is_none() && categories.is_none() {
        return Ok(None);
    }
    if tag.value == Tag::Sealed {
        let message = "sealed labels have whole contexts, not numbers of levels; leave out levels and categories";
        return Err(entry.value("tag", tag, message));
    }
    let levels = distinct(entry, "levels", levels.unwrap_or_default())?;
    let categories = distinct(entry, "categories", categories.unwrap_or_default())?;
    Ok(Some(Translation { levels, categories }))
}

/// Refuses a number that two names have: what it means in a packet that comes would not be known.
fn distinct(entry: &Entry<'_>, member: &str, numbers: Numbers<'_>) -> Result<BTreeMap<String, u16>, Wrong> {
    let mut names: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, number) in &numbers {
        if let Some(other) = names.insert(number.value, name) {
            let message = format!("{other} has the same number; give each its own");
            return Err(entry.value(&format!("{member}: {name}"), number, message));
        }
    }
    Ok(names.into_iter().map(|(number, name)| (name.to_owned(), number as u16)).collect())
}

/// Names are words that people and programs can pass on.
fn zone_name<'a>(entry: &Entry<'_>, name: &At<&'a str>, names: &mut BTreeSet<&'a str>) -> Result<(), Wrong> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.value.is_empty() || !name.value.bytes().all(fits) {
        return Err(entry.value("name", name, "a name has letters, digits, `-`, `_` and `.` only; choose another"));
    }
    if !names.insert(name.value) {
        return Err(entry.value("name", name, "another [[zone]] has it; choose another"));
    }
    Ok(())
}

fn addresses<'a>(entry: &'a Entry<'_>, taken: &mut BTreeMap<Prefix, &'a str>) -> Result<Vec<Prefix>, Wrong> {
    let texts = entry.texts("addresses")?.filter(|texts| !texts.is_empty());
    let mut addresses = Vec::new();
    for text in entry.needed("addresses", texts, "[\"10.77.0.0/24\"]")? {
        let wrong = |message: String| entry.value("addresses", &text, message);
        let prefix: Prefix = text.value.parse().map_err(|cause| wrong(format!("{cause}")))?;
        if is_loopback(prefix) {
            return Err(wrong("packets there stay on this machine and need no label; leave it out".to_owned()));
        }
        if matches!(prefix.first(), IpAddr::V6(first) if prefix.length() >= 96 && first.to_ipv4_mapped().is_some()) {
            return Err(wrong("no packet has such an address; write it as an address of IPv4".to_owned()));
        }
        if let Some(other) = taken.insert(prefix, &entry.name) {
            return Err(wrong(format!("{other} has the same network; leave one out")));
        }
        addresses.push(prefix);
    }
    Ok(addresses)
}

fn is_loopback(prefix: Prefix) -> bool {
    prefix.first().is_loopback() && (prefix.length() >= 8 || prefix.first().is_ipv6())
}

/// The place of a zone's domain.
fn doi(entry: &Entry<'_>, dois: &[Doi]) -> Result<Option<usize>, Wrong> {
    let Some(number) = entry.number("doi", 1..=u32::MAX)? else { return Ok(None) };
    let place = dois.iter().position(|doi| doi.number == number.value);
    let known: Vec<String> = dois.iter().map(|doi| doi.number.to_string()).collect();
    let known = if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
    let message = format!("no [[doi]] has this number ({known}); add it, or leave doi out if packets have no label");
    place.map(Some).ok_or_else(|| entry.value("doi", &number, message))
}

fn unlabelled(entry: &Entry<'_>, labelled: bool) -> Result<Unlabelled, Wrong> {
    match entry.text("unlabelled")? {
        None => Ok(Unlabelled::Initial),
        Some(text) if text.value == REFUSE && labelled => Ok(Unlabelled::Refused),
        Some(text) if text.value == REFUSE => {
            let message = "packets of this zone have no label, so all would be dropped; add doi, or leave it out";
            Err(entry.value("unlabelled", &text, message))
        }
        Some(text) => Ok(Unlabelled::Context(text.value.to_owned())),
    }
}

fn seal(entry: &Entry<'_>) -> Result<Seal, Wrong> {
    let node = entry.number("node", 0..=u16::MAX.into())?;
    let node = entry.needed("node", node, "7")?.value as u16;
    let keys = entry.text("keys")?;
    if let Some(path) = keys.as_ref().filter(|path| !path.value.starts_with('/')) {
        return Err(entry.value("keys", path, "write the whole path, which begins with `/`"));
    }
    let keys = keys.map_or(keys::FILE, |path| path.value).into();
    let tolerance = entry.number("tolerance", 0..=MAX_TOLERANCE)?.map_or(DEFAULT_TOLERANCE, |number| number.value);
    let port = entry.number("port", 0..=u16::MAX.into())?.map_or(DEFAULT_PORT, |number| number.value);
    Ok(Seal { node, keys, tolerance: tolerance as u16, port: port as u16 })
}
