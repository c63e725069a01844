//! Whether a constraint holds for a source and a target type, whatever the rest of their contexts.

use tollgate_policy::model::{Comparison, NameKind, Pair, Party, Term};

/// The two sides of a check.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides {
    /// The type of the source.
    pub(super) source: u32,
    /// The type of the target.
    pub(super) target: u32,
    /// Whether the target has the same context as the source.
    pub(super) same: bool,
}

/// Whether the expression is certainly true. What `sides` do not say may be anything.
pub(super) fn always_holds(expression: &[Term], sides: Sides) -> bool {
    let mut stack: Vec<Option<bool>> = Vec::new();
    for term in expression {
        let mut pop = || stack.pop().flatten();
        let value = match term {
            Term::Not => pop().map(|value| !value),
            Term::And => both(pop(), pop(), false),
            Term::Or => both(pop(), pop(), true),
            Term::Compare(pair, comparison) => compared(*pair, *comparison, sides),
            Term::In { party, kind: NameKind::Type, comparison, names, .. } => match (party, comparison) {
                (Party::Source, Comparison::Eq) => Some(names.has(sides.source)),
                (Party::Source, Comparison::Neq) => Some(!names.has(sides.source)),
                (Party::Target, Comparison::Eq) => Some(names.has(sides.target)),
                (Party::Target, Comparison::Neq) => Some(!names.has(sides.target)),
                _ => None,
            },
            Term::In { .. } => None,
        };
        stack.push(value);
    }
    stack.pop().flatten() == Some(true)
}

/// The value of a comparison; `None`: it depends on the contexts. In a valid context the high level dominates the low one.
fn compared(pair: Pair, comparison: Comparison, Sides { source, target, same }: Sides) -> Option<bool> {
    let (equal, dominates, dominated) = match pair {
        Pair::Types => (Some(source == target), None, None),
        Pair::Users | Pair::Roles if same => (Some(true), None, None),
        Pair::L1L2 | Pair::H1H2 if same => (Some(true), Some(true), Some(true)),
        Pair::L1H2 if same => (None, None, Some(true)),
        Pair::H1L2 if same => (None, Some(true), None),
        Pair::L1H1 | Pair::L2H2 => (None, None, Some(true)),
        _ => (None, None, None),
    };
    match comparison {
        Comparison::Eq => equal,
        Comparison::Neq => equal.map(|equal| !equal),
        Comparison::Dom => dominates,
        Comparison::DomBy => dominated,
        Comparison::Incomp => dominates.or(dominated).map(|_| false),
    }
}

/// `decides` is the value that decides alone: false for `and`, true for `or`.
fn both(a: Option<bool>, b: Option<bool>, decides: bool) -> Option<bool> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if decides { a || b } else { a && b }),
        (Some(value), None) | (None, Some(value)) if value == decides => Some(decides),
        _ => None,
    }
}
