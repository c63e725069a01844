use super::{commands, condition, constraint, extended_rule, level, rule, validatetrans, when};
use crate::model::{
    Bits, Boolean, Category, Class, Comparison, Condition, Constraint, ExtendedRule, Extension, Level, Logic, NameKind,
    Pair, Party, Policy, Rule, RuleKind, Sensitivity, Term, Type,
};

fn policy() -> Policy {
    let class = |name: &str, permissions: &[&str]| Class {
        name: name.to_owned(),
        permissions: permissions.iter().map(ToString::to_string).collect(),
        ..Class::default()
    };
    let type_ = |name: &str, attribute: bool, set: &[u32]| Type {
        name: name.to_owned(),
        attribute,
        set: set.iter().copied().collect(),
        ..Type::default()
    };
    Policy {
        mls: true,
        classes: vec![Class::default(), class("file", &["read", "write", "append"])],
        types: vec![
            Type::default(),
            type_("sshd_t", false, &[1, 3]),
            type_("shadow_t", false, &[2]),
            type_("mlstrusted", true, &[1]),
        ],
        sensitivities: vec![Sensitivity::default(), Sensitivity { name: "s0".to_owned(), ..Sensitivity::default() }],
        categories: (0..8).map(|n| Category { name: format!("c{n}"), aliases: Vec::new() }).collect(),
        booleans: ["a", "b"].map(|name| Boolean { name: name.to_owned(), value: true }).to_vec(),
        conditions: vec![vec![Logic::Boolean(0), Logic::Boolean(1), Logic::Not, Logic::And]],
        ..Policy::default()
    }
}

#[test]
fn writes_rules() {
    let base = Rule { kind: RuleKind::Allow, source: 1, target: 2, class: 1, data: 0b101, condition: None };
    assert_eq!(rule(&policy(), &base), "(allow sshd_t shadow_t (file (read append)))");
    let transition = Rule { kind: RuleKind::Transition, data: 3, ..base };
    assert_eq!(rule(&policy(), &transition), "(typetransition sshd_t shadow_t file mlstrusted)");
    let missing = Rule { source: 9, ..base };
    assert_eq!(rule(&policy(), &missing), "(allow #9 shadow_t (file (read append)))");
}

#[test]
fn writes_conditions_in_prefix_form() {
    assert_eq!(condition(&policy(), 0), "(and a (not b))");
    assert_eq!(when(&policy(), Condition { condition: 0, value: false }), "(not (and a (not b)))");
}

#[test]
fn writes_commands_of_functions_and_of_drivers() {
    let bits = [0b1011, 0, 0, 1 << 63];
    assert_eq!(commands(Extension::IoctlFunction { driver: 0x89 }, &bits), "(range 0x8900 0x8901) 0x8903 0x89ff");
    assert_eq!(commands(Extension::IoctlDriver, &[0b11, 0, 0, 0]), "(range 0x0000 0x01ff)");
    let extension = Extension::IoctlFunction { driver: 0x54 };
    let told =
        ExtendedRule { kind: RuleKind::DontAudit, source: 1, target: 2, class: 1, extension, bits, condition: None };
    let expected = "(dontauditx sshd_t shadow_t (ioctl file ((range 0x5400 0x5401) 0x5403 0x54ff)))";
    assert_eq!(extended_rule(&policy(), &told), expected);
}

#[test]
fn writes_constraints_by_the_names_they_were_written_with() {
    let set = |names: &[u32], written: &[u32]| Term::In {
        party: Party::Source,
        kind: NameKind::Type,
        comparison: Comparison::Eq,
        names: names.iter().copied().collect(),
        written: written.iter().copied().collect(),
    };
    let told = |last: Term| {
        let expression = vec![Term::Compare(Pair::L1L2, Comparison::Dom), last, Term::Or];
        constraint(&policy(), 1, &Constraint { permissions: 1, expression })
    };
    let expected = "(mlsconstrain (file (read)) (or (dom l1 l2) (eq t1 mlstrusted)))";
    assert_eq!(told(set(&[1], &[3])), expected);
    assert_eq!(told(set(&[1], &[])), expected, "an attribute of just these types");
    assert_eq!(told(set(&[1, 2], &[])), "(mlsconstrain (file (read)) (or (dom l1 l2) (eq t1 (sshd_t shadow_t))))");
}

#[test]
fn writes_what_relabelling_needs() {
    let terms = [Term::Compare(Pair::Users, Comparison::Eq), Term::Not];
    assert_eq!(validatetrans(&policy(), 1, &terms), "(validatetrans file (not (eq u1 u2)))");
}

#[test]
fn writes_levels() {
    let categories: Bits = [0, 2, 3, 4].into_iter().collect();
    assert_eq!(level(&policy(), &Level { sensitivity: 1, categories }), "(s0 (c0 (range c2 c4)))");
    assert_eq!(level(&policy(), &Level { sensitivity: 1, categories: Bits::default() }), "(s0)");
}
