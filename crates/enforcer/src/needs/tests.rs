mod enumeration;

use tollgate_policy::{
    model::{
        Bits, Class, Comparison, Constraint, Context, HandleUnknown, InitialSid, NameKind, Pair, Party, Role, Rule,
        RuleKind, Term, Type,
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
    Setting { descriptors, labelled: false, overlay: false }
}

fn need_where(policy: &Policy, hook: &str, descriptors: Descriptors) -> Need {
    need_in(policy, hook, setting(descriptors))
}

/// Why a hook is needed; [`hooks`] must have it if there is a reason, and only then.
fn need_in(policy: &Policy, hook: &str, setting: Setting) -> Need {
    let laid = tables::build(policy).unwrap();
    let (tables, unconfined) = (Tables::new(&laid.tables).unwrap(), ["machine_t".to_owned()]);
    let places = |_: u32, _: u32, _: &[Term]| vec!["policy.cil:7".to_owned()];
    let mut found = why(policy, &tables, &unconfined, setting, &places, Some(hook)).unwrap();
    let need = found.pop().expect("it is a hook with a program");
    let needed = hooks(policy, &tables, &unconfined, setting).unwrap();
    assert_eq!(needed.contains(&hook), !need.reasons.is_empty(), "{need:?}");
    need
}

impl Need {
    fn needed(&self) -> bool {
        !self.reasons.is_empty()
    }

    fn first(&self) -> &str {
        self.reasons.first().map_or("", |reason| reason.text.as_str())
    }
}

#[test]
fn leaves_out_the_search_that_every_confined_domain_may_make() {
    let need = need_of(&policy(), "inode_permission");
    assert!(!need.needed(), "{need:?}");
}

#[test]
fn needs_the_search_that_one_domain_may_not_make() {
    let mut policy = policy();
    policy.rules.retain(|rule| (rule.source, rule.target) != (3, 4));
    let need = need_of(&policy, "inode_permission");
    assert!(need.needed());
    assert_eq!(need.first(), "mail_t may not search web_page_t:dir");
    let example = need.reasons[0].example.as_ref().unwrap();
    assert_eq!(
        (&*example.source, &*example.target, &*example.class, &*example.permission),
        ("mail_t", "web_page_t", "dir", "search")
    );
    assert_eq!(need.reasons[0].kind, Kind::Rule);
}

#[test]
fn needs_the_search_that_is_audited_when_granted() {
    let mut policy = policy();
    policy.rules.push(rule(RuleKind::AuditAllow, 2, 4, DIR, SEARCH));
    assert!(need_of(&policy, "inode_permission").needed());
}

#[test]
fn needs_what_a_constraint_may_deny_and_only_that() {
    let constrained = |expression: Vec<Term>| {
        let mut policy = policy();
        policy.classes[DIR as usize].constraints.push(Constraint { permissions: SEARCH, expression });
        need_of(&policy, "inode_permission").needed()
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
    assert!(need_of(&policy, "inode_permission").needed(), "machine_t may search nothing");
    policy.rules.extend((1..=4).map(|target| rule(RuleKind::Allow, 1, target, DIR, SEARCH)));
    assert!(!need_of(&policy, "inode_permission").needed());
}

#[test]
fn needs_what_the_policy_does_not_define_when_it_denies_that() {
    let mut policy = policy();
    assert!(!need_of(&policy, "mmap_addr").needed());
    policy.handle_unknown = HandleUnknown::Deny;
    let need = need_of(&policy, "mmap_addr");
    assert!(need.needed() && need.first().contains("does not define memprotect mmap_zero"), "{need:?}");
}

#[test]
fn asks_a_process_about_itself_only_for_what_it_does_to_itself() {
    let mut policy = policy();
    policy.classes.push(class("memprotect", &["mmap_zero"]));
    assert!(need_of(&policy, "mmap_addr").needed());
    policy.rules.extend([2, 3].map(|domain| rule(RuleKind::Allow, domain, domain, 3, 1)));
    assert!(!need_of(&policy, "mmap_addr").needed(), "nobody maps another's memory");
}

#[test]
fn needs_nothing_but_labels_where_nobody_is_confined() {
    let policy = policy();
    let laid = tables::build(&policy).unwrap();
    let free = ["machine_t", "web_t", "mail_t"].map(String::from);
    for descriptors in [Descriptors::Check, Descriptors::Use] {
        let tables = Tables::new(&laid.tables).unwrap();
        let needs = why(&policy, &tables, &free, setting(descriptors), &|_, _, _| Vec::new(), None).unwrap();
        for need in needs {
            assert!(need.reasons.iter().all(|reason| reason.kind == Kind::Labels), "{need:?}");
        }
    }
}

#[test]
fn needs_each_read_and_write_only_where_descriptors_are_asked_about_at_their_use() {
    for (descriptors, needed) in [(Descriptors::Check, false), (Descriptors::Use, true)] {
        let need = need_where(&policy(), "file_permission", descriptors);
        assert_eq!(need.needed(), needed, "{need:?}");
    }
}

#[test]
fn keeps_labels_whatever_the_policy_says() {
    for hook in ["d_instantiate", "inode_alloc_security", "bprm_committing_creds", "cred_free", "inode_link"] {
        assert!(need_of(&policy(), hook).needed(), "{hook}");
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
    assert_eq!(lost[0].because, "web_t may not create web_t:user_namespace");
}

#[test]
fn needs_packets_only_where_the_policy_wants_them_asked_about() {
    let hook = "socket_sock_rcv_skb";
    let mut policy = policy();
    assert!(!need_of(&policy, hook).needed());
    policy.capabilities = vec!["always_check_network".into()];
    assert!(need_of(&policy, hook).needed());
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

#[test]
fn needs_what_a_socket_with_the_label_of_a_file_may_not_do() {
    let mut policy = policy();
    policy.classes.push(class("unix_dgram_socket", &["sendto"]));
    let send = |source: u32| (1..=4).map(move |target| rule(RuleKind::Allow, source, target, 3, 1));
    policy.rules.extend([2, 3].into_iter().flat_map(send));
    assert_eq!(need_of(&policy, "unix_may_send").first(), "web_page_t may not sendto machine_t:unix_dgram_socket");
    policy.rules.extend(send(4));
    assert!(!need_of(&policy, "unix_may_send").needed());
}

#[test]
fn needs_each_change_of_a_file_where_a_domain_may_not_end_enforcement() {
    let mut policy = policy();
    policy.classes.push(class("file", &["lock"]));
    policy.classes.push(class("security", &["setenforce"]));
    policy.rules.extend(
        [2, 3].into_iter().flat_map(|source| (1..=4).map(move |target| rule(RuleKind::Allow, source, target, 3, 1))),
    );
    policy.initial_sids.push(InitialSid {
        sid: 2,
        name: "security".into(),
        context: Context { type_: 4, ..Context::default() },
    });
    assert_eq!(need_of(&policy, "file_lock").first(), "web_t may not setenforce web_page_t:security");
    policy.rules.extend([2, 3].map(|source| rule(RuleKind::Allow, source, 4, 4, 1)));
    assert!(!need_of(&policy, "file_lock").needed(), "nobody is checked for it on anything else");
}

#[test]
fn needs_what_is_denied_whatever_rules_allow() {
    let mut policy = policy();
    let rings = need_of(&policy, "file_receive");
    assert_eq!(rings.reasons[0].kind, Kind::Fixed, "{rings:?}");
    assert!(!need_of(&policy, "netlink_send").needed());
    policy.handle_unknown = HandleUnknown::Deny;
    let messages = need_of(&policy, "netlink_send");
    assert_eq!(messages.reasons[0].kind, Kind::Fixed, "{messages:?}");
    policy.capabilities = vec!["netlink_xperm".into()];
    let messages = need_of(&policy, "netlink_send");
    let permissions: Vec<bool> = messages.reasons.iter().map(|reason| reason.text.contains("_socket nlmsg,")).collect();
    assert_eq!(permissions, [true; 4], "{messages:?}");
}

#[test]
fn needs_what_would_let_packets_leave_without_labels() {
    for hook in ["socket_create", "socket_connect", "socket_sendmsg", "socket_setsockopt", "sctp_bind_connect"] {
        let labelled = Setting { labelled: true, ..setting(Descriptors::Check) };
        assert_eq!(need_in(&policy(), hook, labelled).reasons[0].kind, Kind::Packets, "{hook}");
        assert!(!need_of(&policy(), hook).needed(), "{hook}");
    }
}

#[test]
fn needs_a_hook_after_attributes_only_for_labels_through_overlayfs() {
    let overlay = Setting { overlay: true, ..setting(Descriptors::Check) };
    assert_eq!(need_in(&policy(), "inode_post_setxattr", overlay).reasons[0].kind, Kind::Labels);
    assert!(!need_of(&policy(), "inode_post_setxattr").needed());
}

#[test]
fn names_the_line_of_a_constraint_and_the_parent_that_bounds_a_domain() {
    let mut constrained = policy();
    let expression = vec![Term::Compare(Pair::L1L2, Comparison::Dom)];
    constrained.classes[DIR as usize].constraints.push(Constraint { permissions: SEARCH, expression });
    let need = need_of(&constrained, "inode_permission");
    assert_eq!(need.first(), "web_t may search machine_t:dir only where a constraint holds: policy.cil:7");
    assert_eq!(need.reasons[0].kind, Kind::Constraint);
    let mut bounded = policy();
    bounded.types[3].bounds = 1;
    let need = need_of(&bounded, "inode_permission");
    assert_eq!(
        need.first(),
        "mail_t may not search machine_t:dir, as machine_t bounds it, which is checked on machine_t"
    );
}

#[test]
fn knows_that_a_process_has_its_own_context() {
    let mut policy = policy();
    policy.rules.extend([2, 3].map(|domain| rule(RuleKind::Allow, domain, domain, PROCESS, 7)));
    policy.classes[PROCESS as usize].permissions.push("execmem".into());
    let same = |pair, comparison| {
        let mut policy = policy.clone();
        let expression = vec![Term::Compare(pair, comparison)];
        policy.classes[PROCESS as usize].constraints.push(Constraint { permissions: 4, expression });
        let reasons = need_of(&policy, "mmap_file").reasons;
        !reasons.iter().any(|reason| reason.example.as_ref().is_some_and(|example| example.permission == "execmem"))
    };
    assert!(
        same(Pair::Users, Comparison::Eq) && same(Pair::L1L2, Comparison::Dom) && same(Pair::L1H2, Comparison::DomBy)
    );
    assert!(!same(Pair::L1H2, Comparison::Dom) && !same(Pair::Roles, Comparison::Neq));
}

#[test]
fn says_first_that_labels_are_kept_and_then_what_is_denied() {
    let need = need_of(&policy(), "task_kill");
    let kinds: Vec<Kind> = need.reasons.iter().map(|reason| reason.kind).collect();
    assert_eq!(kinds, [Kind::Labels, Kind::Rule], "{need:?}");
    let laid = tables::build(&policy()).unwrap();
    let tables = Tables::new(&laid.tables).unwrap();
    let free = ["machine_t".to_owned()];
    let all = why(&policy(), &tables, &free, setting(Descriptors::Check), &|_, _, _| Vec::new(), None).unwrap();
    assert!(all.iter().all(|need| need.reasons.len() <= 1), "of all hooks, one reason is enough");
}
