//! The direction of information for each permission: the table `flow.txt`.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use crate::model::{Class, Policy};

const TEXT: &str = include_str!("flow.txt");
/// The table is part of the program, and a test reads every line of it.
static TABLE: LazyLock<Table<'static>> = LazyLock::new(|| parse(TEXT).unwrap_or_default());

/// The directions of one permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Direction {
    /// Information goes from target to source.
    read: bool,
    /// Information goes from source to target.
    write: bool,
    /// Only little information goes.
    weak: bool,
}

impl Direction {
    const UNKNOWN: Self = Self { read: true, write: true, weak: false };

    fn parse(word: &str) -> Option<Self> {
        let (weak, word) = word.strip_prefix("weak-").map_or((false, word), |word| (true, word));
        let (read, write) = match word {
            "read" => (true, false),
            "write" => (false, true),
            "both" => (true, true),
            "none" => (false, false),
            _ => return None,
        };
        Some(Self { read, write, weak })
    }
}

/// Directions by class and permission.
type Table<'t> = HashMap<(&'t str, &'t str), Direction>;

/// Reads lines as `flow.txt` describes them. The error is the first line that cannot be read.
fn parse(text: &str) -> Result<Table<'_>, &str> {
    let mut groups: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut known = HashMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.split_ascii_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else { return Err(line) };
        if first == "group" {
            groups.insert(second, words.collect());
            continue;
        }
        let direction = Direction::parse(second).ok_or(line)?;
        let alone = vec![first];
        let classes = groups.get(first).unwrap_or(&alone);
        for permission in words {
            known.extend(classes.iter().map(|class| ((*class, permission), direction)));
        }
    }
    Ok(known)
}

/// The directions of a policy's permissions.
#[derive(Debug)]
pub(super) struct Flow {
    /// By class: the permissions that read, and those that write.
    masks: Vec<(u32, u32)>,
    /// `class permission` pairs that the table does not have. They count as both directions.
    pub(super) unknown: BTreeSet<String>,
}

impl Flow {
    /// The directions of `policy`'s permissions. Weak ones are included only if `weak` is set.
    pub(super) fn of(policy: &Policy, weak: bool) -> Self {
        let mut unknown = BTreeSet::new();
        let mut masks = |class: &Class| {
            let (mut read, mut write) = (0, 0);
            for (bit, permission) in (0..32).zip(&class.permissions) {
                let known = TABLE.get(&(class.name.as_str(), permission.as_str())).copied();
                let direction = known.unwrap_or_else(|| {
                    unknown.insert(format!("{} {permission}", class.name));
                    Direction::UNKNOWN
                });
                if weak || !direction.weak {
                    read |= u32::from(direction.read) << bit;
                    write |= u32::from(direction.write) << bit;
                }
            }
            (read, write)
        };
        Self { masks: policy.classes.iter().map(&mut masks).collect(), unknown }
    }

    /// The permissions of a class that read.
    pub(super) fn reads(&self, class: u32) -> u32 {
        self.masks.get(class as usize).map_or(0, |masks| masks.0)
    }

    /// The permissions of a class that write.
    pub(super) fn writes(&self, class: u32) -> u32 {
        self.masks.get(class as usize).map_or(0, |masks| masks.1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Flow, TEXT, parse};
    use crate::model::{Class, Policy};

    #[test]
    fn reads_every_line_of_its_table() {
        assert_eq!(parse(TEXT).map(|table| table.len() > 1000), Ok(true));
    }

    #[test]
    fn rejects_a_line_without_a_direction() {
        assert_eq!(parse("file read read\nfile sideways write").err(), Some("file sideways write"));
        assert_eq!(parse("file").err(), Some("file"));
    }

    #[test]
    fn counts_what_it_does_not_know_as_both_and_reports_it() {
        let permissions = ["read", "write", "getattr", "levitate"].map(str::to_owned).to_vec();
        let file = Class { name: "file".to_owned(), permissions, ..Class::default() };
        let policy = Policy { classes: vec![Class::default(), file], ..Policy::default() };
        let flow = Flow::of(&policy, false);
        assert_eq!((flow.reads(1), flow.writes(1)), (0b1001, 0b1010));
        assert_eq!(flow.unknown.iter().collect::<Vec<_>>(), ["file levitate"]);
        assert_eq!(Flow::of(&policy, true).reads(1), 0b1101, "attributes carry little, but something");
    }
}
