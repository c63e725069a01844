use super::{Limits, Reach, Way};
use crate::{
    decide::Tables,
    model::{Class, Policy, Rule, RuleKind, Type},
    tables,
    vectors::Vectors,
};

const FILE: u32 = 1;
const PROCESS: u32 = 2;
const READ: u32 = 1;
const WRITE: u32 = 2;
const GETATTR: u32 = 4;
const TRANSITION: u32 = 1;

fn class(name: &str, permissions: &[&str]) -> Class {
    let permissions = permissions.iter().map(|name| (*name).to_owned()).collect();
    Class { name: name.to_owned(), permissions, ..Class::default() }
}

/// Types t1, t2, ... and rules of source, target, class, permissions.
fn policy(types: u32, rules: &[(u32, u32, u32, u32)]) -> Policy {
    let named =
        |number: u32| Type { name: format!("t{number}"), set: [number].into_iter().collect(), ..Type::default() };
    let rule = |(source, target, class, data): &(u32, u32, u32, u32)| Rule {
        kind: RuleKind::Allow,
        source: *source,
        target: *target,
        class: *class,
        data: *data,
        condition: None,
    };
    Policy {
        types: std::iter::once(Type::default()).chain((1..=types).map(named)).collect(),
        classes: vec![
            Class::default(),
            class("file", &["read", "write", "getattr"]),
            class("process", &["transition", "signal"]),
        ],
        rules: rules.iter().map(rule).collect(),
        ..Policy::default()
    }
}

fn vectors(policy: &Policy) -> Vectors {
    Vectors::of(&Tables::new(&tables::build(policy).unwrap().tables).unwrap())
}

fn found(policy: &Policy, way: Way, start: u32, limits: &Limits) -> Vec<(u32, u32)> {
    Reach::new(policy, &vectors(policy), way, start, limits).types()
}

#[test]
fn follows_a_secret_through_a_file_to_its_readers() {
    // t1 reads the secret t2 and writes t3, which t4 reads.
    let policy = policy(5, &[(1, 2, FILE, READ), (1, 3, FILE, WRITE), (4, 3, FILE, READ), (5, 2, FILE, WRITE)]);
    let limits = Limits::default();
    assert_eq!(found(&policy, Way::From, 2, &limits), [(1, 1), (3, 2), (4, 3)]);
    assert_eq!(found(&policy, Way::To, 3, &limits), [(1, 1), (2, 2), (5, 3)]);
    assert_eq!(found(&policy, Way::From, 2, &Limits { steps: Some(2), ..Limits::default() }), [(1, 1), (3, 2)]);
    let exclude = [1].into_iter().collect();
    assert_eq!(found(&policy, Way::From, 2, &Limits { exclude, ..Limits::default() }), []);
}

#[test]
fn shows_the_rules_of_a_shortest_path_as_information_goes() {
    let policy = policy(4, &[(1, 2, FILE, READ | GETATTR), (1, 3, FILE, WRITE), (4, 3, FILE, READ)]);
    let vectors = vectors(&policy);
    let limits = Limits::default();
    let path = |way, start, end| {
        let reach = Reach::new(&policy, &vectors, way, start, &limits);
        reach.path(end).map(|steps| steps.into_iter().map(|s| (s.from, s.to, s.rules.join(" "))).collect::<Vec<_>>())
    };
    let step = |from: &str, to: &str, rules: &str| (from.to_owned(), to.to_owned(), rules.to_owned());
    let steps = vec![
        step("t2", "t1", "(allow t1 t2 (file (read)))"),
        step("t1", "t3", "(allow t1 t3 (file (write)))"),
        step("t3", "t4", "(allow t4 t3 (file (read)))"),
    ];
    assert_eq!(path(Way::From, 2, 4), Some(steps.clone()));
    assert_eq!(path(Way::To, 4, 2), Some(steps), "either way gives the same path");
    assert_eq!(path(Way::From, 4, 2), None);
}

#[test]
fn follows_a_process_into_the_domain_that_it_becomes() {
    let policy = policy(3, &[(1, 2, PROCESS, TRANSITION), (2, 3, FILE, WRITE)]);
    assert_eq!(found(&policy, Way::From, 1, &Limits::default()), [(2, 1), (3, 2)]);
    assert_eq!(found(&policy, Way::To, 3, &Limits::default()), [(2, 1), (1, 2)]);
}

#[test]
fn leaves_out_what_carries_little_unless_asked() {
    let policy = policy(2, &[(1, 2, FILE, GETATTR)]);
    assert_eq!(found(&policy, Way::From, 2, &Limits::default()), []);
    assert_eq!(found(&policy, Way::From, 2, &Limits { weak: true, ..Limits::default() }), [(1, 1)]);
}

#[test]
fn equals_the_closure_of_all_pairs() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..100 {
        let rules: Vec<_> =
            (0..12).map(|_| (random.u32(1..=10), random.u32(1..=10), FILE, random.u32(1..=3))).collect();
        let policy = policy(10, &rules);
        let vectors = vectors(&policy);
        let limits = Limits::default();
        let mut reached = [[false; 11]; 11];
        for (source, target, _, permissions) in &rules {
            reached[*source as usize][*target as usize] |= permissions & WRITE != 0;
            reached[*target as usize][*source as usize] |= permissions & READ != 0;
        }
        for middle in 1..11 {
            for from in 1..11 {
                for to in 1..11 {
                    reached[from][to] |= reached[from][middle] && reached[middle][to];
                }
            }
        }
        for start in 1..=10u32 {
            for (way, there) in [(Way::From, true), (Way::To, false)] {
                let reach = Reach::new(&policy, &vectors, way, start, &limits);
                let mut types: Vec<u32> = reach.types().into_iter().map(|(number, _)| number).collect();
                types.sort_unstable();
                let pair = |other: u32| if there { (start, other) } else { (other, start) };
                let expected: Vec<u32> = (1..=10)
                    .filter(|other| *other != start && reached[pair(*other).0 as usize][pair(*other).1 as usize])
                    .collect();
                assert_eq!(types, expected, "{way:?} {start}: {rules:?}");
            }
        }
    }
}
