//! What is new in a database, compared with an earlier one.

use std::{collections::BTreeSet, fmt};

use crate::{
    database::Database,
    item::{Item, Program},
};

/// An item of one of two databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Only the new one has it.
    Added(Item),
    /// Only the old one has it.
    Removed(Item),
}

impl fmt::Display for Change {
    /// The line, with `+` or `-` before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(item) => write!(f, "+ {item}"),
            Self::Removed(item) => write!(f, "- {item}"),
        }
    }
}

/// The changes from one database to another, in the order of the text; what was removed comes before what was added for
/// the same program.
#[must_use]
pub fn changes(from: &Database, to: &Database) -> Vec<Change> {
    let mut changes = Vec::new();
    let settings = |database: &Database| -> Vec<Item> {
        database.items().take_while(|item| matches!(item, Item::Default(..) | Item::Word(_))).collect()
    };
    for (old, new) in settings(from).into_iter().zip(settings(to)).filter(|(old, new)| old != new) {
        changes.extend([Change::Removed(old), Change::Added(new)]);
    }
    let names: BTreeSet<_> = from.programs().chain(to.programs()).map(|(name, _)| name).collect();
    for name in &names {
        let [old, new] = [from, to].map(|database| database.program(name).cloned());
        // A mode that differs shows in both lines. Where only contents differ, these are all that is shown.
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) if old.mode == new.mode => (less(&old, &new), less(&new, &old)),
            (old, new) if old == new => (None, None),
            both => both,
        };
        changes.extend(old.map(|program| Change::Removed(Item::Program((*name).clone(), program))));
        changes.extend(new.map(|program| Change::Added(Item::Program((*name).clone(), program))));
    }
    let [old, new] = [from, to].map(|database| database.rules().collect::<BTreeSet<_>>());
    let mut rules: Vec<_> = old.symmetric_difference(&new).cloned().collect();
    // `exec` and `exec ... free` of the same program are neighbours; the one that was removed comes first.
    rules.sort_by_key(|rule| (rule.caller.clone(), rule.act.call(), new.contains(rule)));
    changes.extend(rules.into_iter().map(|rule| match new.contains(&rule) {
        true => Change::Added(Item::Rule(rule)),
        false => Change::Removed(Item::Rule(rule)),
    }));
    changes
}

/// The contents that one of two programs has alone.
fn less(one: &Program, other: &Program) -> Option<Program> {
    let digests: BTreeSet<_> = one.digests.difference(&other.digests).copied().collect();
    (!digests.is_empty()).then_some(Program { mode: one.mode, digests })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn tells_what_is_new_since_an_earlier_database() {
        let [old, new, sh, cp] = ["old", "new", "sh", "cp"].map(|content| Digest::of(content.as_bytes()));
        let parse = |text: String| Database::parse(&text).unwrap();
        let from = parse(format!(
            "program /su learn {old}\nprogram /sh learn {sh}\nallow /su exec /sh\nallow /su setuid 0\nallow /sh setuid 7"
        ));
        let to = parse(format!(
            "program /su learn {old} {new}\nprogram /sh enforce {sh}\nprogram /cp learn {cp}\nallow /su exec /sh free\n\
             allow /su setuid 0\nword BOP"
        ));
        let found: Vec<String> = changes(&from, &to).iter().map(Change::to_string).collect();
        let expected = [
            "- word GUARD".to_owned(),
            "+ word BOP".to_owned(),
            format!("+ program /cp learn {cp}"),
            format!("- program /sh learn {sh}"),
            format!("+ program /sh enforce {sh}"),
            format!("+ program /su learn {new}"),
            "- allow /sh setuid 7".to_owned(),
            "- allow /su exec /sh".to_owned(),
            "+ allow /su exec /sh free".to_owned(),
        ];
        assert_eq!(found, expected);
        assert_eq!(changes(&to, &to), []);
    }
}
