//! Whether a bounded type would have more permissions than its parent. libsepol builds no such policy
//! (`bounds_check_type`).

use std::collections::{BTreeSet, HashMap};

use super::world::World;
use crate::model::{Condition, RuleKind};

/// A child that has permissions of a class on a target which its parent does not have.
pub(super) type Excess = (u32, u32, u32);

/// Where bounded types have more than their parents.
pub(super) fn excesses(world: &World<'_>) -> BTreeSet<Excess> {
    let types = (0..).zip(&world.policy.types);
    let bounded = types.filter(|(_, t)| t.bounds != 0 && !t.attribute).map(|(number, t)| (number, t.bounds));
    bounded.flat_map(|(child, parent)| excess(world, child, parent)).collect()
}

fn excess(world: &World<'_>, child: u32, parent: u32) -> Vec<Excess> {
    let above = permissions(world, parent);
    let has = |target, class, condition| above.get(&(target, class, condition)).copied().unwrap_or(0);
    let mut found = Vec::new();
    for ((target, class, condition), vector) in permissions(world, child) {
        let bounds = world.policy.types.get(target as usize).map_or(0, |t| t.bounds);
        let target_above = if bounds == 0 { target } else { bounds };
        if vector & !(has(target_above, class, None) | has(target_above, class, condition)) != 0 {
            found.push((child, target, class));
        }
    }
    found
}

/// The permissions that rules allow to a type, by target, class and condition.
fn permissions(world: &World<'_>, source: u32) -> HashMap<(u32, u32, Option<Condition>), u32> {
    let set = world.set(source);
    let mut all = HashMap::new();
    for rule in world.policy.rules.iter().filter(|rule| rule.kind == RuleKind::Allow && set.has(rule.source)) {
        for target in world.types(rule.target).iter() {
            *all.entry((target, rule.class, rule.condition)).or_default() |= rule.data;
        }
    }
    all
}
