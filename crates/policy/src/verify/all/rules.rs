//! The rules of one source after the other: each rule that holds is applied to each type that its target stands for.

use std::{collections::HashMap, iter};

use crate::model::{Condition, ExtendedRule, Logic, Policy, Rule, RuleKind};

/// What rules say about a source, a target and a class.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    pub(super) allow: u32,
    pub(super) auditallow: u32,
    pub(super) dontaudit: u32,
    /// Types for new objects; 0: no rule says.
    pub(super) transition: u32,
    pub(super) member: u32,
    pub(super) change: u32,
    /// The place of the range transition plus 1; 0: there is none.
    pub(super) range: u32,
}

/// The rules that hold, by the type or attribute that they name as source.
#[derive(Debug)]
pub(super) struct Rules<'p> {
    policy: &'p Policy,
    plain: Vec<Vec<&'p Rule>>,
    extended: Vec<Vec<&'p ExtendedRule>>,
    /// Range transitions' places.
    ranges: Vec<Vec<u32>>,
}

impl<'p> Rules<'p> {
    pub(super) fn new(policy: &'p Policy) -> Self {
        let mut rules = Self {
            policy,
            plain: vec![Vec::new(); policy.types.len()],
            extended: vec![Vec::new(); policy.types.len()],
            ranges: vec![Vec::new(); policy.types.len()],
        };
        for rule in policy.rules.iter().filter(|rule| holds(policy, rule.condition)) {
            rules.plain[rule.source as usize].push(rule);
        }
        // The kernel looks for conditional rules on new types only if there is no other.
        rules.plain.iter_mut().for_each(|rules| rules.sort_by_key(|rule| rule.condition.is_some()));
        for rule in policy.extended_rules.iter().filter(|rule| holds(policy, rule.condition)) {
            rules.extended[rule.source as usize].push(rule);
        }
        for (rule, place) in policy.range_transitions.iter().zip(0..) {
            rules.ranges[rule.source as usize].push(place);
        }
        rules
    }

    /// Enters in `row` what rules say of a source type, by itself and by its attributes. What new objects get, rules say by
    /// the type alone.
    pub(super) fn fill(&self, source: u32, row: &mut Row<'p>) {
        row.clear();
        for name in self.policy.types[source as usize].set.iter() {
            for rule in &self.plain[name as usize] {
                match rule.kind {
                    RuleKind::Allow | RuleKind::AuditAllow | RuleKind::DontAudit => {
                        for target in self.stands_for(rule.target) {
                            row.at_mut(target, rule.class).permit(rule);
                        }
                    }
                    RuleKind::Transition | RuleKind::Member | RuleKind::Change if name == source => {
                        row.at_mut(rule.target, rule.class).name(rule);
                    }
                    RuleKind::Transition | RuleKind::Member | RuleKind::Change => {}
                }
            }
            for rule in &self.extended[name as usize] {
                for target in self.stands_for(rule.target) {
                    row.extended.entry((target, rule.class)).or_default().push(rule);
                }
            }
        }
        for place in &self.ranges[source as usize] {
            let rule = &self.policy.range_transitions[*place as usize];
            let range = &mut row.at_mut(rule.target, rule.class).range;
            *range = if *range == 0 { place + 1 } else { *range };
        }
    }

    /// The type itself, or an attribute's types.
    fn stands_for(&self, name: u32) -> impl Iterator<Item = u32> + '_ {
        let type_ = &self.policy.types[name as usize];
        let members = type_.set.iter().filter(move |_| type_.attribute);
        let is_type = |number: &u32| !self.policy.types[*number as usize].attribute;
        iter::once(name).chain(members).filter(is_type)
    }
}

impl Cell {
    fn permit(&mut self, rule: &Rule) {
        match rule.kind {
            RuleKind::Allow => self.allow |= rule.data,
            RuleKind::AuditAllow => self.auditallow |= rule.data,
            _ => self.dontaudit |= rule.data,
        }
    }

    /// Of several rules the first one counts.
    fn name(&mut self, rule: &Rule) {
        let type_ = match rule.kind {
            RuleKind::Transition => &mut self.transition,
            RuleKind::Member => &mut self.member,
            _ => &mut self.change,
        };
        *type_ = if *type_ == 0 { rule.data } else { *type_ };
    }
}

/// What rules say about one source, by target and class.
#[derive(Debug)]
pub(super) struct Row<'p> {
    classes: usize,
    cells: Vec<Cell>,
    /// The rules of extended permissions, where there are any.
    pub(super) extended: HashMap<(u32, u32), Vec<&'p ExtendedRule>>,
}

impl Row<'_> {
    pub(super) fn new(policy: &Policy) -> Self {
        let classes = policy.classes.len();
        Self { classes, cells: vec![Cell::default(); policy.types.len() * classes], extended: HashMap::new() }
    }

    pub(super) fn at(&self, target: u32, class: u32) -> &Cell {
        &self.cells[target as usize * self.classes + class as usize]
    }

    fn at_mut(&mut self, target: u32, class: u32) -> &mut Cell {
        &mut self.cells[target as usize * self.classes + class as usize]
    }

    fn clear(&mut self) {
        self.cells.fill(Cell::default());
        self.extended.clear();
    }
}

/// Whether the booleans, as they are, give a condition the value that a rule needs.
fn holds(policy: &Policy, condition: Option<Condition>) -> bool {
    let Some(condition) = condition else { return true };
    let mut values: Vec<bool> = Vec::new();
    for term in &policy.conditions[condition.condition as usize] {
        if let Logic::Boolean(number) = term {
            values.push(policy.booleans[*number as usize].value);
            continue;
        }
        let last = values.pop().unwrap_or_default();
        if *term == Logic::Not {
            values.push(!last);
            continue;
        }
        let first = values.pop().unwrap_or_default();
        values.push(match term {
            Logic::And => first && last,
            Logic::Or => first || last,
            Logic::Eq => first == last,
            _ => first != last,
        });
    }
    values == [condition.value]
}
