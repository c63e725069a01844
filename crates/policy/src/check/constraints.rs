//! Constraints that have the same result for everybody.

use super::{Finding, Severity};
use crate::{
    cil,
    model::{Bits, Comparison, NameKind, Policy, Term},
};

/// Expressions with more leaves than this are not examined, because each leaf doubles the cases.
const MAX_LEAVES: usize = 12;

pub(super) fn findings(policy: &Policy) -> Vec<Finding> {
    let (mut denies, mut idle) = (Vec::new(), Vec::new());
    for (number, class) in (0..).zip(&policy.classes) {
        for constraint in &class.constraints {
            match outcome(policy, &constraint.expression) {
                Some(true) => idle.push(cil::constraint(policy, number, constraint)),
                Some(false) => denies.push(cil::constraint(policy, number, constraint)),
                None => {}
            }
        }
    }
    [
        Finding::about(
            Severity::Warning,
            "constraints that nothing meets: their permissions are denied to all",
            denies,
            "give the attributes that they name types, or remove them",
        ),
        Finding::about(Severity::Note, "constraints that everything meets", idle, "remove them"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The value of an expression if it is the same whatever the values of its leaves are. The leaves count as independent,
/// so an expression that is found to hold always certainly does.
fn outcome(policy: &Policy, expression: &[Term]) -> Option<bool> {
    let mut leaves: Vec<&Term> = Vec::new();
    for term in expression {
        let leaf = !matches!(term, Term::Not | Term::And | Term::Or);
        if leaf && fixed(policy, term).is_none() && !leaves.contains(&term) {
            leaves.push(term);
        }
    }
    if leaves.len() > MAX_LEAVES {
        return None;
    }
    let first = value(policy, expression, &leaves, 0)?;
    (1..1u32 << leaves.len()).all(|case| value(policy, expression, &leaves, case) == Some(first)).then_some(first)
}

/// The value of a leaf that has only one value, because its set has no name or every name.
fn fixed(policy: &Policy, leaf: &Term) -> Option<bool> {
    let Term::In { kind, comparison, names, .. } = leaf else { return None };
    let all: Bits = match kind {
        NameKind::User => existing(policy.users.iter().map(|user| !user.name.is_empty())),
        NameKind::Role => existing(policy.roles.iter().map(|role| !role.name.is_empty())),
        NameKind::Type => existing(policy.types.iter().map(|t| !t.name.is_empty() && !t.attribute)),
    };
    let within = if names.is_empty() {
        false
    } else if all.iter().all(|number| names.has(number)) {
        true
    } else {
        return None;
    };
    Some(within == (*comparison == Comparison::Eq))
}

fn existing(names: impl Iterator<Item = bool>) -> Bits {
    (0..).zip(names).filter(|(_, exists)| *exists).map(|(number, _)| number).collect()
}

/// The value of an expression for a `case`, which has one bit for each of `leaves`; `None`: it has no single value.
fn value(policy: &Policy, expression: &[Term], leaves: &[&Term], case: u32) -> Option<bool> {
    let mut stack: Vec<bool> = Vec::new();
    for term in expression {
        let result = match term {
            Term::Not => !stack.pop()?,
            Term::And => stack.pop()? & stack.pop()?,
            Term::Or => stack.pop()? | stack.pop()?,
            leaf => match leaves.iter().position(|known| *known == leaf) {
                Some(place) => case >> place & 1 == 1,
                None => fixed(policy, leaf)?,
            },
        };
        stack.push(result);
    }
    stack.pop()
}
