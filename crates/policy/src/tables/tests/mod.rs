//! Small policies made by hand, laid out and asked through the evaluator. What is expected is written by hand from
//! SELinux's rules; the comparison with libsepol is in `against_libsepol`.

mod against_libsepol;
mod constraints;
mod decisions;
mod labels;
mod layout;
mod limits;

use tollgate_abi::tables::{tg_context, tg_decision, tg_question};

use super::{TableLimit, build};
use crate::{
    decide::{Levels, Tables},
    model::{Class, Policy, Role, Rule, RuleKind, Type, User},
};

// Types and attributes of `policy`.
const A: u32 = 1;
const B: u32 = 2;
const C: u32 = 3;
/// An attribute of A and B.
const AB: u32 = 4;
/// An attribute of B and C.
const BC: u32 = 5;
/// An identifier that no type has.
const GAP: u32 = 6;

// Classes, and a permission of theirs each.
const FILE: u32 = 1;
const PROCESS: u32 = 2;
const SOCKET: u32 = 3;
const FOREIGN: u32 = 4;
const READ: u32 = 1;
const WRITE: u32 = 2;
const APPEND: u32 = 4;
const TRANSITION: u32 = 2;
const DYNTRANSITION: u32 = 4;

// Roles and users.
const OBJECT_R: u32 = 1;
const USER_R: u32 = 2;
const ADMIN_R: u32 = 3;
const ALICE: u32 = 1;
const BOB: u32 = 2;

fn class(name: &str, permissions: &[&str]) -> Class {
    let permissions = permissions.iter().map(ToString::to_string).collect();
    Class { name: name.to_owned(), permissions, ..Class::default() }
}

fn policy() -> Policy {
    let type_ = |name: &str, attribute, set: &[u32]| Type {
        name: name.to_owned(),
        attribute,
        set: set.iter().copied().collect(),
        ..Type::default()
    };
    let role = |name: &str, dominates: &[u32]| Role {
        name: name.to_owned(),
        types: [A, B, C].into_iter().collect(),
        dominates: dominates.iter().copied().collect(),
    };
    let user = |name: &str| User {
        name: name.to_owned(),
        roles: [OBJECT_R, USER_R, ADMIN_R].into_iter().collect(),
        ..User::default()
    };
    Policy {
        types: vec![
            Type::default(),
            type_("a", false, &[A, AB]),
            type_("b", false, &[B, AB, BC]),
            type_("c", false, &[C, BC]),
            type_("ab", true, &[A, B]),
            type_("bc", true, &[B, C]),
            Type::default(),
        ],
        classes: vec![
            Class::default(),
            class("file", &["read", "write", "append"]),
            class("process", &["fork", "transition", "dyntransition"]),
            class("tcp_socket", &["create"]),
            class("their_socket", &["create"]),
        ],
        roles: vec![
            Role::default(),
            role("object_r", &[OBJECT_R]),
            role("user_r", &[USER_R]),
            role("admin_r", &[ADMIN_R, USER_R]),
        ],
        users: vec![User::default(), user("alice"), user("bob")],
        ..Policy::default()
    }
}

fn rule(kind: RuleKind, source: u32, target: u32, class: u32, data: u32) -> Rule {
    Rule { kind, source, target, class, data, condition: None }
}

fn allow(source: u32, target: u32, class: u32, data: u32) -> Rule {
    rule(RuleKind::Allow, source, target, class, data)
}

fn context(user: u32, role: u32, type_: u32) -> tg_context {
    tg_context { user: user as u16, role: role as u16, type_, low: 0, high: 0 }
}

/// An object of a type.
fn object(type_: u32) -> tg_context {
    context(ALICE, OBJECT_R, type_)
}

/// A policy's tables and levels, ready for questions.
struct Server {
    tables: Tables,
    levels: Levels,
}

impl Server {
    fn new(policy: &Policy) -> Self {
        let laid = build(policy).unwrap();
        Self { tables: Tables::new(&laid.tables).unwrap(), levels: Levels::new(&laid.levels).unwrap() }
    }

    fn decide(&self, source: tg_context, target: tg_context, class: u32) -> tg_decision {
        let question = tg_question { source, target, class, ..tg_question::default() };
        self.tables.decide(&self.levels, &question).unwrap()
    }

    /// What a process of a type may do to an object of a type.
    fn allowed(&self, source: u32, target: u32, class: u32) -> u32 {
        self.decide(context(ALICE, USER_R, source), object(target), class).allowed
    }
}

/// What the first limit is that a policy exceeds.
fn refused(policy: &Policy) -> TableLimit {
    build(policy).map(|laid| laid.tables.len()).unwrap_err()
}
