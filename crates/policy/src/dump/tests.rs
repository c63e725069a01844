mod hostile;

use std::net::IpAddr;

use tollgate_abi::tables::{TG_RANGE_GLBLUB, TG_RANGE_SOURCE_HIGH, TG_RANGE_SOURCE_LOW, TG_RANGE_TARGET_LOW_HIGH};

use super::*;
use crate::{
    model::{Bits, Condition, Context, Extension, Level, Range, RuleKind},
    sepol::{self, CilFile, Options},
};

fn stream_of(text: &str) -> Vec<u8> {
    let file = CilFile { name: "test.cil".into(), text: text.into() };
    sepol::compile(&[file], &Options { without_lines: true, ..Options::default() }).unwrap().model
}

fn everything() -> Vec<u8> {
    stream_of(include_str!("everything.cil"))
}

/// A rule with names: kind, source, target, class, data, and when it holds.
type Said<'a> = (RuleKind, &'a str, &'a str, &'a str, u32, Option<Condition>);

/// A policy, and the identifiers of names in it.
struct Told(Policy);

impl Told {
    fn new() -> Self {
        Self(read(&everything()).unwrap())
    }

    fn type_(&self, name: &str) -> u32 {
        self.0.types.iter().position(|type_| type_.name == name).unwrap() as u32
    }

    fn types(&self, names: &[&str]) -> Bits {
        names.iter().map(|name| self.type_(name)).collect()
    }

    fn class(&self, name: &str) -> u32 {
        self.0.classes.iter().position(|class| class.name == name).unwrap() as u32
    }

    fn role(&self, name: &str) -> u32 {
        self.0.roles.iter().position(|role| role.name == name).unwrap() as u32
    }

    fn roles(&self, names: &[&str]) -> Bits {
        names.iter().map(|name| self.role(name)).collect()
    }

    fn user(&self, name: &str) -> u32 {
        self.0.users.iter().position(|user| user.name == name).unwrap() as u32
    }

    fn users(&self, names: &[&str]) -> Bits {
        names.iter().map(|name| self.user(name)).collect()
    }

    fn permissions(&self, class: &str, names: &[&str]) -> u32 {
        let class = &self.0.classes[self.class(class) as usize];
        let bit = |name: &&str| 1 << class.permissions.iter().position(|one| one == name).unwrap();
        names.iter().map(bit).fold(0, |word: u32, bit: u32| word | bit)
    }

    fn rules(&self) -> Vec<Said<'_>> {
        let name = |number: u32| self.0.types[number as usize].name.as_str();
        let class = |number: u32| self.0.classes[number as usize].name.as_str();
        let rule = |rule: &crate::model::Rule| {
            (rule.kind, name(rule.source), name(rule.target), class(rule.class), rule.data, rule.condition)
        };
        self.0.rules.iter().map(rule).collect()
    }

    fn context(&self, user: &str, role: &str, type_: &str, low: Level, high: Level) -> Context {
        Context { user: self.user(user), role: self.role(role), type_: self.type_(type_), range: Range { low, high } }
    }

    fn plain(&self) -> Context {
        self.context("alice", "object_r", "object", level(1, &[]), level(1, &[]))
    }

    fn marked(&self) -> Context {
        self.context("bob", "object_r", "etc", level(1, &[0]), level(2, &[0, 1]))
    }
}

fn level(sensitivity: u32, categories: &[u32]) -> Level {
    Level { sensitivity, categories: categories.iter().copied().collect() }
}

fn names(party: Party, kind: NameKind, comparison: Comparison, names: Bits, written: Bits) -> Term {
    Term::In { party, kind, comparison, names, written }
}

/// One of the terms holds, each joined to those before it.
fn one_of(terms: &[Term]) -> Vec<Term> {
    let (first, others) = terms.split_first().unwrap();
    std::iter::once(first.clone()).chain(others.iter().flat_map(|term| [term.clone(), Term::Or])).collect()
}

#[test]
fn tells_what_the_whole_policy_says() {
    let Told(policy) = Told::new();
    assert_eq!((policy.version, policy.mls), (sepol::VERSION, true));
    assert_eq!(policy.handle_unknown, HandleUnknown::Reject);
    let mut capabilities = policy.capabilities.clone();
    capabilities.sort();
    assert_eq!(capabilities, ["extended_socket_class", "open_perms"]);
    assert_eq!(policy.infiniband, 2);
    for (text, unknown) in [("deny", HandleUnknown::Deny), ("allow", HandleUnknown::Allow)] {
        let text = include_str!("everything.cil").replace("(handleunknown reject)", &format!("(handleunknown {text})"));
        assert_eq!(read(&stream_of(&text)).unwrap().handle_unknown, unknown);
    }
}

#[test]
fn tells_classes_with_the_permissions_of_their_common_first() {
    let told = Told::new();
    let class = |name: &str| &told.0.classes[told.class(name) as usize];
    assert_eq!(class("file").permissions, ["ioctl", "read", "write", "execute", "entrypoint"]);
    assert_eq!(class("socket").permissions, ["ioctl", "read", "write"]);
    assert_eq!(class("process").permissions, ["transition"]);
    let defaults = |name: &str| {
        let class = class(name);
        (class.default_user, class.default_role, class.default_type, class.default_range)
    };
    use WhoseDefault::{None, Source, Target};
    assert_eq!(defaults("file"), (Target, Target, Source, TG_RANGE_SOURCE_LOW));
    assert_eq!(defaults("dir"), (Source, None, Target, TG_RANGE_TARGET_LOW_HIGH));
    assert_eq!(defaults("process"), (None, None, None, TG_RANGE_SOURCE_HIGH));
    assert_eq!(defaults("socket").3, TG_RANGE_GLBLUB);
}

#[test]
fn tells_types_with_attributes_bounds_aliases_and_permissive_ones() {
    let told = Told::new();
    let type_ = |name: &str| &told.0.types[told.type_(name) as usize];
    assert!(type_("domain").attribute && !type_("init").attribute);
    assert_eq!(type_("domain").set, told.types(&["init", "child"]));
    assert_eq!(type_("init").set, told.types(&["init", "domain"]));
    assert_eq!(type_("etc").set, told.types(&["etc"]));
    assert_eq!((type_("child").bounds, type_("init").bounds), (told.type_("init"), 0));
    let permissive: Vec<&str> =
        told.0.types.iter().filter(|type_| type_.permissive).map(|type_| type_.name.as_str()).collect();
    assert_eq!(permissive, ["child"]);
    assert_eq!(told.0.type_aliases, [("conf".to_owned(), told.type_("etc"))]);
}

#[test]
fn tells_roles_users_and_levels() {
    let told = Told::new();
    let staff = &told.0.roles[told.role("staff_r") as usize];
    assert_eq!(staff.types, told.types(&["init", "child"]));
    assert_eq!(staff.dominates, told.roles(&["staff_r"]));
    assert_eq!(told.0.role_allows, [(told.role("system_r"), told.role("staff_r"))]);
    let bob = &told.0.users[told.user("bob") as usize];
    assert_eq!(bob.roles, told.roles(&["staff_r"]));
    assert_eq!(bob.range, Range { low: level(1, &[0]), high: level(2, &[0, 1]) });
    assert_eq!(bob.default_level, level(2, &[1]));
    let [_, s0, s1] = told.0.sensitivities.as_slice() else { panic!("{:?}", told.0.sensitivities) };
    assert_eq!((s0.name.as_str(), s0.aliases.as_slice()), ("s0", ["low".to_owned()].as_slice()));
    assert_eq!((s1.name.as_str(), s1.aliases.len()), ("s1", 0));
    assert_eq!((s0.categories.clone(), s1.categories.clone()), ([0].into_iter().collect(), (0..3).collect()));
    let [c0, c1, c2] = told.0.categories.as_slice() else { panic!("{:?}", told.0.categories) };
    assert_eq!((c0.name.as_str(), c1.name.as_str(), c2.name.as_str()), ("c0", "c1", "c2"));
    let mut aliases = c1.aliases.clone();
    aliases.sort();
    assert_eq!((c0.aliases.len(), aliases), (0, vec!["red".to_owned(), "rose".to_owned()]));
}

#[test]
fn tells_rules_and_when_they_hold() {
    let told = Told::new();
    let boolean = |name: &str| told.0.booleans.iter().position(|boolean| boolean.name == name).unwrap() as u32;
    let (on, off) = (Logic::Boolean(boolean("on")), Logic::Boolean(boolean("off")));
    assert!(told.0.booleans[boolean("on") as usize].value && !told.0.booleans[boolean("off") as usize].value);
    use Logic::{And, Eq, Neq, Not, Or, Xor};
    let long = [on, off, on, off, on, off, Neq, Eq, Xor, Not, Or, And].to_vec();
    let position = |wanted: &[Logic]| told.0.conditions.iter().position(|one| one == wanted).unwrap() as u32;
    let when = |condition, value| Some(Condition { condition, value });
    let (long, short) = (position(&long), position(&[off]));
    let permissions = |class, names: &[&str]| told.permissions(class, names);
    let mut expected = vec![
        (RuleKind::Allow, "domain", "etc", "file", permissions("file", &["read", "ioctl"]), None),
        (RuleKind::Allow, "child", "etc", "file", permissions("file", &["read", "ioctl"]), None),
        (RuleKind::Allow, "init", "init", "process", permissions("process", &["transition"]), None),
        (RuleKind::AuditAllow, "init", "etc", "file", permissions("file", &["write"]), None),
        (RuleKind::DontAudit, "init", "log", "dir", permissions("dir", &["read", "add_name"]), None),
        (RuleKind::Transition, "init", "etc", "file", told.type_("log"), None),
        (RuleKind::Member, "init", "etc", "dir", told.type_("log"), None),
        (RuleKind::Change, "init", "etc", "dir", told.type_("object"), None),
        (RuleKind::Allow, "init", "log", "file", permissions("file", &["read"]), when(long, true)),
        (RuleKind::Transition, "init", "log", "file", told.type_("etc"), when(long, true)),
        (RuleKind::AuditAllow, "init", "log", "file", permissions("file", &["write"]), when(long, false)),
        (RuleKind::DontAudit, "init", "log", "file", permissions("file", &["execute"]), when(long, false)),
        (RuleKind::Change, "init", "log", "dir", told.type_("etc"), when(short, true)),
    ];
    let mut rules = told.rules();
    rules.sort();
    expected.sort();
    assert_eq!(rules, expected);
    // on, off, false: or gives the negation of on xor (off eq (on neq off)), which is on xor false.
    assert!(told.0.holds(when(long, false)) && !told.0.holds(when(short, true)));
}

#[test]
fn tells_extended_rules_of_functions_and_of_drivers() {
    let told = Told::new();
    let (init, etc, log) = (told.type_("init"), told.type_("etc"), told.type_("log"));
    let (file, dir) = (told.class("file"), told.class("dir"));
    let mut rules: Vec<_> = told.0.extended_rules.iter().map(|rule| (rule.kind, rule)).collect();
    rules.sort();
    let [(RuleKind::Allow, allow), (RuleKind::AuditAllow, audit), (RuleKind::DontAudit, dont)] = rules.as_slice()
    else {
        panic!("{rules:?}")
    };
    let key = |rule: &crate::model::ExtendedRule| (rule.source, rule.target, rule.class, rule.condition);
    assert_eq!((key(allow), allow.extension), ((init, etc, file, None), Extension::IoctlFunction { driver: 0x12 }));
    assert_eq!(allow.bits, [1 << 0x34, 0, 0, 3 << 62].map(|word: u64| word));
    assert_eq!((key(audit), audit.extension), ((init, etc, file, None), Extension::IoctlDriver));
    assert_eq!(audit.bits, [0, 1 << (0x54 - 64), 0, 0]);
    assert_eq!((key(dont), dont.extension), ((init, log, dir, None), Extension::IoctlFunction { driver: 0xff }));
    assert_eq!(dont.bits, [1, 0, 0, 0]);
}

#[test]
fn tells_constraints_with_their_operands_and_operators() {
    let told = Told::new();
    let one = |class: &str, permissions: &[&str]| {
        let bits = told.permissions(class, permissions);
        let class = &told.0.classes[told.class(class) as usize];
        let found: Vec<_> = class.constraints.iter().filter(|constraint| constraint.permissions == bits).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].expression.clone()
    };
    use Comparison::{Dom, DomBy, Eq, Incomp, Neq};
    use Term::{And, Compare, Not, Or};
    let same = [Compare(Pair::Users, Eq), Compare(Pair::Roles, Neq), Compare(Pair::Types, Eq), Not, And, Or];
    assert_eq!(one("file", &["read"]), same);
    let dominance = [Compare(Pair::Roles, Dom), Compare(Pair::Roles, DomBy), Compare(Pair::Roles, Incomp), Or, Or];
    assert_eq!(one("dir", &["read", "write"]), dominance);
    let levels = [
        (Pair::L1L2, Dom),
        (Pair::L1H2, DomBy),
        (Pair::H1L2, Incomp),
        (Pair::H1H2, Eq),
        (Pair::L1H1, Neq),
        (Pair::L2H2, Eq),
    ]
    .map(|(pair, comparison)| Compare(pair, comparison));
    assert_eq!(one("file", &["write"]), one_of(&levels));
    let none = Bits::default();
    let (source, target) = (Party::Source, Party::Target);
    let sets = [
        names(source, NameKind::Type, Eq, told.types(&["init", "child"]), told.types(&["domain"])),
        names(target, NameKind::Type, Neq, told.types(&["etc"]), told.types(&["etc"])),
        names(source, NameKind::User, Eq, told.users(&["alice"]), none.clone()),
        names(target, NameKind::User, Neq, told.users(&["alice", "bob"]), none.clone()),
        names(source, NameKind::Role, Eq, told.roles(&["staff_r"]), none.clone()),
        names(target, NameKind::Role, Eq, told.roles(&["system_r"]), none.clone()),
    ];
    assert_eq!(one("process", &["transition"]), one_of(&sets));
    let file = &told.0.classes[told.class("file") as usize];
    let task = |kind, comparison, set, written| names(Party::Task, kind, comparison, set, written);
    let domain = told.types(&["domain"]);
    let plain = [
        task(NameKind::User, Eq, told.users(&["bob"]), none.clone()),
        task(NameKind::Role, Eq, told.roles(&["system_r"]), none.clone()),
        task(NameKind::Type, Neq, told.types(&["init", "child"]), domain),
        Or,
        Or,
    ];
    let (init, etc) = (told.types(&["init"]), told.types(&["etc"]));
    let mls = [
        Compare(Pair::L1L2, Eq),
        names(source, NameKind::Type, Eq, init.clone(), init),
        names(target, NameKind::Type, Eq, etc.clone(), etc),
        And,
        Or,
    ];
    assert_eq!(file.validatetrans.len(), 2);
    assert!(file.validatetrans.contains(&plain.to_vec()), "{:?}", file.validatetrans);
    assert!(file.validatetrans.contains(&mls.to_vec()), "{:?}", file.validatetrans);
}

#[test]
fn tells_transitions_by_name_of_roles_and_of_ranges() {
    let told = Told::new();
    let (etc, file, process) = (told.type_("etc"), told.class("file"), told.class("process"));
    let [named] = told.0.name_transitions.as_slice() else { panic!("{:?}", told.0.name_transitions) };
    assert_eq!(named.sources, told.types(&["init", "child"]));
    assert_eq!((named.target, named.class, named.name.as_str()), (etc, file, "a name"));
    assert_eq!(named.result, told.type_("object"));
    let mut roles: Vec<_> =
        told.0.role_transitions.iter().map(|each| (each.class, each.role, each.target, each.result)).collect();
    roles.sort_unstable();
    let (system, staff) = (told.role("system_r"), told.role("staff_r"));
    assert_eq!(roles, [(file, system, etc, staff), (process, system, etc, staff)]);
    let [range] = told.0.range_transitions.as_slice() else { panic!("{:?}", told.0.range_transitions) };
    assert_eq!((range.source, range.target, range.class), (told.type_("init"), etc, process));
    assert_eq!(range.range, Range { low: level(1, &[]), high: level(2, &[0, 2]) });
}

#[test]
fn tells_the_contexts_of_what_has_no_label() {
    let told = Told::new();
    let (plain, marked) = (told.plain(), told.marked());
    let kernel = told.context("alice", "system_r", "init", level(1, &[]), level(2, &[2]));
    let sids: Vec<_> = told.0.initial_sids.iter().map(|sid| (sid.sid, sid.name.as_str(), &sid.context)).collect();
    assert_eq!(sids, [(1, "kernel", &kernel), (2, "security", &plain)]);
    let mut uses: Vec<_> =
        told.0.fs_uses.iter().map(|each| (each.behaviour, each.name.as_str(), &each.context)).collect();
    uses.sort();
    assert_eq!(uses, [(1, "ext4", &plain), (2, "tmpfs", &marked), (3, "pipefs", &plain)]);
    let mut genfs: Vec<_> =
        told.0.genfs.iter().map(|each| (each.name.as_str(), each.path.as_str(), each.class, &each.context)).collect();
    genfs.sort();
    assert_eq!(genfs, [("proc", "/", 0, &plain), ("proc", "/net", 0, &marked), ("sysfs", "/", 0, &plain)]);
    let mut ports: Vec<_> =
        told.0.ports.iter().map(|each| (each.protocol, each.low, each.high, &each.context)).collect();
    ports.sort();
    assert_eq!(ports, [(6, 1, 1023, &marked), (6, 80, 80, &plain), (17, 1024, 65535, &plain), (132, 9, 9, &plain)]);
    let [interface] = told.0.interfaces.as_slice() else { panic!("{:?}", told.0.interfaces) };
    assert_eq!((interface.name.as_str(), &interface.interface, &interface.packet), ("eth0", &plain, &marked));
    let nodes: Vec<_> = told.0.nodes.iter().map(|node| (node.address, node.mask, &node.context)).collect();
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let expected = [
        (address("192.0.2.0"), address("255.255.255.0"), &plain),
        (address("2001:db8::"), address("ffff:ffff::"), &marked),
    ];
    assert_eq!(nodes, expected);
}

#[test]
fn tells_a_policy_without_levels() {
    let text = "(handleunknown deny)(mls false)(class file (read))(classorder (file))(sid kernel)(sidorder (kernel))
        (sensitivity s0)(sensitivityorder (s0))(category c0)(categoryorder (c0))(sensitivitycategory s0 (c0))
        (user u)(role r)(type t)(userrole u r)(roletype r t)(userlevel u (s0))(userrange u ((s0) (s0)))
        (sidcontext kernel (u r t ((s0) (s0))))(allow t t (file (read)))";
    let policy = read(&stream_of(text)).unwrap();
    assert!(!policy.mls);
    assert_eq!(policy.initial_sids[0].context.range, Range::default());
}
