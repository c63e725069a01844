use std::collections::BTreeSet;

use super::{Diff, Kind, Side, diff};
use crate::{
    decide::Tables,
    model::{Bits, Boolean, Class, Condition, Logic, Policy, Rule, RuleKind, Type},
    tables,
    vectors::Vectors,
};

fn class(name: &str, permissions: &[&str]) -> Class {
    let permissions = permissions.iter().map(|name| (*name).to_owned()).collect();
    Class { name: name.to_owned(), permissions, ..Class::default() }
}

/// A policy with `types` types, some attributes and rules; `seed` decides on all of it.
fn policy(seed: u64, types: u32) -> Policy {
    let mut numbers = fastrand::Rng::with_seed(seed);
    let mut all = vec![Type::default()];
    // Which names exist, and under which numbers, is another in every policy.
    let mut names: Vec<u32> = (0..types + 4).collect();
    numbers.shuffle(&mut names);
    for number in 1..=types {
        let name = format!("t{}", names[number as usize]);
        all.push(Type { name, set: [number].into_iter().collect(), ..Type::default() });
    }
    for attribute in 0..4 {
        let number = all.len() as u32;
        let members: Bits = (1..=types).filter(|_| numbers.u32(..3) == 0).collect();
        for member in members.iter() {
            all[member as usize].set.insert(number);
        }
        all.push(Type { name: format!("a{attribute}"), attribute: true, set: members, ..Type::default() });
    }
    let mut classes =
        vec![Class::default(), class("file", &["read", "write", "open"]), class("dir", &["search", "read"])];
    if numbers.u32(..2) == 0 {
        classes.swap(1, 2);
        classes[1].permissions.reverse();
    }
    if numbers.u32(..3) == 0 {
        classes.push(class("fd", &["use"]));
    }
    let mut rules = Vec::new();
    for _ in 0..numbers.u32(..40) {
        let class = 1 + numbers.u32(..classes.len() as u32 - 1);
        let data = 1 + numbers.u32(..(1 << classes[class as usize].permissions.len()) - 1);
        let kind = [RuleKind::Allow, RuleKind::AuditAllow, RuleKind::DontAudit][numbers.u32(..3) as usize];
        let source = 1 + numbers.u32(..types + 4);
        // One in three is of a type on itself.
        let target = if numbers.u32(..3) == 0 { source } else { 1 + numbers.u32(..types + 4) };
        let condition = (numbers.u32(..4) == 0).then(|| Condition { condition: 0, value: numbers.u32(..2) == 0 });
        rules.push(Rule { kind, source, target, class, data, condition });
    }
    Policy {
        types: all,
        classes,
        rules,
        booleans: vec![Boolean { name: "b".to_owned(), value: numbers.u32(..2) == 0 }],
        conditions: vec![vec![Logic::Boolean(0)]],
        ..Policy::default()
    }
}

fn vectors(policy: &Policy) -> Vectors {
    Vectors::of(&Tables::new(&tables::build(policy).unwrap().tables).unwrap())
}

fn compare(before: &Policy, after: &Policy) -> Diff {
    let vectors = [vectors(before), vectors(after)];
    diff(Side { policy: before, vectors: &vectors[0] }, Side { policy: after, vectors: &vectors[1] })
}

/// Whether, kind, source, target, class and permission of one change.
type Said = (Kind, String, String, String, String);

/// All that a policy's rules say of types in `shared`, rule by rule.
fn said(policy: &Policy, shared: &BTreeSet<String>) -> BTreeSet<Said> {
    let mut all = BTreeSet::new();
    let members = |number: u32| {
        let type_ = &policy.types[number as usize];
        let set: Vec<u32> = if type_.attribute { type_.set.iter().collect() } else { vec![number] };
        set.into_iter().map(|number| policy.types[number as usize].name.clone()).filter(|name| shared.contains(name))
    };
    for rule in policy.rules.iter().filter(|rule| policy.holds(rule.condition)) {
        let kind = match rule.kind {
            RuleKind::Allow => Kind::Allow,
            RuleKind::AuditAllow => Kind::AuditAllow,
            _ => Kind::DontAudit,
        };
        let class = &policy.classes[rule.class as usize];
        for source in members(rule.source) {
            for target in members(rule.target) {
                for (_, permission) in (0..).zip(&class.permissions).filter(|(bit, _)| rule.data >> bit & 1 == 1) {
                    all.insert((kind, source.clone(), target.clone(), class.name.clone(), permission.clone()));
                }
            }
        }
    }
    all
}

fn told(diff: &Diff, added: bool) -> BTreeSet<Said> {
    let mut all = BTreeSet::new();
    for domains in &diff.domains {
        for change in domains.changes.iter().filter(|change| change.added == added) {
            for source in &domains.sources {
                let others = change.targets.iter().filter(|target| *target != source);
                for target in others.chain(change.itself.then_some(source)) {
                    for permission in &change.permissions {
                        let (class, permission) = (change.class.clone(), permission.clone());
                        let fresh = all.insert((change.kind, source.clone(), target.clone(), class, permission));
                        assert!(fresh, "{source} {target} is told twice");
                    }
                }
            }
        }
    }
    all
}

fn names(policy: &Policy) -> BTreeSet<String> {
    policy.types.iter().filter(|t| !t.attribute && !t.name.is_empty()).map(|t| t.name.clone()).collect()
}

#[test]
fn equals_a_comparison_pair_by_pair() {
    let mut differences = 0;
    for seed in 0..400 {
        let (before, after) = (policy(seed * 2, 9), policy(seed * 2 + 1, 11));
        let shared: BTreeSet<String> = names(&before).intersection(&names(&after)).cloned().collect();
        let (old, new) = (said(&before, &shared), said(&after, &shared));
        let diff = compare(&before, &after);
        assert_eq!(told(&diff, true), new.difference(&old).cloned().collect(), "granted, seed {seed}");
        assert_eq!(told(&diff, false), old.difference(&new).cloned().collect(), "taken, seed {seed}");
        let only = |types: &[super::Only]| types.iter().map(|only| only.name.clone()).collect::<BTreeSet<_>>();
        assert_eq!(only(&diff.added_types), names(&after).difference(&shared).cloned().collect());
        assert_eq!(only(&diff.removed_types), names(&before).difference(&shared).cloned().collect());
        differences += told(&diff, true).len();
    }
    assert!(differences > 10_000, "the policies hardly differ: {differences}");
}

#[test]
fn finds_no_difference_between_a_policy_and_itself() {
    for seed in 0..50 {
        let policy = policy(seed, 12);
        assert!(compare(&policy, &policy).is_empty());
    }
}

#[test]
fn reports_a_boolean_whose_rules_differ_though_they_do_not_hold() {
    let before = policy(3, 8);
    let mut after = before.clone();
    let value = !after.booleans[0].value;
    let condition = Some(Condition { condition: 0, value });
    after.rules.push(Rule { kind: RuleKind::Allow, source: 1, target: 2, class: 1, data: 1, condition });
    let diff = compare(&before, &after);
    assert_eq!(diff.booleans, ["b"]);
    assert!(diff.domains.is_empty() && diff.statements.is_empty());
}

#[test]
fn counts_the_rules_of_a_type_that_only_one_has() {
    let mut before = policy(5, 6);
    before.rules = vec![
        Rule { kind: RuleKind::Allow, source: 1, target: 2, class: 1, data: 1, condition: None },
        Rule { kind: RuleKind::DontAudit, source: 3, target: 1, class: 1, data: 1, condition: None },
    ];
    let mut after = before.clone();
    after.types[1].name = "other".to_owned();
    let diff = compare(&before, &after);
    let counts = (diff.added_types[0].as_source, diff.added_types[0].as_target);
    assert_eq!((diff.added_types[0].name.as_str(), counts), ("other", (1, 1)));
    assert_eq!(diff.removed_types[0].name, before.types[1].name);
    assert!(diff.domains.is_empty());
}

#[test]
fn reports_statements_by_kind() {
    let before = policy(7, 6);
    let mut after = before.clone();
    after.capabilities.push("open_perms".to_owned());
    after.types[1].permissive = true;
    after.rules.push(Rule { kind: RuleKind::Transition, source: 1, target: 2, class: 1, data: 3, condition: None });
    let diff = compare(&before, &after);
    let kinds: Vec<&str> = diff.statements.iter().map(|statements| statements.kind).collect();
    assert_eq!(kinds, ["policy capabilities", "permissive types", "type transitions, members and changes"]);
    assert!(diff.statements.iter().all(|statements| statements.added.len() == 1 && statements.removed.is_empty()));
}
