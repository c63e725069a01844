//! Denials that no allow rule can prevent, with the reason and what would help.

use tollgate_policy::{
    context::ContextError,
    explain::{Explanation, Step},
};

use super::{Asked, Evidence};
use crate::untrusted::for_people;

/// How many of them are explained. Looking for a remedy is expensive, and nobody reads more.
const MAX_EXPLAINED: usize = 64;

/// Denials that no allow rule can prevent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    /// The context that acted.
    pub source: String,
    /// The context that was acted on.
    pub target: String,
    /// Name of the object's class.
    pub class: String,
    /// Names of the permissions.
    pub permissions: Vec<String>,
    /// Why a rule would not help.
    pub why: Vec<String>,
    /// Statements that would allow it if all of them were added.
    pub cil: Vec<String>,
    /// What else would help, or why nothing does.
    pub hints: Vec<String>,
    /// When, how often and by which commands it was denied.
    pub evidence: Evidence,
}

impl Apart {
    fn of(asked: &Asked, evidence: &Evidence, why: Vec<String>, cil: Vec<String>, hints: Vec<String>) -> Self {
        let [source, target, class, permission] =
            [&asked.source, &asked.target, &asked.class, &asked.permission].map(for_people);
        Self { source, target, class, permissions: vec![permission], why, cil, hints, evidence: evidence.clone() }
    }

    /// For a denial with a name that the policy does not know.
    pub(super) fn unknown(asked: &Asked, evidence: &Evidence, cause: &ContextError) -> Self {
        let hint = "define it in the policy, or name the policy that the denials come from with --policy";
        Self::of(asked, evidence, vec![for_people(cause.to_string())], Vec::new(), vec![hint.to_owned()])
    }

    /// For a denial that something else than a missing rule causes. `before` is how many were explained already.
    pub(super) fn explained(
        asked: &Asked,
        evidence: &Evidence,
        explain: impl FnOnce() -> Explanation,
        before: usize,
    ) -> Self {
        if before >= MAX_EXPLAINED {
            let why =
                "not explained, because there are too many; run: tollgate policy explain POLICY SCON TCON CLASS PERM";
            return Self::of(asked, evidence, vec![why.to_owned()], Vec::new(), Vec::new());
        }
        let explanation = explain();
        let (cil, hints) = remedies(&explanation);
        Self::of(asked, evidence, why(&explanation), cil, hints)
    }
}

/// Why an allow rule alone does not help.
fn why(explanation: &Explanation) -> Vec<String> {
    let mut why: Vec<String> = explanation
        .invalid
        .iter()
        .map(|invalid| format!("{} is not a valid context: {}", invalid.context, invalid.reason))
        .collect();
    for (index, Step { source, rules, constraints, role_allow, .. }) in explanation.steps.iter().enumerate() {
        if index > 0 && rules.is_empty() {
            why.push(format!(
                "{source}, which bounds {}, may not do it either (typebounds)",
                explanation.steps[index - 1].source
            ));
        }
        why.extend(constraints.iter().map(|constraint| match constraint.places.first() {
            Some(place) => format!("a constraint forbids it, {}:{}: {}", place.file, place.line, constraint.cil),
            None => format!("a constraint forbids it: {}", constraint.cil),
        }));
        let missing = role_allow.iter().filter(|role_allow| !role_allow.exists);
        why.extend(
            missing.map(|role_allow| format!("the role may not change in this way: {} is missing", role_allow.cil)),
        );
    }
    let forbidden = explanation.remedy.iter().flat_map(|remedy| &remedy.forbidden_by);
    why.extend(forbidden.map(|place| {
        format!("a neverallow rule of the policy forbids it, {}:{}: {}", place.file, place.line, place.cil)
    }));
    why.dedup();
    why
}

/// Statements that would allow it, and hints about them.
fn remedies(explanation: &Explanation) -> (Vec<String>, Vec<String>) {
    let Some(remedy) = &explanation.remedy else { return Default::default() };
    let cil = if remedy.forbidden_by.is_empty() { remedy.cil.clone() } else { Vec::new() };
    let obstacle =
        remedy.obstacle.iter().map(|obstacle| format!("no statement that can be added would help: {obstacle}"));
    let others = remedy.alternatives.iter();
    let others =
        others.map(|other| format!("constraints would not stop it with another {}: {}", other.part, other.context));
    (cil, obstacle.chain(others).collect())
}

/// Merges entries that differ in the permission only.
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
