use std::{collections::BTreeSet, mem::offset_of};

use tollgate_abi::tables::{tg_role, tg_tuple, tg_type, tg_user};

use super::*;
use crate::{
    built::Built,
    model::{Category, Level, Policy, Sensitivity},
    sepol::{self, CilFile, Options},
};

/// A policy with one of each statement.
const EVERYTHING: &str = include_str!("../../dump/everything.cil");

fn built(text: &str) -> Built {
    let options = Options { without_lines: true, ..Options::default() };
    let file = CilFile { name: "everything.cil".into(), text: text.into() };
    Built::from_compiled(sepol::compile(&[file], &options).unwrap()).unwrap()
}

fn everything() -> Built {
    built(EVERYTHING)
}

fn compare(policy: &Policy, tables: &[u8], levels: &[Level]) -> Report {
    run(&mut SecurityServer::new(policy, tables, levels).unwrap()).unwrap()
}

#[test]
fn finds_no_difference_where_each_statement_has_a_part() {
    let Built { policy, tables, levels, .. } = everything();
    let report = compare(&policy, &tables, &levels);
    assert_eq!(report.differences().collect::<Vec<_>>(), Vec::<&Difference>::new());
    for decision in Decision::ALL {
        let Count { compared, granted, different } = report.of(decision);
        assert!(different == 0 && granted > 0 && granted <= compared, "{decision:?}: {report:?}");
    }
    let types = policy.types.iter().filter(|type_| !type_.attribute && !type_.name.is_empty()).count();
    let questions = types * types * (policy.classes.len() - 1);
    assert_eq!(report.of(Decision::Transition).compared, questions as u64);
    assert!(report.of(Decision::Access).compared > questions as u64, "constraints are asked more than once");
}

/// Policies of which one statement that counts is left out or changed.
fn without_one(policy: &Policy) -> Vec<(String, Policy)> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Policy)| {
        let mut changed = policy.clone();
        change(&mut changed);
        all.push((what, changed));
    };
    macro_rules! lists {
        ($($list:ident),*) => {$(
            for (statement, place) in policy.$list.iter().zip(0..) {
                add(format!("{statement:?}"), &|policy| { policy.$list.remove(place); });
            }
        )*};
    }
    lists!(extended_rules, role_transitions, role_allows, range_transitions);
    for (rule, place) in policy.rules.iter().zip(0..).filter(|(rule, _)| policy.holds(rule.condition)) {
        add(format!("{rule:?}"), &|policy| drop(policy.rules.splice(place..=place, [])));
    }
    // File names are those of the rules, so one must be left.
    for (rule, place) in policy.name_transitions.iter().zip(0..) {
        add(format!("{rule:?}"), &|policy| policy.name_transitions[place].result = rule.target);
    }
    for (class, place) in policy.classes.iter().zip(0..) {
        for (constraint, number) in class.constraints.iter().zip(0..) {
            let what = format!("constraint {} {:#x}", class.name, constraint.permissions);
            add(what, &|policy| drop(policy.classes[place].constraints.remove(number)));
        }
        for number in 0..class.validatetrans.len() {
            let what = format!("validatetrans {} {number}", class.name);
            add(what, &|policy| drop(policy.classes[place].validatetrans.remove(number)));
        }
    }
    for (boolean, place) in policy.booleans.iter().zip(0..) {
        add(format!("boolean {}", boolean.name), &|policy| policy.booleans[place].value ^= true);
    }
    for (type_, place) in policy.types.iter().zip(0..).filter(|(type_, _)| !type_.attribute && !type_.name.is_empty()) {
        add(type_.name.clone(), &|policy| policy.types[place].permissive ^= true);
    }
    all
}

#[test]
fn notices_each_statement_that_one_side_lacks() {
    // What would be allowed anyway is left out, and what lets a constraint forbid something is added.
    let text = EVERYTHING.replace("(allow child etc (file (read ioctl)))", "")
        + "(allow init log (file (write))) (allow log etc (process (transition)))";
    let Built { policy, tables, levels, .. } = built(&text);
    let changed = without_one(&policy);
    assert!(changed.len() > 30, "{}", changed.len());
    let unnoticed = changed.iter().filter(|(_, changed)| compare(changed, &tables, &levels).total().different == 0);
    let mut unnoticed: Vec<&str> = unnoticed.map(|(what, _)| what.as_str()).collect();
    unnoticed.sort_unstable();
    // The condition is false with either value, and the two expressions hold for any contexts.
    assert_eq!(unnoticed, ["boolean on", "constraint dir 0x6", "constraint file 0x4"]);
}

/// Of each tuple the three vectors, of each type whether it is permissive, and of each type, role and user the first set.
#[test]
fn notices_one_changed_bit_of_the_tables() {
    let Built { policy, tables, levels, .. } = everything();
    let header = *SecurityServer::new(&policy, &tables, &levels).unwrap().tables().header();
    let places = |at: u32, count: usize, size: usize, member: usize| {
        (0..count).map(move |index| at as usize + index * size + member)
    };
    let tuples = header.tuples as usize;
    let vectors =
        [0, 4, 8].into_iter().flat_map(|member| places(header.tuple_at, tuples, size_of::<tg_tuple>(), member));
    let is_type = |number: &usize| !policy.types[*number].attribute && !policy.types[*number].name.is_empty();
    let of_types = (0..policy.types.len()).filter(is_type).flat_map(|number| {
        [offset_of!(tg_type, flags), offset_of!(tg_type, sets)]
            .map(|member| header.type_at as usize + number * size_of::<tg_type>() + member)
    });
    let roles = places(header.role_at, policy.roles.len(), size_of::<tg_role>(), 0).skip(1);
    let users = places(header.user_at, policy.users.len(), size_of::<tg_user>(), 0).skip(1);
    for place in vectors.chain(of_types).chain(roles).chain(users) {
        let mut changed = tables.clone();
        changed[place] ^= 1;
        assert!(compare(&policy, &changed, &levels).total().different > 0, "{place}: {header:?}");
    }
}

/// For each pair of four levels, whether the first dominates the second.
type Relations = [[bool; 4]; 4];

/// Every relation of a source's low and high and a target's low and high level: each level dominates itself and what those do
/// that it dominates, and a high level dominates the low one.
fn all_relations() -> BTreeSet<Relations> {
    let of = |bits: u32| {
        let mut relations = [[true; 4]; 4];
        let places = (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b);
        places.zip(0..).for_each(|((a, b), bit)| relations[a][b] = bits >> bit & 1 == 1);
        relations
    };
    let is_order = |r: &Relations| {
        (0..4).all(|a| (0..4).all(|b| (0..4).all(|c| !(r[a][b] && r[b][c]) || r[a][c]))) && r[1][0] && r[3][2]
    };
    (0..1 << 12).map(of).filter(is_order).collect()
}

fn with_levels(sensitivities: u32, categories: u32) -> Policy {
    let category = |number| Category { name: format!("c{number}"), ..Category::default() };
    let sensitivity = |number| Sensitivity {
        name: format!("s{number}"),
        categories: (0..categories).collect(),
        ..Sensitivity::default()
    };
    Policy {
        mls: true,
        sensitivities: [Sensitivity::default()].into_iter().chain((0..sensitivities).map(sensitivity)).collect(),
        categories: (0..categories).map(category).collect(),
        ..Policy::default()
    }
}

fn relations_met(policy: &Policy) -> BTreeSet<Relations> {
    let levels = combinations::levels(policy);
    let order = Order::new(levels.clone());
    let of = |ranges: &[u32; 4]| ranges.map(|a| ranges.map(|b| order.dominates(a, b)));
    Parts::new(policy, &order, &levels).ranges.iter().map(of).collect()
}

#[test]
fn relates_four_levels_in_every_way() {
    for (sensitivities, categories) in [(1, 4), (1, 1024), (16, 1024), (16, 3)] {
        assert_eq!(
            relations_met(&with_levels(sensitivities, categories)),
            all_relations(),
            "{sensitivities} {categories}"
        );
    }
    let chains = relations_met(&with_levels(16, 0));
    assert_eq!(
        chains,
        all_relations().into_iter().filter(|r| (0..4).all(|a| (0..4).all(|b| r[a][b] || r[b][a]))).collect()
    );
    assert_eq!(relations_met(&with_levels(1, 0)).len(), 1);
}
