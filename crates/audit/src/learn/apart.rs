//! What no allow rule can mend, why, and what would.

use tollgate_policy::{
    context::ContextError,
    explain::{Explanation, Step},
};

use super::{Asked, Evidence};
use crate::untrusted::for_people;

/// So many are explained: looking for what would help is the dear part, and nobody reads more.
const EXPLAINED: usize = 64;

/// Denials that no allow rule can mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// The context that acted.
    pub source: String,
    /// The context that was acted on.
    pub target: String,
    /// The class.
    pub class: String,
    /// The permissions.
    pub permissions: Vec<String>,
    /// Why a rule would not do.
    pub why: Vec<String>,
    /// Statements that would, all together.
    pub cil: Vec<String>,
    /// What else would, or why nothing does.
    pub hints: Vec<String>,
    /// The denials.
    pub evidence: Evidence,
}

impl Apart {
    fn of(asked: &Asked, evidence: &Evidence, why: Vec<String>, cil: Vec<String>, hints: Vec<String>) -> Self {
        let [source, target, class, permission] =
            [&asked.source, &asked.target, &asked.class, &asked.permission].map(for_people);
        Self { source, target, class, permissions: vec![permission], why, cil, hints, evidence: evidence.clone() }
    }

    /// The policy does not know a name.
    pub(super) fn unknown(asked: &Asked, evidence: &Evidence, cause: &ContextError) -> Self {
        let hint = "a policy that defines it would help; or the denials are of another policy, which --policy can name";
        Self::of(asked, evidence, vec![for_people(cause.to_string())], Vec::new(), vec![hint.to_owned()])
    }

    /// Something is against a rule; `before` were explained already.
    pub(super) fn explained(
        asked: &Asked,
        evidence: &Evidence,
        explain: impl FnOnce() -> Explanation,
        before: usize,
    ) -> Self {
        if before >= EXPLAINED {
            let why = "not looked into, for there are so many: tollgate policy explain POLICY SCON TCON CLASS PERM";
            return Self::of(asked, evidence, vec![why.to_owned()], Vec::new(), Vec::new());
        }
        let told = explain();
        let (cil, hints) = remedies(&told);
        Self::of(asked, evidence, why(&told), cil, hints)
    }
}

/// Why an allow rule alone does not help.
fn why(told: &Explanation) -> Vec<String> {
    let mut why: Vec<String> = told
        .invalid
        .iter()
        .map(|invalid| format!("{} is no valid context: {}", invalid.context, invalid.reason))
        .collect();
    for (index, Step { source, rules, constraints, role_allow, .. }) in told.steps.iter().enumerate() {
        if index > 0 && rules.is_empty() {
            why.push(format!(
                "{source}, which bounds {}, may not do it either (typebounds)",
                told.steps[index - 1].source
            ));
        }
        why.extend(constraints.iter().map(|constraint| match constraint.places.first() {
            Some(place) => format!("a constraint forbids it, {}:{}: {}", place.file, place.line, constraint.cil),
            None => format!("a constraint forbids it: {}", constraint.cil),
        }));
        let missing = role_allow.iter().filter(|role_allow| !role_allow.exists);
        why.extend(missing.map(|role_allow| format!("the role may not change so: {} is missing", role_allow.cil)));
    }
    let forbidden = told.remedy.iter().flat_map(|remedy| &remedy.forbidden_by);
    why.extend(forbidden.map(|place| {
        format!("the policy promises that it never is allowed, {}:{}: {}", place.file, place.line, place.cil)
    }));
    why.dedup();
    why
}

/// Statements that would allow it, and what else is to be said of that.
fn remedies(told: &Explanation) -> (Vec<String>, Vec<String>) {
    let Some(remedy) = &told.remedy else { return Default::default() };
    let cil = if remedy.forbidden_by.is_empty() { remedy.cil.clone() } else { Vec::new() };
    let obstacle = remedy.obstacle.iter().map(|obstacle| format!("no statement that could be added helps: {obstacle}"));
    let others = remedy.alternatives.iter();
    let others =
        others.map(|other| format!("constraints would not stop it with another {}: {}", other.part, other.context));
    (cil, obstacle.chain(others).collect())
}

/// Makes one of those that differ in permission only.
pub(super) fn join(all: &mut Vec<Apart>) {
    let same = |one: &Apart, other: &Apart| {
        (&one.source, &one.target, &one.class, &one.why) == (&other.source, &other.target, &other.class, &other.why)
    };
    all.dedup_by(|next, kept| {
        let joined = same(next, kept);
        if joined {
            kept.permissions.append(&mut next.permissions);
            kept.permissions.dedup();
            for (own, more) in [(&mut kept.cil, &mut next.cil), (&mut kept.hints, &mut next.hints)] {
                more.retain(|new| !own.contains(new));
                own.append(more);
            }
            kept.evidence.add(&next.evidence);
        }
        joined
    });
}
