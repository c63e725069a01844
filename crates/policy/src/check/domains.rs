//! Doubtful types.

use super::{Finding, Severity};
use crate::{
    cil,
    model::{Bits, Policy, Type},
    vectors::Vectors,
};

pub(super) fn findings(policy: &Policy, vectors: &Vectors) -> Vec<Finding> {
    let names = |select: fn(&Type) -> bool| {
        let selected = policy.types.iter().filter(move |t| select(t));
        selected.map(|t| t.name.clone()).collect::<Vec<_>>()
    };
    [
        Finding::about(
            Severity::Warning,
            "permissive types: what their processes are denied is granted, and audited",
            names(|t| t.permissive),
            "remove (typepermissive ...) when the audit shows no more denials",
        ),
        Finding::about(
            Severity::Warning,
            "bounded types with permissions that their parent lacks: these are denied, whatever the rules say",
            exceeding(policy, vectors),
            "allow them to the parent, or remove them from the bounded type",
        ),
        Finding::about(
            Severity::Note,
            "domains that no process can enter: they have an entry point, but nobody may make the transition",
            unreachable(policy, vectors),
            "allow a domain (process (transition)) on them, or remove them",
        ),
        Finding::about(
            Severity::Note,
            "types that no rule speaks of, by name or by attribute",
            silent(policy),
            "nothing is allowed on them: remove them, or allow what needs them",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn numbers(policy: &Policy) -> impl Iterator<Item = (u32, &Type)> {
    (0..).zip(&policy.types).filter(|(_, t)| !t.attribute && !t.name.is_empty())
}

/// `type_attribute_bounds_av`: the permissions that rules allow to a bounded type and not to its parent.
fn exceeding(policy: &Policy, vectors: &Vectors) -> Vec<String> {
    let mut found = Vec::new();
    for (child, bounded) in numbers(policy).filter(|(_, t)| t.bounds != 0) {
        for (target, other) in numbers(policy) {
            let above = if other.bounds == 0 { target } else { other.bounds };
            for class in 1..=vectors.classes() {
                let more =
                    vectors.rules(child, target, class).allow & !vectors.rules(bounded.bounds, above, class).allow;
                if more != 0 {
                    let permissions = cil::class_permissions(policy, class, more);
                    found.push(format!("{} {} {permissions}", bounded.name, other.name));
                }
            }
        }
    }
    found
}

/// A permission of the class with this name, as class and bit.
fn permission(policy: &Policy, class: &str, permission: &str) -> Option<(u32, u32)> {
    let (number, class) = (0..).zip(&policy.classes).find(|(_, known)| known.name == class)?;
    let bit = class.permissions.iter().position(|known| known == permission)?;
    Some((number, 1 << bit))
}

/// Types with an entry point that no other type may transition to.
fn unreachable(policy: &Policy, vectors: &Vectors) -> Vec<String> {
    let Some(entrypoint) = permission(policy, "file", "entrypoint") else { return Vec::new() };
    let ways: Vec<(u32, u32)> =
        ["transition", "dyntransition"].iter().filter_map(|way| permission(policy, "process", way)).collect();
    let speaks = |vector: u32, (class, bit): (u32, u32)| vectors.access(vector, class).allow & bit != 0;
    let enters: Vec<bool> = (0..vectors.vectors()).map(|vector| ways.iter().any(|way| speaks(vector, *way))).collect();
    let entered: Vec<bool> = (0..vectors.vectors()).map(|vector| speaks(vector, entrypoint)).collect();
    // By column: a row that has such a vector in it, and whether there are more.
    let mut by_column: Vec<Vec<u32>> = vec![Vec::new(); vectors.columns() as usize];
    for (number, _) in numbers(policy) {
        for (column, vector) in vectors.row_of(vectors.row(number)).iter().enumerate() {
            if enters.get(usize::from(*vector)) == Some(&true) && by_column[column].len() < 2 {
                by_column[column].push(number);
            }
        }
    }
    let initial: Bits = policy.initial_sids.iter().map(|sid| sid.context.type_).collect();
    numbers(policy)
        .filter(|(number, _)| {
            let row = vectors.row_of(vectors.row(*number));
            let sources = by_column.get(vectors.column(*number) as usize);
            row.iter().any(|vector| entered.get(usize::from(*vector)) == Some(&true))
                && !initial.has(*number)
                && !sources.is_some_and(|sources| sources.iter().any(|source| source != number))
        })
        .map(|(_, t)| t.name.clone())
        .collect()
}

/// Types in no rule.
fn silent(policy: &Policy) -> Vec<String> {
    let mut spoken = Bits::default();
    for (source, target) in policy
        .rules
        .iter()
        .map(|rule| (rule.source, rule.target))
        .chain(policy.extended_rules.iter().map(|rule| (rule.source, rule.target)))
        .chain(policy.name_transitions.iter().map(|transition| (transition.result, transition.target)))
    {
        spoken.insert(source);
        spoken.insert(target);
    }
    let speaks = |t: &Type| t.set.iter().any(|part| spoken.has(part));
    numbers(policy).filter(|(number, t)| !spoken.has(*number) && !speaks(t)).map(|(_, t)| t.name.clone()).collect()
}
