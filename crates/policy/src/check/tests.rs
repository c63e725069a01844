use super::{Finding, Kernel, Severity, check};
use crate::{
    decide::Tables,
    diff::{Side, diff},
    fuzz,
    model::{
        Bits, Class, Comparison, Constraint, HandleUnknown, NameKind, Pair, Party, Policy, Rule, RuleKind, Term, Type,
    },
    reach::{Limits, Reach, Way},
    tables,
    vectors::Vectors,
};

const FILE: u32 = 1;
const PROCESS: u32 = 2;

fn class(name: &str, permissions: &[&str]) -> Class {
    let permissions = permissions.iter().map(|name| (*name).to_owned()).collect();
    Class { name: name.to_owned(), permissions, ..Class::default() }
}

fn allow(source: u32, target: u32, class: u32, data: u32) -> Rule {
    Rule { kind: RuleKind::Allow, source, target, class, data, condition: None }
}

/// init_t (1) starts sshd_t (2) by exec_t (3); nothing is doubtful.
fn policy() -> Policy {
    let named = |(number, name): (u32, &str)| Type {
        name: name.to_owned(),
        set: [number].into_iter().collect(),
        ..Type::default()
    };
    let names = ["init_t", "sshd_t", "exec_t"];
    Policy {
        types: std::iter::once(Type::default()).chain((1..).zip(names).map(named)).collect(),
        classes: vec![
            Class::default(),
            class("file", &["read", "write", "entrypoint"]),
            class("process", &["transition", "signal"]),
        ],
        rules: vec![allow(2, 3, FILE, 4), allow(1, 2, PROCESS, 1)],
        ..Policy::default()
    }
}

fn findings(policy: &Policy, kernel: Option<&str>) -> Vec<Finding> {
    let laid = tables::build(policy).unwrap();
    let kernel = kernel.map(|release| Kernel::find(release).unwrap());
    check(policy, &Tables::new(&laid.tables).unwrap(), laid.levels.len(), kernel.as_ref())
}

/// The one finding of which the text has `part`.
fn find(findings: &[Finding], part: &str) -> Finding {
    let found: Vec<&Finding> = findings.iter().filter(|finding| finding.text.contains(part)).collect();
    assert_eq!(found.len(), 1, "{part}: {findings:#?}");
    found[0].clone()
}

#[test]
fn finds_nothing_where_nothing_is_doubtful() {
    assert_eq!(findings(&policy(), None), []);
}

#[test]
fn reports_permissive_types_and_types_without_rules() {
    let mut policy = policy();
    policy.types[2].permissive = true;
    policy.types.push(Type { name: "idle_t".to_owned(), set: [4].into_iter().collect(), ..Type::default() });
    let found = findings(&policy, None);
    assert_eq!(find(&found, "permissive").names, ["sshd_t"]);
    assert_eq!(find(&found, "no rule speaks").names, ["idle_t"]);
    assert_eq!(found.len(), 2);
}

#[test]
fn reports_a_domain_that_nothing_leads_to() {
    let mut policy = policy();
    policy.rules[1] = allow(2, 2, PROCESS, 1);
    policy.rules.push(allow(1, 3, FILE, 1));
    assert_eq!(find(&findings(&policy, None), "no process can enter").names, ["sshd_t"], "it leads to itself only");

    // The same by an attribute of which it is the only type: then row and column say it.
    policy.types[2].set.insert(4);
    let set = [2].into_iter().collect();
    policy.types.push(Type { name: "only".to_owned(), attribute: true, set, ..Type::default() });
    policy.rules[1] = allow(4, 4, PROCESS, 1);
    assert_eq!(find(&findings(&policy, None), "no process can enter").names, ["sshd_t"]);
}

#[test]
fn reports_what_a_bounded_type_has_beyond_its_parent() {
    let mut policy = policy();
    policy.types[2].bounds = 1;
    policy.rules.push(allow(1, 3, FILE, 1));
    let found = findings(&policy, None);
    assert_eq!(find(&found, "bounded").names, ["sshd_t exec_t (file (entrypoint))"]);
}

#[test]
fn reports_constraints_that_come_out_the_same_for_all() {
    let within = |names: &[u32]| Term::In {
        party: Party::Source,
        kind: NameKind::Type,
        comparison: Comparison::Eq,
        names: names.iter().copied().collect(),
        written: Bits::default(),
    };
    let equal = Term::Compare(Pair::Users, Comparison::Eq);
    let mut policy = policy();
    policy.classes[1].constraints = vec![
        Constraint { permissions: 1, expression: vec![within(&[])] },
        Constraint { permissions: 2, expression: vec![within(&[1, 2, 3]), equal.clone(), Term::Or] },
        Constraint { permissions: 4, expression: vec![within(&[1]), equal.clone(), Term::Or] },
        Constraint { permissions: 1, expression: vec![equal.clone(), equal, Term::Not, Term::And] },
    ];
    let found = findings(&policy, None);
    let never = find(&found, "nothing meets");
    assert_eq!(never.severity, Severity::Warning);
    assert_eq!(never.names.len(), 2, "{never:?}");
    assert_eq!(find(&found, "everything meets").names.len(), 1);
}

#[test]
fn reports_what_a_kernel_does_not_enforce() {
    let mut policy = policy();
    policy.capabilities = vec!["open_perms".to_owned(), "memfd_class".to_owned()];
    policy.classes[1].permissions.extend(["levitate".to_owned(), "watch_mountns".to_owned()]);
    policy.classes.extend([class("lockdown", &["integrity"]), class("dbus", &["send_msg"])]);
    let found = findings(&policy, Some("6.1.0-56-cloud-amd64"));
    assert_eq!(find(&found, "policy capabilities").names, ["memfd_class"]);
    assert_eq!(find(&found, "other kernels check").names, ["file watch_mountns", "lockdown"]);
    assert_eq!(find(&found, "permissions of the kernel's classes").names, ["file levitate"]);
    assert_eq!(find(&found, "no kernel checks").names, ["dbus"]);
    assert!(!findings(&policy, Some("7.2")).iter().any(|finding| finding.text.contains("policy capabilities")));
}

#[test]
fn reports_what_the_policy_leaves_undefined_and_what_becomes_of_it() {
    let mut policy = policy();
    for (unknown, severity, part) in [
        (HandleUnknown::Allow, Severity::Warning, "allows them to everybody"),
        (HandleUnknown::Deny, Severity::Note, "denies them to everybody"),
        (HandleUnknown::Reject, Severity::Warning, "refuses the policy"),
    ] {
        policy.handle_unknown = unknown;
        let finding = find(&findings(&policy, Some("6.1")), part);
        assert_eq!(finding.severity, severity);
        assert!(finding.names.contains(&"dir".to_owned()), "a class");
        assert!(finding.names.contains(&"file execute".to_owned()), "a permission");
        assert!(!finding.names.contains(&"file read".to_owned()));
    }
}

/// The tables of a built policy may lie.
#[test]
fn fuzz_analyses_end_whatever_is_in_the_tables() {
    let policy = policy();
    let laid = tables::build(&policy).unwrap();
    let mut answered = 0_u64;
    fuzz::run(&[&laid.tables], |bytes| {
        let Ok(tables) = Tables::new(bytes) else { return };
        answered += 1;
        check(&policy, &tables, laid.levels.len(), None);
        let vectors = Vectors::of(&tables);
        let reach = Reach::new(&policy, &vectors, Way::From, 1, &Limits::default());
        reach.types().iter().for_each(|(type_, _)| drop(reach.path(*type_)));
        let side = Side { policy: &policy, vectors: &vectors };
        diff(side, side);
    });
    assert!(answered > 0, "no mutation kept its header");
}
