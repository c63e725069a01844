//! Which domains a rule lets in: those that can enter its source, and those that a wider rule would let in as well.

use super::{Question, attributes::only, world::World};
use crate::{
    cil,
    model::{Policy, RuleKind},
};

/// The permissions by which a process enters another type.
const ENTRANCES: [&str; 2] = ["transition", "dyntransition"];

/// The domains that a rule for a question's types would let in.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Admitted {
    /// The source type of the rule.
    pub domain: String,
    /// The domains whose processes may enter it by the rules, constraints aside.
    pub entered_from: Vec<String>,
    /// The attributes of the source, for which a wider rule could be written. The narrowest comes first.
    pub wider: Vec<Wider>,
}

/// An attribute of the source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Wider {
    /// The attribute's name.
    pub attribute: String,
    /// How many types it has.
    pub types: usize,
}

/// The domains that a rule for a question's source would let in.
pub(super) fn by(world: &World<'_>, question: &Question) -> Admitted {
    let (policy, source) = (world.policy, question.source.type_);
    let attributes = world.set(source).iter().filter_map(|number| policy.types.get(number as usize));
    let mut wider: Vec<Wider> = attributes
        .filter(|t| t.attribute)
        .map(|t| Wider { attribute: t.name.clone(), types: t.set.iter().count() })
        .collect();
    wider.sort_by(|one, other| (one.types, &one.attribute).cmp(&(other.types, &other.attribute)));
    Admitted { domain: cil::type_name(policy, source), entered_from: entered_from(world, source), wider }
}

/// The types whose processes may enter type `domain` by the rules.
fn entered_from(world: &World<'_>, domain: u32) -> Vec<String> {
    let policy = world.policy;
    let Some((class, entrances)) = entrances(policy) else { return Vec::new() };
    let targets = world.set(domain);
    let lets = policy.rules.iter().filter(|rule| {
        rule.kind == RuleKind::Allow
            && rule.class == class
            && rule.data & entrances != 0
            && targets.has(rule.target)
            && policy.holds(rule.condition)
    });
    let mut sources = only(domain);
    lets.flat_map(|rule| world.types(rule.source).iter().collect::<Vec<_>>()).for_each(|type_| sources.insert(type_));
    let others = sources.iter().filter(|type_| *type_ != domain);
    let mut names: Vec<String> = others.map(|type_| cil::type_name(policy, type_)).collect();
    names.sort_unstable();
    names
}

/// Class process, and its permissions to change the domain.
fn entrances(policy: &Policy) -> Option<(u32, u32)> {
    let (number, class) = (0..).zip(&policy.classes).find(|(_, class)| class.name == "process")?;
    let bits = (0..).zip(&class.permissions).filter(|(_, name)| ENTRANCES.contains(&name.as_str()));
    Some((number, bits.fold(0, |vector, (bit, _): (u32, _)| vector | 1 << bit)))
}
