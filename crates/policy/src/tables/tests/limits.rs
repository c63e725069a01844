use super::*;
use crate::{
    model::{
        Bits, Category, Comparison, Constraint, Level, NameKind, NameTransition, Pair, Party, Range, RangeTransition,
        Term,
    },
    tables::keys::Keys,
};

/// A policy of so many types, each named by its number, and so many classes.
fn wide(types: usize, classes: usize) -> Policy {
    let type_ = |number: u32| Type { name: format!("t{number}"), set: Bits::from_iter([number]), ..Type::default() };
    let mut policy = policy();
    policy.types = std::iter::once(Type::default()).chain((1..).map(type_).take(types)).collect();
    policy.classes.resize(classes + 1, class("other", &[]));
    policy
}

#[test]
fn refuses_more_identifiers_than_keys_have_bits_for() {
    let mut policy = policy();
    policy.types.resize(65_536, Type::default());
    build(&policy).unwrap();
    policy.types.resize(65_537, Type::default());
    assert_eq!(refused(&policy), TableLimit::Identifiers { what: "types and attributes", has: 65_536, most: 65_535 });
    for what in ["classes", "roles", "users", "sensitivities"] {
        let mut policy = super::policy();
        match what {
            "classes" => policy.classes.resize(65_537, class("", &[])),
            "roles" => policy.roles.resize(65_537, Role::default()),
            "users" => policy.users.resize(65_537, User::default()),
            _ => policy.sensitivities.resize_with(65_537, Default::default),
        }
        assert_eq!(refused(&policy), TableLimit::Identifiers { what, has: 65_536, most: 65_535 });
    }
}

#[test]
fn refuses_too_many_access_vectors() {
    let mut policy = wide(300, 4);
    let pairs = (1..=300).flat_map(|source| (1..=300).map(move |target| (source, target)));
    policy.rules = pairs.zip(1..).map(|((source, target), data)| allow(source, target, FILE, data)).collect();
    let error = refused(&policy);
    assert_eq!(error, TableLimit::Identifiers { what: "different access vectors", has: 65_537, most: 65_536 });
    // With the empty one, just as many as there may be.
    policy.rules.retain(|rule| rule.data < 65_536);
    build(&policy).unwrap();
}

/// 300 x 300 pairs, each with its own vector of 300 + 300 tuples.
fn many_vectors(classes: usize) -> Policy {
    let mut policy = wide(300, classes);
    let pairs = (1..=300).flat_map(|source| (1..=300).map(move |target| (source, target)));
    policy.rules = pairs
        .flat_map(|(s, t)| [allow(s, t, FILE, s), allow(s, t, PROCESS, t)])
        .filter(|r| r.source != r.target)
        .collect();
    policy
}

#[test]
fn refuses_too_many_vectors() {
    let what = "different vectors of a source and a target";
    assert_eq!(refused(&many_vectors(4)), TableLimit::Identifiers { what, has: 65_537, most: 65_536 });
}

#[test]
fn refuses_tables_above_their_capacity() {
    let roles = |count: u32| {
        let mut policy = wide(40_000, 4);
        let role = |number: u32| Role { types: Bits::from_iter([number]), ..Role::default() };
        policy.roles = (0..=count).map(role).collect();
        policy
    };
    let error = refused(&roles(7000));
    assert!(matches!(error, TableLimit::Capacity { section: "sets of types and roles", needs } if needs > 32 << 20));
    build(&roles(6000)).unwrap();
}

/// Each type may do something to the next one.
fn chain(types: u32) -> Policy {
    let mut policy = wide(types as usize, 4);
    policy.rules = (1..types).map(|type_| allow(type_, type_ + 1, FILE, READ)).collect();
    policy
}

#[test]
fn stores_alike_blocks_of_the_matrix_once() {
    let laid = build(&chain(2100)).unwrap();
    assert!(laid.tables.len() < 1 << 20, "{} bytes for 2,100 rows of 2,100 columns", laid.tables.len());
}

#[test]
fn refuses_a_matrix_in_which_nothing_repeats() {
    let mut policy = wide(1100, 4);
    let pairs = (1..=1100_u32).flat_map(|source| (1..=1100_u32).map(move |target| (source, target)));
    let any = |s: u32, t: u32| (s * 1103 + t).wrapping_mul(0x9e37_79b1).wrapping_mul(s ^ t) >> 28;
    policy.rules = pairs.map(|(s, t)| allow(s, t, FILE, any(s, t) + 1)).collect();
    let error = refused(&policy);
    assert_eq!(error, TableLimit::Identifiers { what: "blocks of the matrix of types", has: 65_537, most: 65_536 });
}

/// Each type has its own rules, but all say the same: merged, the matrix is small, but it is made before.
#[test]
fn refuses_a_matrix_that_takes_too_much_memory_to_make() {
    let star = |types: u32| {
        let mut policy = wide(types as usize, 4);
        policy.rules =
            (2..=types).flat_map(|type_| [allow(type_, 1, FILE, READ), allow(1, type_, FILE, READ)]).collect();
        policy
    };
    assert!(matches!(refused(&star(12_000)), TableLimit::Capacity { section: "matrix of types", .. }));
    assert!(build(&star(1500)).unwrap().tables.len() < 1 << 20);
}

#[test]
fn refuses_more_keys_than_there_is_room_for() {
    let mut policy = policy();
    policy.roles.resize(1201, Role::default());
    let allows = |to| (1..=1200).flat_map(move |role| (1..=to).map(move |new| (role, new)));
    policy.role_allows = allows(1200).collect();
    assert!(matches!(refused(&policy), TableLimit::Keys { keys: 1_440_000, .. }));
    policy.role_allows = allows(300).collect();
    build(&policy).unwrap();
}

/// Keys whose hashes differ in their lowest bits only, so that no table that fits tells them apart.
#[test]
fn refuses_keys_that_no_table_tells_apart() {
    let multiplier = 0x9e37_79b9_7f4a_7c15_u64;
    // Newton's iteration: each step doubles the bits that are right.
    let inverse = (0..6).fold(1_u64, |x, _| x.wrapping_mul(2_u64.wrapping_sub(multiplier.wrapping_mul(x))));
    assert_eq!(inverse.wrapping_mul(multiplier), 1);
    let mut keys = Keys::default();
    (1..=32).for_each(|hash: u64| keys.insert(hash.wrapping_mul(inverse), 1));
    keys.place(8 << 20).unwrap();
    keys.insert(33_u64.wrapping_mul(inverse), 1);
    assert_eq!(keys.place(8 << 20).unwrap_err(), TableLimit::Keys { keys: 33, room: 8 << 20 });
}

/// A policy with one constraint on files.
fn constrained(expression: Vec<Term>) -> Policy {
    let mut policy = policy();
    policy.classes[FILE as usize].constraints = vec![Constraint { permissions: WRITE, expression }];
    policy
}

fn role_in(number: u32) -> Term {
    Term::In {
        party: Party::Source,
        kind: NameKind::Role,
        comparison: Comparison::Eq,
        names: Bits::from_iter([number]),
        written: Bits::default(),
    }
}

/// `count` values of which each is joined with those before it.
fn joined(count: u32, value: impl Fn(u32) -> Term) -> Vec<Term> {
    (0..count).flat_map(|number| std::iter::once(value(number)).chain((number > 0).then_some(Term::Or))).collect()
}

const SAME: Term = Term::Compare(Pair::Types, Comparison::Eq);

#[test]
fn refuses_too_many_name_sets() {
    build(&constrained(joined(64, role_in))).unwrap();
    assert_eq!(refused(&constrained(joined(65, role_in))), TableLimit::NameSets { class: "file".to_owned() });
    build(&constrained(joined(65, |number| role_in(number % 64)))).unwrap();
}

#[test]
fn refuses_constraints_that_are_too_long() {
    let mut longest = joined(127, |_| SAME);
    longest.push(Term::Not);
    assert_eq!(longest.len(), 254);
    build(&constrained(longest.clone())).unwrap();
    longest.push(Term::Not);
    assert_eq!(refused(&constrained(longest)), TableLimit::Steps { class: "file".to_owned(), has: 257 });
}

#[test]
fn refuses_constraints_that_are_too_deep() {
    let deep = |values| [vec![SAME; values], vec![Term::And; values - 1]].concat();
    let server = Server::new(&constrained(deep(32)));
    assert_eq!(server.allowed(A, B, FILE), 0);
    assert_eq!(refused(&constrained(deep(33))), TableLimit::Depth { class: "file".to_owned(), has: 33 });
}

fn level(categories: &[u32]) -> Level {
    Level { sensitivity: 1, categories: categories.iter().copied().collect() }
}

#[test]
fn refuses_too_many_categories() {
    let mut policy = policy();
    policy.categories = vec![Category::default(); 1024];
    policy.users[1].range = Range { low: level(&[1023]), high: level(&[1023]) };
    build(&policy).unwrap();
    policy.categories.push(Category::default());
    assert_eq!(refused(&policy), TableLimit::Categories { has: 1025 });
    policy.categories.pop();
    policy.users[1].range.high = level(&[1024]);
    assert_eq!(refused(&policy), TableLimit::Categories { has: 1088 }, "in whole words");
}

#[test]
fn refuses_too_many_levels() {
    let transition = |number: u32| {
        let range = Range { low: level(&[number / 64]), high: level(&[number / 64, 64 + number % 64]) };
        RangeTransition { source: A, target: B, class: FILE, range }
    };
    // The empty level, 32 low and 2015 high ones.
    let mut policy = Policy { range_transitions: (0..2015).map(transition).collect(), ..policy() };
    assert_eq!(build(&policy).unwrap().levels.len(), 2048);
    policy.range_transitions.push(transition(2015));
    assert_eq!(refused(&policy), TableLimit::Levels { of: "a range transition" });
    policy.range_transitions.pop();
    policy.range_transitions.push(transition(7));
    build(&policy).unwrap();
}

#[test]
fn refuses_types_that_are_bounded_too_deeply() {
    let mut policy = wide(10, 4);
    (2..10).for_each(|type_| policy.types[type_].bounds = type_ as u32 - 1);
    build(&policy).unwrap();
    policy.types[10].bounds = 9;
    assert_eq!(refused(&policy), TableLimit::Bounds { type_: "t10".to_owned() });
    let mut circle = super::policy();
    circle.types[A as usize].bounds = B;
    circle.types[B as usize].bounds = A;
    assert_eq!(refused(&circle), TableLimit::Bounds { type_: "a".to_owned() });
}

fn by_name(name: &str, result: u32) -> NameTransition {
    NameTransition { sources: Bits::from_iter([result]), target: B, class: FILE, name: name.to_owned(), result }
}

#[test]
fn refuses_names_that_are_too_long() {
    let long = "n".repeat(256);
    let policy = Policy { name_transitions: vec![by_name(&long, A)], ..policy() };
    assert_eq!(refused(&policy), TableLimit::NameLength { name: long, has: 256 });
}

#[test]
fn refuses_too_many_names() {
    let policy = Policy { name_transitions: (0..65_536).map(|n| by_name(&n.to_string(), A)).collect(), ..policy() };
    let what = "file names in type transitions";
    assert_eq!(refused(&policy), TableLimit::Identifiers { what, has: 65_536, most: 65_535 });
}

#[test]
fn refuses_too_many_types_for_one_name() {
    let mut policy = wide(40, 4);
    policy.name_transitions = (1..=32).map(|type_| by_name("tmp", type_)).collect();
    build(&policy).unwrap();
    policy.name_transitions.push(by_name("tmp", 33));
    let error = TableLimit::NameSources { name: "tmp".to_owned(), target: "t2".to_owned(), has: 33 };
    assert_eq!(refused(&policy), error);
}

#[test]
fn refuses_names_with_one_hash() {
    let (first, second) = ("gvuznitxhmc", "vcrprgcxzih");
    let policy = Policy { name_transitions: vec![by_name(second, A), by_name(first, A)], ..policy() };
    assert_eq!(refused(&policy), TableLimit::NameHash { first: first.to_owned(), second: second.to_owned() });
}
