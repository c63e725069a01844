//! Subordinate uids (subuid(5)). A user may give them to processes and files in user namespaces, and has one share with
//! all of them.

use std::{collections::HashMap, fs, os::unix::fs::MetadataExt};

use tollgate_abi::enforcer::tg_subordinate;

use crate::shares::{Shares, users};

const FILE: &str = "/etc/subuid";

/// The version of the file that was last read: when it was changed, and its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Version {
    inode: u64,
    changed: (i64, i64),
    length: u64,
}

/// The uids of users in the machine's file.
#[derive(Debug, Default)]
pub(crate) struct Subordinates {
    read: Option<Version>,
}

impl Subordinates {
    /// Updates the programs if the file has changed. Returns a message if there is something to report.
    pub(crate) fn look(&mut self, shares: &Shares) -> Option<String> {
        let version = fs::metadata(FILE).map_or_else(
            |_| Version::default(),
            |file| Version { inode: file.ino(), changed: (file.mtime(), file.mtime_nsec()), length: file.len() },
        );
        if self.read.replace(version) == Some(version) {
            return None;
        }
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let without = shares.set_subordinates(&ranges(&text(FILE), &users(&text("/etc/passwd"))));
        (without > 0).then(|| {
            format!("{FILE}: there is no room for {without} ranges: each of their uids has a share of its own")
        })
    }
}

/// The ranges of a file, sorted. If two overlap, the first to begin has the uids. Root's own uids belong to no other
/// user.
fn ranges(text: &str, users: &HashMap<u32, String>) -> Vec<tg_subordinate> {
    let numbers: HashMap<&str, u32> = users.iter().map(|(number, name)| (name.as_str(), *number)).collect();
    let range = |line: &str| {
        let mut words = line.trim().split(':');
        let name = words.next()?;
        let user = name.parse().ok().or_else(|| numbers.get(name).copied()).filter(|user| *user != 0)?;
        let (first, count): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let last = first.saturating_add(count.checked_sub(1)?);
        Some(tg_subordinate { first: first.max(1), last, user })
    };
    let mut all: Vec<tg_subordinate> = text.lines().filter_map(range).collect();
    all.sort_by_key(|range| (range.first, range.last));
    let mut next = 0;
    for range in &mut all {
        range.first = range.first.max(next);
        next = next.max(range.last.saturating_add(1));
    }
    all.retain(|range| range.first <= range.last);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whose_uids_are_whose() {
        let users = HashMap::from([(1000, "alice".to_owned()), (0, "root".to_owned())]);
        let text = "bob:7:1\nalice:100000:65536\n1001:165000:1000\nroot:300000:5\nalice:1:0\nbroken\nalice:0:2\n9:4294967295:9\n";
        let found: Vec<(u32, u32, u32)> =
            ranges(text, &users).iter().map(|range| (range.first, range.last, range.user)).collect();
        let last = (u32::MAX, u32::MAX, 9);
        assert_eq!(found, [(1, 1, 1000), (100_000, 165_535, 1000), (165_536, 165_999, 1001), last]);
    }
}
