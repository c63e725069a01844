use super::*;
use crate::model::{
    Bits,
    Comparison::{self, Dom, DomBy, Eq, Incomp, Neq},
    Constraint, Level, NameKind, Pair, Party, Range, Term,
};

fn named(party: Party, kind: NameKind, comparison: Comparison, names: &[u32]) -> Term {
    Term::In { party, kind, comparison, names: names.iter().copied().collect(), written: Bits::default() }
}

/// A policy that allows everything on files, and constrains writing.
fn constrained(expressions: &[&[Term]]) -> Policy {
    let mut policy = policy();
    let all = [A, B, C].into_iter().flat_map(|s| [A, B, C].map(|t| allow(s, t, FILE, READ | WRITE | APPEND)));
    policy.rules = all.collect();
    policy.classes[FILE as usize].constraints =
        expressions.iter().map(|e| Constraint { permissions: WRITE, expression: e.to_vec() }).collect();
    policy
}

/// Whether writing is allowed; reading is in any case.
fn may_write(server: &Server, source: tg_context, target: tg_context) -> bool {
    let allowed = server.decide(source, target, FILE).allowed;
    assert_eq!(allowed & (READ | APPEND), READ | APPEND, "not constrained");
    allowed & WRITE != 0
}

#[test]
fn compares_users_roles_and_types() {
    let [low, high, other] = [context(ALICE, USER_R, A), context(BOB, ADMIN_R, B), context(ALICE, OBJECT_R, A)];
    let cases = [
        // The two that are compared, how, and whether writing is allowed: low-high, high-low, low-low, low-other.
        (Pair::Users, Eq, [false, false, true, true]),
        (Pair::Users, Neq, [true, true, false, false]),
        (Pair::Types, Eq, [false, false, true, true]),
        (Pair::Types, Neq, [true, true, false, false]),
        (Pair::Roles, Eq, [false, false, true, false]),
        (Pair::Roles, Neq, [true, true, false, true]),
        (Pair::Roles, Dom, [false, true, true, false]),
        (Pair::Roles, DomBy, [true, false, true, false]),
        (Pair::Roles, Incomp, [false, false, false, true]),
    ];
    for (pair, comparison, expected) in cases {
        let server = Server::new(&constrained(&[&[Term::Compare(pair, comparison)]]));
        let found = [(low, high), (high, low), (low, low), (low, other)].map(|(s, t)| may_write(&server, s, t));
        assert_eq!(found, expected, "{pair:?} {comparison:?}");
    }
}

fn level(sensitivity: u32, categories: &[u32]) -> Level {
    Level { sensitivity, categories: categories.iter().copied().collect() }
}

#[test]
fn compares_levels() {
    // By pair: the six levels compared are l1 = s1:c1, h1 = s2:c1,c2, l2 = s1:c1, h2 = s2:c1,c900.
    let equal = [true, false, true, true, false];
    let below = [false, true, false, true, false];
    let above = [false, true, true, false, false];
    let beside = [false, true, false, false, true];
    let cases = [
        (Pair::L1L2, equal),
        (Pair::L1H2, below),
        (Pair::H1L2, above),
        (Pair::H1H2, beside),
        (Pair::L1H1, below),
        (Pair::L2H2, below),
    ];
    for (pair, expected) in cases {
        for (comparison, expected) in [Eq, Neq, Dom, DomBy, Incomp].into_iter().zip(expected) {
            let mut policy = constrained(&[&[Term::Compare(pair, comparison)]]);
            policy.mls = true;
            let mut server = Server::new(&policy);
            let mut known = |sensitivity, categories| server.levels.intern(&level(sensitivity, categories)).unwrap();
            let (low, left, right) = (known(1, &[1]), known(2, &[1, 2]), known(2, &[1, 900]));
            let source = tg_context { low, high: left, ..object(A) };
            let target = tg_context { low, high: right, ..object(B) };
            assert_eq!(may_write(&server, source, target), expected, "{pair:?} {comparison:?}");
        }
    }
}

#[test]
fn looks_for_names_of_each_party_and_kind() {
    let kinds = [(NameKind::User, [BOB]), (NameKind::Role, [ADMIN_R]), (NameKind::Type, [B])];
    let parties = [Party::Source, Party::Target];
    for (kind, names) in kinds {
        for party in parties {
            let within = Server::new(&constrained(&[&[named(party, kind, Eq, &names)]]));
            let without = Server::new(&constrained(&[&[named(party, kind, Neq, &names)]]));
            let (mine, theirs) = (context(ALICE, USER_R, A), context(BOB, ADMIN_R, B));
            for (source, target) in [(mine, theirs), (theirs, mine), (mine, mine), (theirs, theirs)] {
                let looked_at = if party == Party::Source { source } else { target };
                let expected = looked_at == theirs;
                assert_eq!(may_write(&within, source, target), expected, "{party:?} {kind:?}");
                assert_eq!(may_write(&without, source, target), !expected, "not {party:?} {kind:?}");
            }
        }
    }
}

/// User 2, role 2 and type 2 are different names, in sets that have the same numbers.
#[test]
fn tells_kinds_of_names_apart() {
    let only = |kind| named(Party::Source, kind, Eq, &[2]);
    let policy = constrained(&[&[only(NameKind::User), only(NameKind::Type), Term::Or]]);
    let server = Server::new(&policy);
    assert!(!may_write(&server, context(ALICE, USER_R, A), object(A)), "only the role has the number");
    assert!(may_write(&server, context(BOB, ADMIN_R, A), object(A)));
    assert!(may_write(&server, context(ALICE, ADMIN_R, B), object(A)));
}

#[test]
fn joins_values_as_written() {
    let [a, b, same] = [
        named(Party::Source, NameKind::Type, Eq, &[A]),
        named(Party::Target, NameKind::Type, Eq, &[B]),
        Term::Compare(Pair::Types, Eq),
    ];
    // (t1 == a and not t2 == b) or t1 == t2
    let expression = [a, b, Term::Not, Term::And, same, Term::Or];
    let server = Server::new(&constrained(&[&expression]));
    let found = [(A, A), (A, B), (A, C), (B, A), (B, B), (C, B)].map(|(s, t)| may_write(&server, object(s), object(t)));
    assert_eq!(found, [true, false, true, false, true, false]);
}

#[test]
fn needs_every_constraint() {
    let a = named(Party::Source, NameKind::Type, Eq, &[A]);
    let b = named(Party::Target, NameKind::Type, Eq, &[B]);
    let mut policy = constrained(&[&[a], &[b]]);
    policy.classes[FILE as usize].constraints[1].permissions = APPEND | WRITE;
    let server = Server::new(&policy);
    let allowed = |s, t| server.allowed(s, t, FILE);
    assert_eq!([allowed(A, B), allowed(A, C), allowed(C, B), allowed(C, C)], [7, READ, READ | APPEND, READ]);
}

#[test]
fn constrains_only_the_class_that_says_so() {
    let mut policy = constrained(&[&[named(Party::Source, NameKind::Type, Eq, &[C])]]);
    policy.rules.push(allow(A, B, SOCKET, WRITE));
    let server = Server::new(&policy);
    assert_eq!((server.allowed(A, B, FILE), server.allowed(A, B, SOCKET)), (READ | APPEND, WRITE));
}

#[test]
fn denies_a_new_role_without_role_allow() {
    let mut policy = policy();
    policy.rules = vec![allow(A, B, PROCESS, 7), allow(A, B, FILE, 7)];
    policy.role_allows = vec![(USER_R, ADMIN_R)];
    // A permission of that name, of a class that is not processes.
    policy.classes[FILE as usize].permissions[1] = "transition".to_owned();
    let server = Server::new(&policy);
    let allowed = |from, to, class| server.decide(context(ALICE, from, A), context(ALICE, to, B), class).allowed;
    assert_eq!(allowed(USER_R, ADMIN_R, PROCESS), 7);
    assert_eq!(allowed(ADMIN_R, USER_R, PROCESS), 7 & !(TRANSITION | DYNTRANSITION), "not the other way");
    assert_eq!(allowed(ADMIN_R, ADMIN_R, PROCESS), 7, "no new role");
    assert_eq!(allowed(ADMIN_R, USER_R, FILE), 7, "processes only");
}

#[test]
fn validates_relabelling() {
    let mut policy = policy();
    policy.classes[FILE as usize].validatetrans = vec![
        vec![named(Party::Task, NameKind::Type, Eq, &[C]), Term::Compare(Pair::Types, Eq), Term::Or],
        vec![Term::Compare(Pair::L1L2, DomBy)],
    ];
    policy.mls = true;
    policy.users[BOB as usize].range = Range { low: level(1, &[]), high: level(2, &[]) };
    let mut server = Server::new(&policy);
    let [s1, s2] = [1, 2].map(|sensitivity| server.levels.intern(&level(sensitivity, &[])).unwrap());
    let at = |type_, low| tg_context { low, high: low, ..object(type_) };
    let validate = |source, target, task, class| {
        let question = tg_question { source, target, task: object(task), class, ..tg_question::default() };
        server.tables.validate(&server.levels, &question)
    };
    assert!(validate(at(A, s1), at(B, s2), C, FILE));
    assert!(!validate(at(A, s1), at(B, s2), A, FILE), "the task is none that may");
    assert!(validate(at(A, s1), at(A, s2), A, FILE), "the type stays");
    assert!(!validate(at(A, s2), at(A, s1), C, FILE), "the level sinks");
    assert!(validate(at(A, s2), at(B, s1), A, PROCESS), "a class without validatetrans");
}

#[test]
fn refuses_constraints_that_the_kernel_does_not_evaluate() {
    let task = named(Party::Task, NameKind::Type, Eq, &[A]);
    let same = Term::Compare(Pair::Types, Eq);
    let cases: [(&[Term], &str); 7] = [
        (&[Term::Compare(Pair::Types, Dom)], "dominance of users or types"),
        (&[Term::Compare(Pair::Users, Incomp)], "dominance of users or types"),
        (&[named(Party::Source, NameKind::Role, DomBy, &[2])], "only == and !="),
        (&[task], "only validatetrans"),
        (&[same.clone(), Term::And], "an operator without values"),
        (&[same.clone(), same], "values without an operator"),
        (&[], "values without an operator, or none"),
    ];
    for (expression, why) in cases {
        let error = refused(&constrained(&[expression])).to_string();
        assert!(error.contains(why) && error.contains("class file"), "{error}");
    }
}
