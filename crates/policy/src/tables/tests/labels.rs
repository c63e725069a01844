use tollgate_abi::tables::{TG_ASK_CHANGE, TG_ASK_MEMBER, TG_ASK_TRANSITION, TG_RANGE_TARGET_LOW, tg_ask};

use super::*;
use crate::{
    decide::{self, Labelled},
    model::{
        Boolean, Condition, Level, Logic, NameTransition, Range, RangeTransition, RoleTransition, Sensitivity,
        WhoseDefault,
    },
};

impl Server {
    fn label(&mut self, ask: tg_ask, source: tg_context, target: tg_context, class: u32, name: &str) -> tg_context {
        let question = tg_question { source, target, class, ask, ..tg_question::default() };
        match self.tables.label(&mut self.levels, &question, decide::name(name).as_ref()) {
            Labelled::Valid(context) => context,
            other => panic!("{other:?}"),
        }
    }

    /// The type of a new object.
    fn new_type(&mut self, ask: tg_ask, source: u32, target: u32, class: u32, name: &str) -> u32 {
        self.label(ask, context(ALICE, USER_R, source), object(target), class, name).type_
    }
}

#[test]
fn labels_like_the_creator_or_the_place() {
    let mut server = Server::new(&policy());
    let mut label =
        |class| server.label(TG_ASK_TRANSITION, context(ALICE, USER_R, A), context(BOB, OBJECT_R, B), class, "");
    let (like_place, like_creator) = (context(ALICE, OBJECT_R, B), context(ALICE, USER_R, A));
    assert_eq!(label(FILE), like_place);
    assert_eq!(label(PROCESS), like_creator);
    assert_eq!(label(SOCKET), like_creator);
    assert_eq!(label(FOREIGN), like_place, "no socket of the kernel's, whatever its name");
}

#[test]
fn follows_defaults_of_classes() {
    let mut policy = policy();
    let file = &mut policy.classes[FILE as usize];
    file.default_user = WhoseDefault::Target;
    file.default_role = WhoseDefault::Source;
    file.default_type = WhoseDefault::Source;
    let mut server = Server::new(&policy);
    let found = server.label(TG_ASK_TRANSITION, context(ALICE, USER_R, A), context(BOB, OBJECT_R, B), FILE, "");
    assert_eq!(found, context(BOB, USER_R, A));
}

#[test]
fn follows_type_rules_of_each_kind() {
    let rules = vec![
        rule(RuleKind::Transition, A, B, FILE, C),
        rule(RuleKind::Member, A, B, FILE, A),
        rule(RuleKind::Change, A, B, PROCESS, C),
    ];
    let mut server = Server::new(&Policy { rules, ..policy() });
    assert_eq!(server.new_type(TG_ASK_TRANSITION, A, B, FILE, ""), C);
    assert_eq!(server.new_type(TG_ASK_MEMBER, A, B, FILE, ""), A);
    assert_eq!(server.new_type(TG_ASK_CHANGE, A, B, FILE, ""), B, "no rule");
    assert_eq!(server.new_type(TG_ASK_CHANGE, A, B, PROCESS, ""), C);
    assert_eq!(server.new_type(TG_ASK_TRANSITION, A, C, FILE, ""), C, "no rule");
}

#[test]
fn prefers_unconditional_type_rules() {
    let held = |value| Some(Condition { condition: 0, value });
    let rules = vec![
        Rule { condition: held(true), ..rule(RuleKind::Transition, A, B, FILE, A) },
        rule(RuleKind::Transition, A, B, FILE, C),
        Rule { condition: held(true), ..rule(RuleKind::Transition, B, A, FILE, C) },
        Rule { condition: held(false), ..rule(RuleKind::Transition, C, A, FILE, C) },
    ];
    let booleans = vec![Boolean { name: "on".to_owned(), value: true }];
    let mut server = Server::new(&Policy { rules, booleans, conditions: vec![vec![Logic::Boolean(0)]], ..policy() });
    let mut found = |source, target| server.new_type(TG_ASK_TRANSITION, source, target, FILE, "");
    assert_eq!([found(A, B), found(B, A), found(C, A)], [C, C, A], "the last's boolean is not off");
}

/// `security_compute_sid` looks for the types of the contexts only; compilers expand attributes.
#[test]
fn ignores_type_rules_of_attributes() {
    let rules = vec![rule(RuleKind::Transition, AB, BC, FILE, A)];
    let mut server = Server::new(&Policy { rules, ..policy() });
    assert_eq!(server.new_type(TG_ASK_TRANSITION, A, C, FILE, ""), C);
}

fn by_name(name: &str, sources: &[u32], target: u32, result: u32) -> NameTransition {
    NameTransition { sources: sources.iter().copied().collect(), target, class: FILE, name: name.to_owned(), result }
}

#[test]
fn labels_by_file_name() {
    let longest = "n".repeat(255);
    let name_transitions = vec![
        by_name("passwd", &[A], B, C),
        by_name("passwd", &[B], B, A),
        by_name("passwd", &[A], A, B),
        by_name("shadow", &[A, B], B, A),
        by_name(&longest, &[A], B, A),
    ];
    let rules = vec![rule(RuleKind::Transition, A, C, FILE, B)];
    let mut server = Server::new(&Policy { rules, name_transitions, ..policy() });
    let mut found = |source, target, name: &str| server.new_type(TG_ASK_TRANSITION, source, target, FILE, name);
    assert_eq!([found(A, B, "passwd"), found(B, B, "passwd"), found(C, B, "passwd")], [C, A, B]);
    assert_eq!([found(A, A, "passwd"), found(B, A, "passwd")], [B, A]);
    assert_eq!([found(A, B, "shadow"), found(A, B, "shadow-"), found(A, B, "shado"), found(A, B, "")], [A, B, B, B]);
    assert_eq!([found(A, B, &longest), found(A, B, &longest[1..])], [A, B]);
    assert_eq!(found(A, C, "passwd"), B, "the rule without a name");
    assert_eq!(server.new_type(TG_ASK_TRANSITION, A, B, PROCESS, "passwd"), A, "rules are of one class");
}

#[test]
fn follows_role_transitions() {
    let role_transitions = vec![RoleTransition { role: USER_R, target: B, class: PROCESS, result: ADMIN_R }];
    let mut server = Server::new(&Policy { role_transitions, ..policy() });
    let mut role =
        |ask, role, target, class| server.label(ask, context(ALICE, role, A), object(target), class, "").role;
    assert_eq!(role(TG_ASK_TRANSITION, USER_R, B, PROCESS), ADMIN_R as u16);
    assert_eq!(role(TG_ASK_TRANSITION, USER_R, A, PROCESS), USER_R as u16);
    assert_eq!(role(TG_ASK_TRANSITION, USER_R, B, SOCKET), USER_R as u16);
    assert_eq!(role(TG_ASK_CHANGE, USER_R, B, PROCESS), USER_R as u16);
}

fn level(sensitivity: u32, categories: &[u32]) -> Level {
    Level { sensitivity, categories: categories.iter().copied().collect() }
}

/// Sensitivities 1 to 3, categories 0 to 9 from 2 on; both users have all of it.
fn with_levels() -> Policy {
    let all: Vec<u32> = (0..10).collect();
    let sensitivity = |name: &str, categories: &[u32]| Sensitivity {
        name: name.to_owned(),
        categories: categories.iter().copied().collect(),
        ..Sensitivity::default()
    };
    let mut policy = Policy {
        mls: true,
        sensitivities: vec![
            Sensitivity::default(),
            sensitivity("s0", &[]),
            sensitivity("s1", &all),
            sensitivity("s2", &all),
        ],
        ..policy()
    };
    policy.users.iter_mut().skip(1).for_each(|user| user.range = Range { low: level(1, &[]), high: level(3, &all) });
    policy
}

#[test]
fn follows_range_transitions() {
    let mut policy = with_levels();
    policy.range_transitions = vec![
        RangeTransition {
            source: A,
            target: B,
            class: FILE,
            range: Range { low: level(2, &[4]), high: level(3, &[4, 5]) },
        },
        RangeTransition {
            source: A,
            target: C,
            class: FILE,
            range: Range { low: level(1, &[]), high: level(2, &[4]) },
        },
    ];
    policy.classes[FILE as usize].default_range = TG_RANGE_TARGET_LOW;
    let mut server = Server::new(&policy);
    let mut known = |sensitivity, categories| server.levels.intern(&level(sensitivity, categories)).unwrap();
    let (lowest, middle, high, other) = (known(1, &[]), known(2, &[4]), known(3, &[4, 5]), known(2, &[9]));
    let process = tg_context { low: lowest, high, ..context(ALICE, USER_R, A) };
    let mut range = |target: u32, class| {
        let place = tg_context { low: other, high, ..object(target) };
        let found = server.label(TG_ASK_TRANSITION, process, place, class, "");
        (found.low, found.high)
    };
    assert_eq!(range(B, FILE), (middle, high));
    assert_eq!(range(C, FILE), (lowest, middle));
    assert_eq!(range(A, FILE), (other, other), "the class's default");
    assert_eq!(range(B, SOCKET), (lowest, high), "a socket has its creator's range");
}

#[test]
fn validates_contexts_by_users_roles_and_levels() {
    let mut policy = with_levels();
    policy.roles[ADMIN_R as usize].types = [A].into_iter().collect();
    policy.users[BOB as usize].roles = [USER_R].into_iter().collect();
    policy.users[BOB as usize].range.high = level(2, &[1]);
    let mut server = Server::new(&policy);
    let mut known = |sensitivity, categories| server.levels.intern(&level(sensitivity, categories)).unwrap();
    let (s0, s0c1, s1c1, s1c2, s3) = (known(1, &[]), known(1, &[1]), known(2, &[1]), known(2, &[2]), known(4, &[]));
    let valid = |context, low, high| server.tables.valid(&server.levels, &tg_context { low, high, ..context });
    assert!(valid(context(ALICE, ADMIN_R, A), s0, s0));
    assert!(!valid(context(ALICE, ADMIN_R, B), s0, s0), "the role may not have the type");
    assert!(!valid(context(BOB, ADMIN_R, A), s0, s0), "the user may not have the role");
    assert!(valid(context(BOB, OBJECT_R, B), s0, s1c2), "objects have any");
    assert!(valid(context(BOB, USER_R, B), s0, s1c1) && !valid(context(BOB, USER_R, B), s0, s1c2), "the user's range");
    assert!(!valid(context(ALICE, USER_R, A), s0c1, s1c1), "the sensitivity does not have the category");
    assert!(!valid(context(ALICE, USER_R, A), s1c1, s1c2) && !valid(object(A), s0, s3));
    assert!(!valid(object(A), 0, 0), "the empty level is none");
    for type_ in [0, AB, GAP, GAP + 1] {
        assert!(!valid(object(type_), s0, s0), "{type_} is no type");
    }
}
