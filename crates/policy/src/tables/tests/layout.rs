use tollgate_abi::tables::{
    TG_BLOCK, TG_CAPACITY, TG_PROBES, tg_class, tg_entry, tg_extended, tg_header, tg_role, tg_step, tg_tuple, tg_type,
    tg_user,
};

use super::*;
use crate::{
    model::{Comparison, Constraint, ExtendedRule, Extension, NameTransition, Pair, Term},
    tables::keys::{Keys, key},
};

/// A policy with something in every section.
fn full() -> Policy {
    let mut policy = policy();
    policy.rules = vec![allow(A, B, FILE, READ), allow(AB, BC, PROCESS, 7), allow(A, A, FILE, WRITE)];
    policy.extended_rules = vec![ExtendedRule {
        kind: RuleKind::Allow,
        source: A,
        target: B,
        class: FILE,
        extension: Extension::IoctlFunction { driver: 9 },
        bits: [1, 0, 0, 0],
        condition: None,
    }];
    let expression = vec![Term::Compare(Pair::Types, Comparison::Eq)];
    policy.classes[FILE as usize].constraints = vec![Constraint { permissions: WRITE, expression }];
    policy.name_transitions = vec![NameTransition {
        sources: [A, B].into_iter().collect(),
        target: B,
        class: FILE,
        name: "odd".to_owned(),
        result: C,
    }];
    policy
}

#[test]
fn aligns_sections_to_their_elements_and_lets_none_overlap() {
    let laid = build(&full()).unwrap();
    let tables = Tables::new(&laid.tables).unwrap();
    let h = tables.header();
    let slots = (1_u64 << (64 - h.key_shift)) as u32;
    // Offset, size of an element, elements.
    let mut sections = [
        (h.type_at, size_of::<tg_type>(), h.types + 1),
        (h.class_at, size_of::<tg_class>(), h.classes + 1),
        (h.role_at, size_of::<tg_role>(), h.roles + 1),
        (h.user_at, size_of::<tg_user>(), h.users + 1),
        (h.sensitivity_at, size_of::<u32>(), h.sensitivities),
        (h.matrix.index_at, size_of::<u16>(), h.rows * h.matrix.width),
        (h.matrix.block_at, size_of::<u16>(), h.matrix.blocks * TG_BLOCK),
        (h.vector.index_at, size_of::<u16>(), h.vectors * h.vector.width),
        (h.vector.block_at, size_of::<u16>(), h.vector.blocks * TG_BLOCK),
        (h.tuple_at, size_of::<tg_tuple>(), h.tuples),
        (h.code_at, size_of::<tg_step>(), 3),
        (h.extended_at, size_of::<tg_extended>(), 1),
        (h.key_at, size_of::<tg_entry>(), slots + TG_PROBES),
    ];
    sections.sort_unstable();
    let mut end = size_of::<tg_header>();
    for (at, size, count) in sections {
        assert_eq!(at as usize % size, 0, "at {at}");
        assert!(at as usize >= end, "at {at}, the one before ends at {end}");
        end = at as usize + size * count as usize;
    }
    assert_eq!(end, laid.tables.len());
    assert!(end <= TG_CAPACITY as usize);
}

#[test]
fn gives_the_same_bytes_whatever_the_order_of_rules() {
    let mut policy = full();
    let laid = build(&policy).unwrap();
    assert_eq!(build(&policy).unwrap(), laid);
    policy.rules.reverse();
    assert_eq!(build(&policy).unwrap(), laid);
}

#[test]
fn merges_types_that_the_same_rules_apply_to() {
    let mut policy = policy();
    policy.rules = vec![allow(A, AB, FILE, READ), allow(B, AB, FILE, READ), allow(C, C, FILE, READ)];
    let (laid, other) = (Server::new(&policy), Server::new(&super::policy()));
    let size = |server: &Server| (server.tables.header().rows, server.tables.header().columns);
    assert_eq!(size(&laid), (2, 2), "A and B by different rules that say the same, C and what does not exist");
    assert_eq!(size(&other), (1, 1));
}

#[test]
fn places_keys_where_the_evaluator_looks() {
    let mut keys = Keys::default();
    (1..=5000).for_each(|number| keys.insert(key(7, number, number % 7, 0), 1));
    let placed = keys.place(TG_CAPACITY as usize).unwrap();
    let slots = 1_usize << (64 - placed.shift);
    assert_eq!(placed.slots.len(), slots + TG_PROBES as usize);
    assert_eq!(placed.slots.iter().filter(|entry| entry.key != 0).count(), 5000);
    for (place, entry) in placed.slots.iter().enumerate().filter(|(_, entry)| entry.key != 0) {
        let own = (entry.key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> placed.shift) as usize;
        assert!((own..own + TG_PROBES as usize).contains(&place));
        assert!(placed.slots[own..place].iter().all(|before| before.key != 0), "a free slot ends the search");
    }
}

#[test]
fn keeps_the_first_value_of_a_key() {
    let mut keys = Keys::default();
    keys.insert(9, 1);
    keys.insert(9, 2);
    let placed = keys.place(TG_CAPACITY as usize).unwrap();
    assert_eq!(placed.slots.iter().find(|entry| entry.key == 9).map(|entry| entry.value), Some(1));
}
