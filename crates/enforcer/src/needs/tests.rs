use tollgate_policy::{
    model::{
        Bits, Class, Comparison, Constraint, HandleUnknown, NameKind, Pair, Party, Role, Rule, RuleKind, Term, Type,
    },
    tables,
};

use super::*;

const DIR: u32 = 1;
const PROCESS: u32 = 2;
const SEARCH: u32 = 2;

fn class(name: &str, permissions: &[&str]) -> Class {
    let permissions = permissions.iter().map(|name| (*name).to_owned()).collect();
    Class { name: name.to_owned(), permissions, ..Class::default() }
}

fn rule(kind: RuleKind, source: u32, target: u32, class: u32, data: u32) -> Rule {
    Rule { kind, source, target, class, data, condition: None }
}

/// machine_t (1) is free; web_t (2) and mail_t (3) are domains, and search each type, with web_page_t (4) the only other.
fn policy() -> Policy {
    let named = |(number, name): (u32, &str)| Type {
        name: name.to_owned(),
        set: [number].into_iter().collect(),
        ..Type::default()
    };
    let names = ["machine_t", "web_t", "mail_t", "web_page_t"];
    let role = |name: &str, types: &[u32]| Role {
        name: name.to_owned(),
        types: types.iter().copied().collect(),
        dominates: Bits::default(),
    };
    let search = |source, target| rule(RuleKind::Allow, source, target, DIR, SEARCH);
    Policy {
        handle_unknown: HandleUnknown::Allow,
        types: std::iter::once(Type::default()).chain((1..).zip(names).map(named)).collect(),
        roles: vec![Role::default(), role("object_r", &[]), role("system_r", &[1, 2, 3])],
        classes: vec![Class::default(), class("dir", &["read", "search"]), class("process", &["fork", "signal"])],
        rules: [2, 3].into_iter().flat_map(|source| (1..=4).map(move |target| search(source, target))).collect(),
        ..Policy::default()
    }
}

fn need_of(policy: &Policy, hook: &str) -> Need {
    need_where(policy, hook, Descriptors::Check)
}

/// Packets have no labels.
fn setting(descriptors: Descriptors) -> Setting {
    Setting { descriptors, labelled: false }
}

fn need_where(policy: &Policy, hook: &str, descriptors: Descriptors) -> Need {
    let laid = tables::build(policy).unwrap();
    let needs =
        hooks(policy, &Tables::new(&laid.tables).unwrap(), &["machine_t".into()], setting(descriptors)).unwrap();
    needs.into_iter().find(|need| need.hook == hook).expect("it is a hook with a program")
}

#[test]
fn leaves_out_the_search_that_every_confined_domain_may_make() {
    let need = need_of(&policy(), "inode_permission");
    assert!(!need.needed, "{need:?}");
}

#[test]
fn needs_the_search_that_one_domain_may_not_make() {
    let mut policy = policy();
    policy.rules.retain(|rule| (rule.source, rule.target) != (3, 4));
    let need = need_of(&policy, "inode_permission");
    assert!(need.needed);
    assert_eq!(need.because, "mail_t may be denied dir search on web_page_t, or audited");
}

#[test]
fn needs_the_search_that_is_audited_when_granted() {
    let mut policy = policy();
    policy.rules.push(rule(RuleKind::AuditAllow, 2, 4, DIR, SEARCH));
    assert!(need_of(&policy, "inode_permission").needed);
}

#[test]
fn needs_what_a_constraint_may_deny_and_only_that() {
    let constrained = |expression: Vec<Term>| {
        let mut policy = policy();
        policy.classes[DIR as usize].constraints.push(Constraint { permissions: SEARCH, expression });
        need_of(&policy, "inode_permission").needed
    };
    let levels = || Term::Compare(Pair::L1L2, Comparison::Dom);
    let source_is = |names: &[u32]| Term::In {
        party: Party::Source,
        kind: NameKind::Type,
        comparison: Comparison::Eq,
        names: names.iter().copied().collect(),
        written: Bits::default(),
    };
    assert!(constrained(vec![levels()]));
    assert!(!constrained(vec![levels(), source_is(&[2, 3]), Term::Or]), "both domains are exempt");
    assert!(constrained(vec![levels(), source_is(&[2]), Term::Or]), "mail_t is not");
    assert!(constrained(vec![source_is(&[2, 3]), Term::Not]));
}

#[test]
fn needs_what_the_parent_of_a_bounded_domain_lacks() {
    let mut policy = policy();
    policy.types[3].bounds = 1;
    assert!(need_of(&policy, "inode_permission").needed, "machine_t may search nothing");
    policy.rules.extend((1..=4).map(|target| rule(RuleKind::Allow, 1, target, DIR, SEARCH)));
    assert!(!need_of(&policy, "inode_permission").needed);
}

#[test]
fn needs_what_the_policy_does_not_define_when_it_denies_that() {
    let mut policy = policy();
    assert!(!need_of(&policy, "mmap_addr").needed);
    policy.handle_unknown = HandleUnknown::Deny;
    let need = need_of(&policy, "mmap_addr");
    assert!(need.needed && need.because.contains("does not define memprotect mmap_zero"), "{need:?}");
}

#[test]
fn asks_a_process_about_itself_only_for_what_it_does_to_itself() {
    let mut policy = policy();
    policy.classes.push(class("memprotect", &["mmap_zero"]));
    assert!(need_of(&policy, "mmap_addr").needed);
    policy.rules.extend([2, 3].map(|domain| rule(RuleKind::Allow, domain, domain, 3, 1)));
    assert!(!need_of(&policy, "mmap_addr").needed, "nobody maps another's memory");
}

#[test]
fn needs_nothing_but_labels_where_nobody_is_confined() {
    let policy = policy();
    let laid = tables::build(&policy).unwrap();
    let free = ["machine_t", "web_t", "mail_t"].map(String::from);
    for descriptors in [Descriptors::Check, Descriptors::Use] {
        for need in hooks(&policy, &Tables::new(&laid.tables).unwrap(), &free, setting(descriptors)).unwrap() {
            assert_eq!(need.needed, need.because == "labels are kept there", "{need:?}");
        }
    }
}

#[test]
fn needs_each_read_and_write_only_where_descriptors_are_asked_about_at_their_use() {
    for (descriptors, needed) in [(Descriptors::Check, false), (Descriptors::Use, true)] {
        let need = need_where(&policy(), "file_permission", descriptors);
        assert_eq!(need.needed, needed, "{need:?}");
    }
}

#[test]
fn keeps_labels_whatever_the_policy_says() {
    for hook in ["d_instantiate", "inode_alloc_security", "bprm_committing_creds", "cred_free", "inode_link"] {
        assert!(need_of(&policy(), hook).needed, "{hook}");
    }
}

#[test]
fn misses_what_only_an_absent_hook_asks() {
    let mut policy = policy();
    policy.classes[PROCESS as usize].permissions = vec!["fork".into(), "signal".into(), "setsched".into()];
    policy.classes.push(class("user_namespace", &["create"]));
    let laid = tables::build(&policy).unwrap();
    let tables = Tables::new(&laid.tables).unwrap();
    let of = |without: &[&str]| {
        let kernel: Vec<String> = tollgate_abi::HOOKS.iter().map(|hook| hook.name.to_owned()).collect();
        let kernel: Vec<String> = kernel.into_iter().filter(|hook| !without.contains(&hook.as_str())).collect();
        missing(&policy, &tables, &["machine_t".into()], &kernel, false).unwrap()
    };
    assert_eq!(of(&[]), []);
    assert_eq!(of(&["task_setnice"]), [], "task_setscheduler asks it, too");
    let lost = of(&["userns_create"]);
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].class, lost[0].permission), ("user_namespace", "create"));
    assert_eq!(lost[0].hooks, ["userns_create"]);
    assert_eq!(lost[0].because, "web_t may be denied user_namespace create on web_t, or audited");
}

#[test]
fn needs_packets_only_where_the_policy_wants_them_asked_about() {
    let hook = "socket_sock_rcv_skb";
    let mut policy = policy();
    assert!(!need_of(&policy, hook).needed);
    policy.capabilities = vec!["always_check_network".into()];
    assert!(need_of(&policy, hook).needed);
}

#[test]
fn misses_what_is_sent_where_the_policy_wants_packets_asked_about() {
    let mut policy = policy();
    policy.handle_unknown = HandleUnknown::Deny;
    let all: Vec<String> = crate::programs::all().unwrap();
    let sent_where = |policy: &Policy, labelled| {
        let laid = tables::build(policy).unwrap();
        let lost = missing(policy, &Tables::new(&laid.tables).unwrap(), &["machine_t".into()], &all, labelled).unwrap();
        lost.iter().filter(|lost| lost.hooks.is_empty()).map(|lost| lost.permission).collect::<Vec<_>>()
    };
    let sent = |policy: &Policy| sent_where(policy, false);
    assert_eq!(sent(&policy), Vec::<&str>::new());
    policy.capabilities = vec!["always_check_network".into()];
    assert_eq!(sent(&policy), ["egress", "sendto", "send", "forward_in", "forward_out"]);
    // Network devices run programs then, which ask.
    assert_eq!(sent_where(&policy, true), Vec::<&str>::new());
}
