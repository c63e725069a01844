//! What would allow a denied permission: statements to add, and other contexts.

use std::collections::BTreeSet;

use super::{
    Alternative, Place, Question, alternatives,
    attributes::{Membership, only},
    bounds::{self, Excess},
    statements::{Neverallow, Statements},
    validity::Invalid,
    world::{Missing, World},
};
use crate::{
    cil,
    model::{NameKind, Party, Policy, Rule, RuleKind, Term},
};

/// How many memberships are tried. Combinations of three are tried only if there are few.
const MAX_CANDIDATES: usize = 32;
const MAX_FOR_TRIPLES: usize = 12;

/// What would allow a denied permission.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Remedy {
    /// Statements that would allow it if they were added to the sources. Empty: no added statements would.
    pub cil: Vec<String>,
    /// Neverallow statements that forbid those: a policy with both cannot be built.
    pub forbidden_by: Vec<Place>,
    /// Why no added statements would allow it.
    pub obstacle: Option<String>,
    /// Other contexts that constraints would not deny.
    pub alternatives: Vec<Alternative>,
    /// What an alternative needs in addition, if rules are missing as well.
    pub with_alternatives: Vec<String>,
    /// What the statements would grant beyond the requested permission.
    pub gains: Vec<Gain>,
}

/// What a type gets by being put in an attribute.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Gain {
    /// The type that is put in the attribute.
    pub type_: String,
    /// The attribute that the type gets.
    pub attribute: String,
    /// How many allow rules name the attribute: as source, as target.
    pub rules: (usize, usize),
}

impl Gain {
    fn of(policy: &Policy, (type_, attribute): Membership) -> Self {
        let allow = |is: &dyn Fn(&Rule) -> bool| {
            policy.rules.iter().filter(|rule| rule.kind == RuleKind::Allow && is(rule)).count()
        };
        Self {
            type_: cil::type_name(policy, type_),
            attribute: cil::type_name(policy, attribute),
            rules: (allow(&|rule| rule.source == attribute), allow(&|rule| rule.target == attribute)),
        }
    }
}

/// Finds what would allow `question`.
pub(super) fn find(world: &World<'_>, statements: &Statements<'_>, question: &Question, invalid: &[Invalid]) -> Remedy {
    let policy = world.policy;
    let mut supposed = world.clone();
    let mut statements_to_add: Vec<String> = invalid.iter().filter_map(|invalid| invalid.cil.clone()).collect();
    let (from, to) = (question.source.role, question.target.role);
    if supposed.changes_role(question) && !supposed.may_change_role(from, to) {
        supposed.role_allows.push((from, to));
        statements_to_add.push(cil::role_allow(policy, (from, to)));
    }
    let without = invalid.iter().find(|invalid| invalid.cil.is_none());
    let mut obstacle = without.map(|invalid| format!("{}: {}", invalid.context, invalid.reason));
    let mut found = Found::default();
    if is_constrained(&supposed, question) {
        match memberships(&supposed, statements, question) {
            Some(exempt) => {
                let exceeds = exempt.exceeds.map(|excess| exceeding(policy, excess, &exempt.put));
                obstacle = obstacle.or(exceeds);
                found = exempt;
            }
            None => obstacle = obstacle.or_else(|| Some(NO_EXEMPTION.to_owned())),
        }
    }
    // With another context no type is put in an attribute, which might have granted it, too.
    let with_contexts = missing_rules(world, &supposed, question);
    supposed = with_memberships(&supposed, statements, &found.put);
    for put in &found.put {
        let (type_, attribute) = (cil::type_name(policy, put.0), cil::type_name(policy, put.1));
        statements_to_add.push(format!("(typeattributeset {attribute} ({type_}))"));
    }
    for step in world.steps(question).iter().rev().filter(|step| !supposed.granted(step)) {
        found.forbidden.extend(forbids(statements, step, &found.put));
    }
    found.forbidden.dedup();
    let is_context_at_fault = !invalid.is_empty() || is_constrained(world, question);
    let alternatives = if is_context_at_fault { alternatives::find(world, question) } else { Vec::new() };
    let with_alternatives = if alternatives.is_empty() { Vec::new() } else { with_contexts };
    if obstacle.is_some() {
        let (cil, forbidden_by, gains) = (Vec::new(), Vec::new(), Vec::new());
        return Remedy { cil, forbidden_by, obstacle, alternatives, with_alternatives, gains };
    }
    statements_to_add.extend(missing_rules(world, &supposed, question));
    let gains = found.put.iter().map(|put| Gain::of(policy, *put)).collect();
    let (cil, forbidden_by) = (statements_to_add, found.forbidden);
    Remedy { cil, forbidden_by, obstacle, alternatives, with_alternatives, gains }
}

/// The allow rules that `supposed` lacks. The parents come first, because libsepol builds no policy in which a bounded type
/// has more than they have.
fn missing_rules(world: &World<'_>, supposed: &World<'_>, question: &Question) -> Vec<String> {
    let steps = world.steps(question);
    steps.iter().rev().filter(|step| !supposed.granted(step)).map(|step| allow(world.policy, step)).collect()
}

const NO_EXEMPTION: &str = "no attribute that one of the types could be given makes an exception: the contexts would \
                            have to be others, or the constraints";

fn exceeding(policy: &Policy, (child, target, class): Excess, put: &[Membership]) -> String {
    let names: Vec<String> = put
        .iter()
        .map(|put| format!("{} in {}", cil::type_name(policy, put.0), cil::type_name(policy, put.1)))
        .collect();
    let parent = policy.types.get(child as usize).map_or(0, |t| t.bounds);
    let (child, parent) = (cil::type_name(policy, child), cil::type_name(policy, parent));
    let (target, class) = (cil::type_name(policy, target), cil::class_name(policy, class));
    format!(
        "putting {} would make an exception, but {child} would then have more than {parent}, which bounds it \
         (class {class}, target {target}): libsepol would not build that",
        names.join(" and ")
    )
}

fn allow(policy: &Policy, step: &Question) -> String {
    let (source, target) = (step.source.type_, step.target.type_);
    let to = if source == target { "self".to_owned() } else { cil::type_name(policy, target) };
    let permissions = cil::class_permissions(policy, step.class, step.permission);
    format!("(allow {} {to} {permissions})", cil::type_name(policy, source))
}

/// Whether constraints, or missing role changes, take away what rules might allow.
fn is_constrained(world: &World<'_>, question: &Question) -> bool {
    world.steps(question).iter().any(|step| !world.taken_away(step).is_empty())
}

/// Memberships by which constraints make an exception, and what prevents them.
#[derive(Default)]
struct Found {
    put: Vec<Membership>,
    /// The neverallow statements that they violate.
    forbidden: Vec<Place>,
    /// Whether a bounded type would have more than its parent.
    exceeds: Option<Excess>,
}

/// The smallest number of types put in attributes by which constraints make an exception; if possible, one that nothing
/// prevents.
fn memberships(world: &World<'_>, statements: &Statements<'_>, question: &Question) -> Option<Found> {
    let candidates = candidates(world, question);
    let exceeded = if candidates.is_empty() { BTreeSet::new() } else { bounds::excesses(world) };
    let mut second_best: Option<Found> = None;
    for put in choices(&candidates) {
        let mut simple = world.clone();
        for (type_, attribute) in &put {
            let set = simple.sets.entry(*type_).or_insert_with(|| world.set(*type_).clone());
            set.insert(*attribute);
        }
        // Attributes that others define are examined only if this helps so far, because that costs more.
        if is_constrained(&simple, question) {
            continue;
        }
        let supposed = with_memberships(world, statements, &put);
        if is_constrained(&supposed, question) {
            continue;
        }
        let forbidden = violated(world, &supposed, statements, &put);
        let exceeds = bounds::excesses(&supposed).difference(&exceeded).next().copied();
        let is_free = forbidden.is_empty() && exceeds.is_none();
        let found = Found { put, forbidden, exceeds };
        if is_free {
            return Some(found);
        }
        if second_best.as_ref().is_none_or(|best| best.exceeds.is_some() && found.exceeds.is_none()) {
            second_best = Some(found);
        }
    }
    second_best
}

/// The attributes in constraints that do not hold, each with the type that could be put in it.
fn candidates(world: &World<'_>, question: &Question) -> Vec<Membership> {
    let policy = world.policy;
    let mut candidates = Vec::new();
    for step in world.steps(question) {
        let constraints = policy.classes.get(step.class as usize).map_or(&[][..], |class| &class.constraints);
        for missing in world.taken_away(&step) {
            let Missing::Constraint(index) = missing else { continue };
            for term in constraints.get(index).into_iter().flat_map(|constraint| &constraint.expression) {
                let Term::In { party, kind: NameKind::Type, names, written, .. } = term else { continue };
                let type_ = if *party == Party::Target { step.target.type_ } else { step.source.type_ };
                for name in cil::written_types(policy, names, written).iter() {
                    let is_attribute = policy.types.get(name as usize).is_some_and(|t| t.attribute);
                    if is_attribute && !world.set(type_).has(name) && !candidates.contains(&(type_, name)) {
                        candidates.push((type_, name));
                    }
                }
            }
        }
    }
    candidates.truncate(MAX_CANDIDATES);
    candidates
}

/// Combinations of one, two or three candidates, the smallest first.
fn choices(candidates: &[Membership]) -> Vec<Vec<Membership>> {
    let together = if candidates.len() <= MAX_FOR_TRIPLES { 3 } else { 2 };
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..together {
        let longer = |choice: &Vec<usize>| {
            let first = choice.last().map_or(0, |last| last + 1);
            let choice = choice.clone();
            (first..candidates.len()).map(move |next| [&choice[..], &[next]].concat())
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all.iter().skip(1).map(|choice| choice.iter().map(|index| candidates[*index]).collect()).collect()
}

/// The policy with types put in attributes.
fn with_memberships<'a>(world: &World<'a>, statements: &Statements<'_>, put: &[Membership]) -> World<'a> {
    let mut supposed = world.clone();
    for (type_, _) in put {
        supposed.sets.insert(*type_, statements.attributes.supposing(put).set(*type_));
    }
    supposed
}

/// The neverallow statements that forbid a rule for just this.
fn forbids(statements: &Statements<'_>, step: &Question, put: &[Membership]) -> Vec<Place> {
    let (sources, targets) = (only(step.source.type_), only(step.target.type_));
    let forbids = |never: &Neverallow| never.forbids(&sources, &targets, step.class) & step.permission != 0;
    statements.neverallows(put).into_iter().filter(forbids).map(|never| never.place).collect()
}

/// The neverallow statements that rules violate after types were put in attributes, and did not violate before.
fn violated(world: &World<'_>, supposed: &World<'_>, statements: &Statements<'_>, put: &[Membership]) -> Vec<Place> {
    let policy = world.policy;
    let (before, after) = (statements.neverallows(&[]), statements.neverallows(put));
    let mut violated = vec![false; after.len()];
    for (type_, _) in put {
        let set = supposed.set(*type_);
        let rules = policy.rules.iter().filter(|rule| rule.kind == RuleKind::Allow);
        for rule in rules.filter(|rule| set.has(rule.source) || set.has(rule.target)) {
            let (was_sources, was_targets) = (world.types(rule.source), world.types(rule.target));
            let (sources, targets) = (supposed.types(rule.source), supposed.types(rule.target));
            for ((never, was), violated) in after.iter().zip(&before).zip(&mut violated) {
                *violated = *violated
                    || never.forbids(&sources, &targets, rule.class) & rule.data != 0
                        && was.forbids(&was_sources, &was_targets, rule.class) & rule.data == 0;
            }
        }
    }
    after.into_iter().zip(violated).filter(|(_, violated)| *violated).map(|(never, _)| never.place).collect()
}
