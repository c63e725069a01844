//! The policy as it is, or as it would be with a few more statements, and what a question lacks there.

use std::collections::HashMap;

use super::{
    Question,
    attributes::{only, put_in},
};
use crate::model::{Bits, Comparison, Context, Level, NameKind, Pair, Party, Policy, Rule, RuleKind, Term};

/// How many parents of a bounded type are followed. The decision tables hold no more (`TG_BOUNDS`).
const MAX_PARENTS: usize = 8;

/// A policy, with the statements that are supposed to be added.
#[derive(Debug, Clone)]
pub(super) struct World<'a> {
    /// The policy as it is.
    pub(super) policy: &'a Policy,
    /// Types with other attributes: the complete set, like [`crate::model::Type::set`].
    pub(super) sets: HashMap<u32, Bits>,
    /// Rules that would be added: source and target type, class, permission.
    pub(super) grants: Vec<(u32, u32, u32, u32)>,
    /// Role changes that would be allowed.
    pub(super) role_allows: Vec<(u32, u32)>,
}

/// Something that a permission needs and that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// No rule allows it.
    Rule,
    /// The process may not change its role.
    RoleAllow,
    /// That constraint of the class does not hold.
    Constraint(usize),
}

impl<'a> World<'a> {
    /// The policy as it is.
    pub(super) fn of(policy: &'a Policy) -> Self {
        Self { policy, sets: HashMap::new(), grants: Vec::new(), role_allows: Vec::new() }
    }

    /// The attributes of a type, and the type itself.
    pub(super) fn set(&self, type_: u32) -> &Bits {
        static NONE: Bits = Bits(Vec::new());
        let own = || self.policy.types.get(type_ as usize).map_or(&NONE, |t| &t.set);
        self.sets.get(&type_).unwrap_or_else(own)
    }

    /// The types of an attribute; for a type, itself.
    pub(super) fn types(&self, name: u32) -> Bits {
        let own = self.policy.types.get(name as usize);
        let mut types = own.filter(|t| t.attribute).map_or_else(|| only(name), |attribute| attribute.set.clone());
        for (type_, set) in &self.sets {
            put_in(&mut types, *type_, set.has(name));
        }
        types
    }

    /// The rules of a kind that name a question's types, class and permission, whether or not their condition holds.
    pub(super) fn rules<'q>(&'q self, kind: RuleKind, question: &'q Question) -> impl Iterator<Item = &'a Rule> + 'q {
        let (sources, targets) = (self.set(question.source.type_), self.set(question.target.type_));
        self.policy.rules.iter().filter(move |rule| {
            rule.kind == kind
                && rule.class == question.class
                && rule.data & question.permission != 0
                && sources.has(rule.source)
                && targets.has(rule.target)
        })
    }

    /// Whether rules allow the permission, constraints aside.
    pub(super) fn granted(&self, question: &Question) -> bool {
        let asked = (question.source.type_, question.target.type_, question.class, question.permission);
        self.grants.contains(&asked)
            || self.rules(RuleKind::Allow, question).any(|rule| self.policy.holds(rule.condition))
    }

    /// What a question lacks, apart from bounds.
    pub(super) fn missing(&self, question: &Question) -> Vec<Missing> {
        let mut missing = self.taken_away(question);
        if !self.granted(question) {
            missing.insert(0, Missing::Rule);
        }
        missing
    }

    /// What takes a question's permission away, whether or not rules allow it.
    pub(super) fn taken_away(&self, question: &Question) -> Vec<Missing> {
        let mut missing = Vec::new();
        let (from, to) = (question.source.role, question.target.role);
        if self.changes_role(question) && !self.may_change_role(from, to) {
            missing.push(Missing::RoleAllow);
        }
        let class = self.policy.classes.get(question.class as usize);
        for (index, constraint) in class.into_iter().flat_map(|class| &class.constraints).enumerate() {
            if constraint.permissions & question.permission != 0
                && !self.holds(&constraint.expression, &question.source, &question.target)
            {
                missing.push(Missing::Constraint(index));
            }
        }
        missing
    }

    /// The question itself, and then one for each parent of a bounded source type, with the target's parent in place of
    /// the target (`type_attribute_bounds_av`). All of them must be allowed.
    pub(super) fn steps(&self, question: &Question) -> Vec<Question> {
        let parent = |type_: u32| self.policy.types.get(type_ as usize).map_or(0, |t| t.bounds);
        let mut steps = vec![question.clone()];
        let mut now = question.clone();
        while parent(now.source.type_) != 0 && steps.len() <= MAX_PARENTS {
            now.source.type_ = parent(now.source.type_);
            now.target.type_ = Some(parent(now.target.type_)).filter(|p| *p != 0).unwrap_or(now.target.type_);
            steps.push(now.clone());
        }
        steps
    }

    /// Whether the kernel would grant it, apart from permissive domains.
    pub(super) fn allows(&self, question: &Question) -> bool {
        self.steps(question).iter().all(|step| self.missing(step).is_empty())
    }

    /// Whether the question concerns a process that changes its role (`context_struct_compute_av`).
    pub(super) fn changes_role(&self, question: &Question) -> bool {
        let Some(class) = self.policy.classes.get(question.class as usize) else { return false };
        let asked = |name: &str| {
            let number = class.permissions.iter().position(|permission| permission == name);
            number.is_some_and(|number| question.permission >> number & 1 == 1)
        };
        class.name == "process"
            && question.source.role != question.target.role
            && (asked("transition") || asked("dyntransition"))
    }

    /// Whether a `roleallow` permits the change.
    pub(super) fn may_change_role(&self, from: u32, to: u32) -> bool {
        self.policy.role_allows.contains(&(from, to)) || self.role_allows.contains(&(from, to))
    }

    /// Whether a constraint's expression holds between two contexts (`constraint_expr_eval`).
    pub(super) fn holds(&self, expression: &[Term], source: &Context, target: &Context) -> bool {
        let mut stack: Vec<bool> = Vec::new();
        for term in expression {
            let mut pop = || stack.pop().unwrap_or(false);
            let value = match term {
                Term::Not => !pop(),
                Term::And => pop() & pop(),
                Term::Or => pop() | pop(),
                leaf => self.leaf(leaf, source, target),
            };
            stack.push(value);
        }
        stack.pop().unwrap_or(false)
    }

    /// Whether a comparison holds between two contexts. An operator does not.
    pub(super) fn leaf(&self, term: &Term, source: &Context, target: &Context) -> bool {
        match term {
            Term::Compare(pair, comparison) => match pair {
                Pair::Users => equality(*comparison, source.user == target.user),
                Pair::Types => equality(*comparison, source.type_ == target.type_),
                Pair::Roles => self.roles(*comparison, source.role, target.role),
                levels => {
                    let (first, second) = compared_levels(*levels, source, target);
                    let (dom, domby) = (dominates(first, second), dominates(second, first));
                    relation(*comparison, dom & domby, dom, domby)
                }
            },
            Term::In { party, kind, comparison, names, written } => {
                let context = if *party == Party::Target { target } else { source };
                let in_set = match kind {
                    NameKind::User => names.has(context.user),
                    NameKind::Role => names.has(context.role),
                    NameKind::Type => self.names_type(context.type_, names, written),
                };
                equality(*comparison, in_set && *party != Party::Task)
            }
            Term::Not | Term::And | Term::Or => false,
        }
    }

    fn roles(&self, comparison: Comparison, first: u32, second: u32) -> bool {
        let dominates = |a: u32, b: u32| self.policy.roles.get(a as usize).is_some_and(|role| role.dominates.has(b));
        relation(comparison, first == second, dominates(first, second), dominates(second, first))
    }

    /// A type with other attributes is in a set according to the names by which the set was written.
    fn names_type(&self, type_: u32, names: &Bits, written: &Bits) -> bool {
        match self.sets.get(&type_) {
            None => names.has(type_),
            Some(set) => {
                let by_name = crate::cil::written_types(self.policy, names, written).iter().any(|name| set.has(name));
                by_name || (written.is_empty() && names.has(type_))
            }
        }
    }
}

/// The two levels that a pair compares. For a pair of something else, the low levels.
pub(super) fn compared_levels<'c>(pair: Pair, source: &'c Context, target: &'c Context) -> (&'c Level, &'c Level) {
    let (s, t) = (&source.range, &target.range);
    match pair {
        Pair::L1H2 => (&s.low, &t.high),
        Pair::H1L2 => (&s.high, &t.low),
        Pair::H1H2 => (&s.high, &t.high),
        Pair::L1H1 => (&s.low, &s.high),
        Pair::L2H2 => (&t.low, &t.high),
        Pair::L1L2 | Pair::Users | Pair::Roles | Pair::Types => (&s.low, &t.low),
    }
}

/// Whether a level is at least as high as another, and has all of its categories.
pub(super) fn dominates(first: &Level, second: &Level) -> bool {
    first.sensitivity >= second.sensitivity && second.categories.iter().all(|c| first.categories.has(c))
}

fn equality(comparison: Comparison, same: bool) -> bool {
    if comparison == Comparison::Neq { !same } else { same }
}

fn relation(comparison: Comparison, same: bool, dom: bool, domby: bool) -> bool {
    match comparison {
        Comparison::Eq => same,
        Comparison::Neq => !same,
        Comparison::Dom => dom,
        Comparison::DomBy => domby,
        Comparison::Incomp => !dom & !domby,
    }
}
