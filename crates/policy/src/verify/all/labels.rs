//! The contexts of new objects (`security_compute_sid`, `mls_compute_sid`), by the model.

use std::collections::{HashMap, HashSet};

use tollgate_abi::{
    CLASSES,
    tables::{
        TG_OBJECT_R, TG_RANGE_GLBLUB, TG_RANGE_SOURCE_HIGH, TG_RANGE_SOURCE_LOW, TG_RANGE_SOURCE_LOW_HIGH,
        TG_RANGE_TARGET_HIGH, TG_RANGE_TARGET_LOW, TG_RANGE_TARGET_LOW_HIGH, tg_context,
    },
};

use super::{plain::Plain, rules::Cell};
use crate::{
    model::{Bits, Class, Level, NameTransition, Policy, WhoseDefault},
    server::Ask,
};

/// What decides about new objects, apart from what rules say of their types.
#[derive(Debug)]
pub(super) struct Labels<'p> {
    /// Of each class, whether a new object is labelled like its creator: a process, or a socket of the kernel's.
    like_creator: Vec<bool>,
    /// By role, target and class.
    roles: HashMap<(u32, u32, u32), u32>,
    /// Whether a class has role transitions.
    has_roles: Vec<bool>,
    /// Each file name that a rule has, once.
    pub(super) names: Vec<&'p str>,
    /// Each target and class of such rules, once.
    pub(super) places: Vec<(u32, u32)>,
    named: HashMap<(&'p str, u32, u32), Vec<&'p NameTransition>>,
}

/// What is asked: the context of a new object.
#[derive(Debug, Clone, Copy)]
pub(super) struct New<'n> {
    pub(super) ask: Ask,
    pub(super) source: tg_context,
    pub(super) target: tg_context,
    pub(super) class: u32,
    pub(super) name: Option<&'n str>,
}

impl<'p> Labels<'p> {
    pub(super) fn new(policy: &'p Policy) -> Self {
        let socket = |class: &Class| class.name.ends_with("socket") && CLASSES.iter().any(|c| c.name == class.name);
        let mut labels = Self {
            like_creator: policy.classes.iter().map(|class| class.name == "process" || socket(class)).collect(),
            roles: HashMap::new(),
            has_roles: vec![false; policy.classes.len()],
            names: Vec::new(),
            places: Vec::new(),
            named: HashMap::new(),
        };
        for rule in &policy.role_transitions {
            labels.roles.entry((rule.role, rule.target, rule.class)).or_insert(rule.result);
            labels.has_roles[rule.class as usize] = true;
        }
        let (mut names, mut places) = (HashSet::new(), HashSet::new());
        for rule in &policy.name_transitions {
            labels.names.extend(names.insert(rule.name.as_str()).then_some(rule.name.as_str()));
            labels.places.extend(places.insert((rule.target, rule.class)).then_some((rule.target, rule.class)));
            labels.named.entry((&rule.name, rule.target, rule.class)).or_default().push(rule);
        }
        labels
    }

    /// The context, and whether it is valid. It has no levels if its class gets those that both have in common, and there are
    /// none.
    pub(super) fn of(&self, plain: &Plain<'_>, new: &New<'_>, cell: &Cell) -> (tg_context, bool) {
        let New { ask, source: s, target: t, class: number, .. } = *new;
        let class = &plain.policy.classes[number as usize];
        let like_creator = self.like_creator[number as usize];
        let from_target = |default, like_creator: bool| {
            default == WhoseDefault::Target || default == WhoseDefault::None && !like_creator
        };
        let user = if ask == Ask::Member || class.default_user == WhoseDefault::Target { t.user } else { s.user };
        let role = match class.default_role {
            WhoseDefault::Source => s.role,
            WhoseDefault::Target => t.role,
            WhoseDefault::None if like_creator => s.role,
            // Lossless: it is 1.
            WhoseDefault::None => TG_OBJECT_R as u16,
        };
        let default = if from_target(class.default_type, like_creator) { t.type_ } else { s.type_ };
        let rule = match ask {
            Ask::Transition => cell.transition,
            Ask::Member => cell.member,
            Ask::Change => cell.change,
        };
        let type_ = self.named(new).unwrap_or(if rule == 0 { default } else { rule });
        let role = self.role(new).unwrap_or(role);
        match self.range(plain, new, cell) {
            Some((low, high)) => {
                let context = tg_context { user, role, type_, low, high };
                (context, plain.is_valid(&context))
            }
            None => (tg_context { user, role, type_, low: 0, high: 0 }, false),
        }
    }

    fn named(&self, new: &New<'_>) -> Option<u32> {
        let rules = self.named.get(&(new.name?, new.target.type_, new.class))?;
        rules.iter().find(|rule| rule.sources.has(new.source.type_)).map(|rule| rule.result)
    }

    fn role(&self, new: &New<'_>) -> Option<u16> {
        if new.ask != Ask::Transition || !self.has_roles[new.class as usize] {
            return None;
        }
        let role = self.roles.get(&(new.source.role.into(), new.target.type_, new.class))?;
        u16::try_from(*role).ok()
    }

    /// The identifiers of the new levels; `None`: the ranges have nothing in common.
    fn range(&self, plain: &Plain<'_>, new: &New<'_>, cell: &Cell) -> Option<(u32, u32)> {
        let New { ask, source: s, target: t, class, .. } = *new;
        if !plain.policy.mls {
            return Some((0, 0));
        }
        if ask == Ask::Transition && cell.range != 0 {
            let range = &plain.policy.range_transitions[cell.range as usize - 1].range;
            return Some((plain.order.find(&range.low), plain.order.find(&range.high)));
        }
        let default = plain.policy.classes[class as usize].default_range;
        Some(match default {
            _ if ask == Ask::Member => (s.low, s.low),
            TG_RANGE_SOURCE_LOW if ask == Ask::Transition => (s.low, s.low),
            TG_RANGE_SOURCE_HIGH if ask == Ask::Transition => (s.high, s.high),
            TG_RANGE_SOURCE_LOW_HIGH if ask == Ask::Transition => (s.low, s.high),
            TG_RANGE_TARGET_LOW if ask == Ask::Transition => (t.low, t.low),
            TG_RANGE_TARGET_HIGH if ask == Ask::Transition => (t.high, t.high),
            TG_RANGE_TARGET_LOW_HIGH if ask == Ask::Transition => (t.low, t.high),
            TG_RANGE_GLBLUB if ask == Ask::Transition => return in_common(plain, s, t),
            _ if self.like_creator[class as usize] => (s.low, s.high),
            _ => (s.low, s.low),
        })
    }
}

/// What two ranges have in common (`mls_context_glblub`).
fn in_common(plain: &Plain<'_>, s: tg_context, t: tg_context) -> Option<(u32, u32)> {
    let [l1, h1, l2, h2] = [s.low, s.high, t.low, t.high].map(|level| &plain.order.levels[level as usize]);
    if h1.sensitivity < l2.sensitivity || h2.sensitivity < l1.sensitivity {
        return None;
    }
    let level = |sensitivity, a: &Bits, b: &Bits| {
        let categories = a.iter().filter(|category| b.has(*category)).collect();
        plain.order.find(&Level { sensitivity, categories })
    };
    let low = level(l1.sensitivity.max(l2.sensitivity), &l1.categories, &l2.categories);
    let high = level(h1.sensitivity.min(h2.sensitivity), &h1.categories, &h2.categories);
    Some((low, high))
}
