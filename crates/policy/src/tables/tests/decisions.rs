use super::*;
use crate::model::{Boolean, Condition, ExtendedRule, Extension, Logic};

/// What each pair of A, B, C is allowed, by source, then target.
fn all(server: &Server, class: u32) -> [[u32; 3]; 3] {
    [A, B, C].map(|source| [A, B, C].map(|target| server.allowed(source, target, class)))
}

#[test]
fn allows_what_rules_of_any_pair_of_attributes_allow() {
    let rules = vec![allow(AB, BC, FILE, READ), allow(A, BC, FILE, WRITE), allow(AB, C, FILE, APPEND)];
    let server = Server::new(&Policy { rules, ..policy() });
    assert_eq!(
        all(&server, FILE),
        [[0, READ | WRITE, READ | WRITE | APPEND], [0, READ, READ | APPEND], [0, 0, 0]],
        "a row a source"
    );
    assert_eq!(all(&server, PROCESS), [[0; 3]; 3], "rules are of one class");
}

#[test]
fn allows_a_whole_attribute_what_it_is_allowed_to_itself() {
    let server = Server::new(&Policy { rules: vec![allow(AB, AB, FILE, READ)], ..policy() });
    assert_eq!(all(&server, FILE), [[READ, READ, 0], [READ, READ, 0], [0; 3]]);
}

#[test]
fn allows_a_type_to_itself_only_what_self_allows() {
    let rules = vec![allow(A, A, FILE, READ), allow(B, B, FILE, WRITE), allow(AB, AB, FILE, APPEND)];
    let server = Server::new(&Policy { rules, ..policy() });
    assert_eq!(all(&server, FILE), [[READ | APPEND, APPEND, 0], [APPEND, WRITE | APPEND, 0], [0; 3]]);
    assert_eq!(server.tables.header().rows, 2, "self puts no type in a row of its own: A and B, and C");
}

#[test]
fn denies_attributes_and_gaps_everything() {
    let rules = vec![allow(AB, AB, FILE, READ), allow(BC, AB, FILE, READ), allow(AB, BC, FILE, READ)];
    let server = Server::new(&Policy { rules, ..policy() });
    for number in [0, AB, BC, GAP] {
        for type_ in [A, B, C, number] {
            assert_eq!((server.allowed(number, type_, FILE), server.allowed(type_, number, FILE)), (0, 0));
        }
    }
}

#[test]
fn audits_what_rules_say() {
    let rules = vec![
        rule(RuleKind::AuditAllow, AB, BC, FILE, READ),
        rule(RuleKind::DontAudit, A, BC, FILE, WRITE),
        rule(RuleKind::DontAudit, AB, C, FILE, APPEND),
        rule(RuleKind::DontAudit, A, A, FILE, READ),
        rule(RuleKind::AuditAllow, A, A, FILE, WRITE),
    ];
    let server = Server::new(&Policy { rules, ..policy() });
    let audits = |source, target| {
        let decision = server.decide(object(source), object(target), FILE);
        (decision.allowed, decision.auditallow, !decision.auditdeny)
    };
    assert_eq!(audits(A, C), (0, READ, WRITE | APPEND));
    assert_eq!(audits(B, C), (0, READ, APPEND));
    assert_eq!(audits(B, B), (0, READ, 0));
    assert_eq!(audits(A, A), (0, WRITE, READ));
    assert_eq!(audits(C, A), (0, 0, 0));
}

#[test]
fn follows_booleans() {
    let held = |value| Some(Condition { condition: 0, value });
    let rules = vec![
        Rule { condition: held(true), ..allow(A, B, FILE, READ) },
        Rule { condition: held(false), ..allow(A, B, FILE, WRITE) },
        Rule { condition: held(false), ..allow(A, A, FILE, WRITE) },
        allow(AB, BC, FILE, APPEND),
    ];
    for value in [true, false] {
        let booleans = vec![Boolean { name: "on".to_owned(), value }];
        let conditions = vec![vec![Logic::Boolean(0)]];
        let server = Server::new(&Policy { rules: rules.clone(), booleans, conditions, ..policy() });
        assert_eq!(server.allowed(A, B, FILE), APPEND | if value { READ } else { WRITE });
        assert_eq!(server.allowed(A, A, FILE), if value { 0 } else { WRITE });
    }
}

#[test]
fn denies_a_bounded_type_what_its_parent_is_denied() {
    let mut policy = Policy {
        rules: vec![allow(A, C, FILE, READ | WRITE), allow(B, C, FILE, READ), allow(A, A, FILE, READ)],
        ..policy()
    };
    policy.types[A as usize].bounds = B;
    let server = Server::new(&policy);
    assert_eq!(server.allowed(A, C, FILE), READ);
    assert_eq!(server.allowed(A, A, FILE), 0, "the parent is asked about itself, which it has no rule for");
    policy.rules.push(allow(B, B, FILE, READ));
    assert_eq!(Server::new(&policy).allowed(A, A, FILE), READ);
}

#[test]
fn tells_permissive_types() {
    let mut policy = policy();
    policy.types[B as usize].permissive = true;
    let server = Server::new(&policy);
    let permissive = |source, target| server.decide(object(source), object(target), FILE).permissive != 0;
    assert!(permissive(B, A) && !permissive(A, B));
}

fn extended(kind: RuleKind, source: u32, target: u32, extension: Extension, bits: [u64; 4]) -> ExtendedRule {
    ExtendedRule { kind, source, target, class: FILE, extension, bits, condition: None }
}

/// allow, auditallow, dontaudit of a driver; `None` when the plain permission decides.
fn functions(server: &Server, source: u32, target: u32, driver: u8) -> Option<[[u64; 4]; 3]> {
    let decision = server.decide(object(source), object(target), FILE);
    server.tables.extend(&decision, driver).map(|found| [found.allow, found.auditallow, found.dontaudit])
}

const NONE: [u64; 4] = [0; 4];
const ALL: [u64; 4] = [u64::MAX; 4];

#[test]
fn joins_extended_permissions_of_all_rules() {
    let function = Extension::IoctlFunction { driver: 0x54 };
    let extended_rules = vec![
        extended(RuleKind::Allow, AB, BC, function, [2, 0, 0, 1 << 63]),
        extended(RuleKind::Allow, A, B, function, [4, 0, 0, 0]),
        extended(RuleKind::AuditAllow, A, BC, function, [8, 0, 0, 0]),
        extended(RuleKind::DontAudit, A, C, Extension::IoctlFunction { driver: 0x55 }, [16, 0, 0, 0]),
        extended(RuleKind::Allow, A, A, function, [32, 0, 0, 0]),
    ];
    let server = Server::new(&Policy { extended_rules, ..policy() });
    assert_eq!(functions(&server, A, B, 0x54), Some([[6, 0, 0, 1 << 63], [8, 0, 0, 0], NONE]));
    assert_eq!(functions(&server, B, B, 0x54), Some([[2, 0, 0, 1 << 63], NONE, NONE]));
    assert_eq!(functions(&server, A, C, 0x55), Some([NONE, NONE, [16, 0, 0, 0]]));
    assert_eq!(functions(&server, A, A, 0x54), Some([[32, 0, 0, 0], NONE, NONE]));
    assert_eq!(
        functions(&server, A, A, 0x55),
        Some([NONE; 3]),
        "a driver without a rule, of a type with rules: denied"
    );
    assert_eq!(functions(&server, C, A, 0x54), None, "no rule at all: ioctl decides");
}

#[test]
fn joins_rules_of_self_and_of_others() {
    let function = Extension::IoctlFunction { driver: 1 };
    let extended_rules = vec![
        extended(RuleKind::Allow, A, A, function, [1, 0, 0, 0]),
        extended(RuleKind::Allow, AB, AB, function, [2, 0, 0, 0]),
    ];
    let server = Server::new(&Policy { extended_rules, ..policy() });
    assert_eq!(functions(&server, A, A, 1), Some([[3, 0, 0, 0], NONE, NONE]));
    assert_eq!(functions(&server, A, B, 1), Some([[2, 0, 0, 0], NONE, NONE]));
}

#[test]
fn allows_all_functions_of_a_whole_driver() {
    let extended_rules = vec![
        extended(RuleKind::Allow, A, B, Extension::IoctlDriver, [1 << 3, 0, 0, 1 << 63]),
        extended(RuleKind::AuditAllow, A, B, Extension::IoctlFunction { driver: 3 }, [1, 0, 0, 0]),
    ];
    let server = Server::new(&Policy { extended_rules, ..policy() });
    assert_eq!(functions(&server, A, B, 3), Some([ALL, [1, 0, 0, 0], NONE]));
    assert_eq!(functions(&server, A, B, 255), Some([ALL, NONE, NONE]));
    assert_eq!(functions(&server, A, B, 4), Some([NONE; 3]));
}

#[test]
fn keeps_extended_and_plain_permissions_apart() {
    let mut policy = policy();
    policy.rules = vec![allow(A, B, FILE, READ), allow(A, C, FILE, READ)];
    policy.extended_rules = vec![extended(RuleKind::Allow, A, B, Extension::IoctlDriver, [1, 0, 0, 0])];
    let server = Server::new(&policy);
    assert_eq!((server.allowed(A, B, FILE), server.allowed(A, C, FILE)), (READ, READ));
    assert_eq!((functions(&server, A, B, 0), functions(&server, A, C, 0)), (Some([ALL, NONE, NONE]), None));
    policy.booleans = vec![Boolean { name: "on".to_owned(), value: false }];
    policy.conditions = vec![vec![Logic::Boolean(0)]];
    policy.extended_rules[0].condition = Some(Condition { condition: 0, value: true });
    assert_eq!(functions(&Server::new(&policy), A, B, 0), None, "its boolean is off");
}
