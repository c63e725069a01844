//! Whether a constraint holds for a source and a target type, whatever the rest of their contexts.

use tollgate_policy::model::{Comparison, NameKind, Pair, Party, Term};

/// Whether the expression is certainly true. Users, roles and levels may be anything.
pub(super) fn always_holds(expression: &[Term], source: u32, target: u32) -> bool {
    let mut stack: Vec<Option<bool>> = Vec::new();
    for term in expression {
        let mut pop = || stack.pop().flatten();
        let value = match term {
            Term::Not => pop().map(|value| !value),
            Term::And => both(pop(), pop(), false),
            Term::Or => both(pop(), pop(), true),
            Term::Compare(Pair::Types, comparison) => match comparison {
                Comparison::Eq => Some(source == target),
                Comparison::Neq => Some(source != target),
                _ => None,
            },
            Term::Compare(..) => None,
            Term::In { party, kind: NameKind::Type, comparison, names, .. } => match (party, comparison) {
                (Party::Source, Comparison::Eq) => Some(names.has(source)),
                (Party::Source, Comparison::Neq) => Some(!names.has(source)),
                (Party::Target, Comparison::Eq) => Some(names.has(target)),
                (Party::Target, Comparison::Neq) => Some(!names.has(target)),
                _ => None,
            },
            Term::In { .. } => None,
        };
        stack.push(value);
    }
    stack.pop().flatten() == Some(true)
}

/// `decides` is the value that decides alone: false for `and`, true for `or`.
fn both(a: Option<bool>, b: Option<bool>, decides: bool) -> Option<bool> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if decides { a || b } else { a && b }),
        (Some(value), None) | (None, Some(value)) if value == decides => Some(decides),
        _ => None,
    }
}
