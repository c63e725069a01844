//! Why a decision is as it is, and the CIL that would change it.
//!
//! [`explain`] reads the [`crate::model`], not the decision tables: rules and constraints as the policy has them, with
//! file and line of their statements if the policy was compiled from CIL.

mod admitted;
mod alternatives;
mod attributes;
mod bounds;
mod explainer;
mod remedy;
mod rules;
mod statement;
mod statements;
mod text;
mod validity;
mod world;

pub use self::{
    admitted::{Admitted, Wider},
    alternatives::Alternative,
    explainer::{Explainer, Lack},
    remedy::{Gain, Remedy},
    rules::{Extended, Flip, Match, ReportedCondition, ReportedRule},
    validity::{Invalid, invalid_context},
};
use self::{
    statements::Statements,
    world::{Missing, World, compared_levels},
};
use crate::{
    cil, context,
    lines::Lines,
    model::{Context, NameKind, Pair, Party, Policy, RuleKind, Term},
};

/// Whether `source` has a permission on `target`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The context that acts. It need not be valid.
    pub source: Context,
    /// The context that is acted on. It need not be valid.
    pub target: Context,
    /// The object class, as the policy numbers it.
    pub class: u32,
    /// The permission, as a bit of the class's access vector.
    pub permission: u32,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is allowed.
    Allowed,
    /// It is denied.
    Denied,
    /// It is not decided: one of the contexts is not valid, and the kernel refuses to use it.
    Invalid,
}

/// A statement, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// Name of the source file, as given when the policy was built.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
    /// The statement, as libsepol resolved it.
    pub cil: String,
}

/// A part of a constraint's expression, with its value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Node {
    /// The expression, as CIL.
    pub cil: String,
    /// Whether it holds.
    pub holds: bool,
    /// For a comparison: the values that are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<String>,
    /// For an operator: its operands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Node>,
}

/// A constraint that takes a permission away.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ReportedConstraint {
    /// The constraint, as CIL.
    pub cil: String,
    /// Its expression, evaluated for this question.
    pub expression: Node,
    /// Where it was written.
    pub places: Vec<Place>,
}

/// A `roleallow` that a process needs to change its role.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RoleAllow {
    /// The statement, as CIL.
    pub cil: String,
    /// Whether the policy has it.
    pub exists: bool,
}

/// The rules and constraints for one source and target type. A bounded type has no more than its parent has, so there
/// is one step for each.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Step {
    /// The source type.
    pub source: String,
    /// The target type.
    pub target: String,
    /// Rules that allow it.
    pub rules: Vec<ReportedRule>,
    /// Rules that would allow it with other values of booleans.
    pub switched_off: Vec<ReportedRule>,
    /// Constraints that take the permission away, or would if a rule allowed it.
    pub constraints: Vec<ReportedConstraint>,
    /// How many constraints concern the permission.
    pub constraints_asked: usize,
    /// The `roleallow` that is needed, for a process that changes its role.
    pub role_allow: Option<RoleAllow>,
}

/// Why a decision is as it is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Explanation {
    /// The source context.
    pub source: String,
    /// The target context.
    pub target: String,
    /// The object class, by name.
    pub class: String,
    /// The permission, by name.
    pub permission: String,
    /// The decision about the permission.
    pub verdict: Verdict,
    /// Whether the source's domain is permissive: a denial is granted all the same, and audited.
    pub permissive: bool,
    /// Why contexts are invalid.
    pub invalid: Vec<Invalid>,
    /// The step for the question's own types first, then those for the parents that bound them.
    pub steps: Vec<Step>,
    /// Rules by which grants are audited.
    pub auditallow: Vec<ReportedRule>,
    /// Rules by which denials are not audited.
    pub dontaudit: Vec<ReportedRule>,
    /// For permission `ioctl`, if rules name commands: only those commands are allowed.
    pub extended: Option<Extended>,
    /// What would allow it; `None`: it is allowed.
    pub remedy: Option<Remedy>,
    /// Why no files and lines are shown, if the policy has none.
    pub no_places: Option<String>,
}

/// Explains the answer of `policy` to `question`; `lines` are its statements.
pub fn explain(policy: &Policy, lines: &Lines, question: &Question) -> Explanation {
    Explainer::new(policy, lines).explain(question)
}

fn explained(world: &World<'_>, statements: &Statements<'_>, lines: &Lines, question: &Question) -> Explanation {
    let policy = world.policy;
    let invalid = validity::invalid(policy, question);
    let verdict = match (invalid.is_empty(), world.allows(question)) {
        (false, _) => Verdict::Invalid,
        (true, true) => Verdict::Allowed,
        (true, false) => Verdict::Denied,
    };
    let holding =
        |kind| rules::matching(world, statements, kind, question).into_iter().filter(|rule| rule.holds()).collect();
    Explanation {
        source: context::text(policy, &question.source),
        target: context::text(policy, &question.target),
        class: cil::class_name(policy, question.class),
        permission: cil::permission_names(policy, question.class, question.permission).join(" "),
        verdict,
        permissive: policy.types.get(question.source.type_ as usize).is_some_and(|t| t.permissive),
        steps: world.steps(question).iter().map(|step| report_step(world, statements, step)).collect(),
        auditallow: holding(RuleKind::AuditAllow),
        dontaudit: holding(RuleKind::DontAudit),
        extended: rules::extended(world, question),
        remedy: (verdict != Verdict::Allowed).then(|| remedy::find(world, statements, question, &invalid)),
        invalid,
        no_places: lines.missing.clone().filter(|_| lines.statements.is_empty()),
    }
}

fn report_step(world: &World<'_>, statements: &Statements<'_>, step: &Question) -> Step {
    let policy = world.policy;
    let (rules, switched_off) =
        rules::matching(world, statements, RuleKind::Allow, step).into_iter().partition(ReportedRule::holds);
    let constraints = policy.classes.get(step.class as usize).map_or(&[][..], |class| &class.constraints);
    let constraint = |missing| match missing {
        Missing::Constraint(index) => {
            let constraint = constraints.get(index)?;
            Some(ReportedConstraint {
                cil: cil::constraint(policy, step.class, constraint),
                expression: tree(world, &constraint.expression, step),
                places: statements.constraints(step.class, step.permission, &constraint.expression),
            })
        }
        Missing::Rule | Missing::RoleAllow => None,
    };
    let roles = (step.source.role, step.target.role);
    Step {
        source: cil::type_name(policy, step.source.type_),
        target: cil::type_name(policy, step.target.type_),
        rules,
        switched_off,
        constraints: world.taken_away(step).into_iter().filter_map(constraint).collect(),
        constraints_asked: constraints.iter().filter(|c| c.permissions & step.permission != 0).count(),
        role_allow: world.changes_role(step).then(|| RoleAllow {
            cil: cil::role_allow(policy, roles),
            exists: world.may_change_role(roles.0, roles.1),
        }),
    }
}

/// An expression with the value of each of its parts for a question.
fn tree(world: &World<'_>, expression: &[Term], step: &Question) -> Node {
    let mut stack: Vec<Node> = Vec::new();
    for term in expression {
        let count = match term {
            Term::Not => 1,
            Term::And | Term::Or => 2,
            Term::Compare(..) | Term::In { .. } => 0,
        };
        let parts = stack.split_off(stack.len().saturating_sub(count));
        let texts: Vec<&str> = parts.iter().map(|part| part.cil.as_str()).collect();
        let all = || parts.iter().all(|part| part.holds);
        let (text, holds) = match term {
            Term::Not => (format!("(not {})", texts.join(" ")), !all()),
            Term::And => (format!("(and {})", texts.join(" ")), all()),
            Term::Or => (format!("(or {})", texts.join(" ")), parts.iter().any(|part| part.holds)),
            leaf => (cil::leaf(world.policy, leaf), world.leaf(leaf, &step.source, &step.target)),
        };
        stack.push(Node { cil: text, holds, compared: compared(world.policy, term, step), parts });
    }
    stack.pop().unwrap_or(Node { cil: String::new(), holds: false, compared: None, parts: Vec::new() })
}

/// The values that a comparison compares: `l1 is s1, l2 is s2:c5`.
fn compared(policy: &Policy, term: &Term, step: &Question) -> Option<String> {
    let (s, t) = (&step.source, &step.target);
    let both = |pair, first: String, second: String| {
        let (left, right) = cil::sides(pair);
        Some(format!("{left} is {first}, {right} is {second}"))
    };
    match term {
        Term::Compare(pair @ Pair::Users, _) => {
            both(*pair, cil::user_name(policy, s.user), cil::user_name(policy, t.user))
        }
        Term::Compare(pair @ Pair::Roles, _) => {
            both(*pair, cil::role_name(policy, s.role), cil::role_name(policy, t.role))
        }
        Term::Compare(pair @ Pair::Types, _) => {
            both(*pair, cil::type_name(policy, s.type_), cil::type_name(policy, t.type_))
        }
        Term::Compare(pair, _) => {
            let (first, second) = compared_levels(*pair, s, t);
            both(*pair, context::level_text(policy, first), context::level_text(policy, second))
        }
        Term::In { party, kind, .. } => {
            let (context, number) = if *party == Party::Target { (t, 2) } else { (s, 1) };
            Some(match kind {
                NameKind::User => format!("u{number} is {}", cil::user_name(policy, context.user)),
                NameKind::Role => format!("r{number} is {}", cil::role_name(policy, context.role)),
                NameKind::Type => format!("t{number} is {}", cil::type_name(policy, context.type_)),
            })
        }
        Term::Not | Term::And | Term::Or => None,
    }
}
