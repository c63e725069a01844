//! Constraints, role rules and valid contexts, read from the model and applied one after the other.

use std::collections::{HashMap, HashSet};

use tollgate_abi::tables::{TG_NO_LEVEL, TG_OBJECT_R, tg_context};

use super::super::contexts;
use crate::model::{Class, Comparison, Level, NameKind, Pair, Party, Policy, Range, Term};

/// The contexts of a question: source, target, and of validatetrans the task.
pub(super) type Parties = [tg_context; 3];

/// Levels by identifier, and which dominates which.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) levels: Vec<Level>,
    identifiers: HashMap<Level, u32>,
    dominates: Vec<bool>,
}

impl Order {
    pub(super) fn new(levels: Vec<Level>) -> Self {
        let identifiers = levels.iter().cloned().zip(0..).collect();
        let dominates = levels.iter().flat_map(|a| levels.iter().map(|b| contexts::dominates(a, b))).collect();
        Self { levels, identifiers, dominates }
    }

    pub(super) fn dominates(&self, a: u32, b: u32) -> bool {
        self.dominates[a as usize * self.levels.len() + b as usize]
    }

    /// The identifier of a level; `TG_NO_LEVEL`: nothing asks about it.
    pub(super) fn find(&self, level: &Level) -> u32 {
        self.identifiers.get(level).copied().unwrap_or(TG_NO_LEVEL)
    }

    fn compare(&self, a: u32, b: u32, comparison: Comparison) -> bool {
        let (above, below) = (self.dominates(a, b), self.dominates(b, a));
        match comparison {
            Comparison::Eq => above && below,
            Comparison::Neq => !(above && below),
            Comparison::Dom => above,
            Comparison::DomBy => below,
            Comparison::Incomp => !above && !below,
        }
    }
}

/// The policy's statements other than rules of types.
#[derive(Debug)]
pub(super) struct Plain<'p> {
    pub(super) policy: &'p Policy,
    pub(super) order: Order,
    role_allows: HashSet<(u32, u32)>,
    /// The identifiers of each user's range.
    users: Vec<(u32, u32)>,
    /// Of each level, whether the policy has it.
    has_level: Vec<bool>,
}

impl<'p> Plain<'p> {
    pub(super) fn new(policy: &'p Policy, order: Order) -> Self {
        let has = |level: &Level| {
            let sensitivity = policy.sensitivities.get(level.sensitivity as usize);
            let admits = |all: &crate::model::Sensitivity| level.categories.iter().all(|one| all.categories.has(one));
            level.sensitivity != 0 && sensitivity.is_some_and(admits)
        };
        let of_user = |range: &Range| (order.find(&range.low), order.find(&range.high));
        Self {
            role_allows: policy.role_allows.iter().copied().collect(),
            users: policy.users.iter().map(|user| of_user(&user.range)).collect(),
            has_level: order.levels.iter().map(has).collect(),
            policy,
            order,
        }
    }

    /// A term that is no operator.
    pub(super) fn term(&self, term: &Term, parties: &Parties) -> bool {
        let [s, t, _] = parties;
        let levels = |a, b, comparison: &Comparison| self.order.compare(a, b, *comparison);
        match term {
            Term::Not | Term::And | Term::Or => false,
            Term::Compare(Pair::Users, comparison) => (s.user == t.user) == (*comparison == Comparison::Eq),
            Term::Compare(Pair::Types, comparison) => (s.type_ == t.type_) == (*comparison == Comparison::Eq),
            Term::Compare(Pair::Roles, comparison) => self.roles(s.role.into(), t.role.into(), *comparison),
            Term::Compare(Pair::L1L2, comparison) => levels(s.low, t.low, comparison),
            Term::Compare(Pair::L1H2, comparison) => levels(s.low, t.high, comparison),
            Term::Compare(Pair::H1L2, comparison) => levels(s.high, t.low, comparison),
            Term::Compare(Pair::H1H2, comparison) => levels(s.high, t.high, comparison),
            Term::Compare(Pair::L1H1, comparison) => levels(s.low, s.high, comparison),
            Term::Compare(Pair::L2H2, comparison) => levels(t.low, t.high, comparison),
            Term::In { party, kind, comparison, names, .. } => {
                let context = match party {
                    Party::Source => &parties[0],
                    Party::Target => &parties[1],
                    Party::Task => &parties[2],
                };
                let number = match kind {
                    NameKind::User => context.user.into(),
                    NameKind::Role => context.role.into(),
                    NameKind::Type => context.type_,
                };
                names.has(number) == (*comparison == Comparison::Eq)
            }
        }
    }

    fn roles(&self, a: u32, b: u32, comparison: Comparison) -> bool {
        let above = |a: u32, b: u32| self.policy.roles.get(a as usize).is_some_and(|role| role.dominates.has(b));
        match comparison {
            Comparison::Eq => a == b,
            Comparison::Neq => a != b,
            Comparison::Dom => above(a, b),
            Comparison::DomBy => above(b, a),
            Comparison::Incomp => !above(a, b) && !above(b, a),
        }
    }

    /// Whether an expression holds (`constraint_expr_eval`).
    fn expression(&self, expression: &[Term], parties: &Parties) -> bool {
        let mut values: Vec<bool> = Vec::new();
        for term in expression {
            let mut pop = || values.pop().unwrap_or_default();
            let value = match term {
                Term::Not => !pop(),
                Term::And => pop() & pop(),
                Term::Or => pop() | pop(),
                term => self.term(term, parties),
            };
            values.push(value);
        }
        values == [true]
    }

    /// The permissions of a class that neither constraints nor role rules forbid.
    pub(super) fn left(&self, class: &Class, parties: &Parties) -> u32 {
        let forbidden = class.constraints.iter().filter(|constraint| !self.expression(&constraint.expression, parties));
        let mut left = forbidden.fold(u32::MAX, |left, constraint| left & !constraint.permissions);
        if !self.may_change_role(parties) {
            left &= !changes_role(class);
        }
        left
    }

    /// Whether a role may become another.
    pub(super) fn may_change_role(&self, parties: &Parties) -> bool {
        let [s, t, _] = parties;
        s.role == t.role || self.role_allows.contains(&(s.role.into(), t.role.into()))
    }

    /// Whether the task may relabel an object from source to target.
    pub(super) fn may_relabel(&self, class: &Class, parties: &Parties) -> bool {
        class.validatetrans.iter().all(|expression| self.expression(expression, parties))
    }

    /// The levels of a user's range.
    pub(super) fn range_of(&self, user: u16) -> (u32, u32) {
        self.users[usize::from(user)]
    }

    /// Whether the policy permits a context (`policydb_context_isvalid`).
    pub(super) fn is_valid(&self, context: &tg_context) -> bool {
        let tg_context { user, role, type_, low, high } = *context;
        let (Some(of_user), Some(of_role)) =
            (self.policy.users.get(usize::from(user)), self.policy.roles.get(usize::from(role)))
        else {
            return false;
        };
        let object = u32::from(role) == TG_OBJECT_R;
        let has_role = object || of_role.types.has(type_) && of_user.roles.has(role.into());
        if type_ == 0 || !has_role {
            return false;
        }
        if !self.policy.mls {
            return true;
        }
        let has = |level: u32| self.has_level.get(level as usize).is_some_and(|has| *has);
        if !has(low) || !has(high) || !self.order.dominates(high, low) {
            return false;
        }
        let (least, greatest) = self.range_of(user);
        object || self.order.dominates(low, least) && self.order.dominates(greatest, high)
    }
}

/// The permissions that need a role rule if the roles differ.
pub(super) fn changes_role(class: &Class) -> u32 {
    let bit = |name: &str| class.permissions.iter().position(|of| of == name).map_or(0, |place| 1 << place);
    if class.name == "process" { bit("transition") | bit("dyntransition") } else { 0 }
}
