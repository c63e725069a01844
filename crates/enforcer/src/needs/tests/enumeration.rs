//! Which hooks are needed, held against the decisions of all pairs of contexts that small random policies have.

use std::{cell::RefCell, collections::HashMap};

use fastrand::Rng;
use tollgate_abi::tables::{tg_context, tg_question};
use tollgate_policy::{
    decide::Levels,
    model::{Level, Range, Sensitivity, User},
};

use super::*;

const POLICIES: usize = 400;
/// machine_t, which is unconfined.
const FREE: u32 = 1;
/// The types of processes, that one among them. web_t is also a user's.
const DOMAINS: [u32; 3] = [FREE, 2, 3];
/// The type of what is unlabelled, which processes may be.
const UNLABELLED: u32 = 4;
/// These and a type of objects.
const TYPES: u32 = 5;
const OBJECT_R: u32 = 1;
/// The classes that some policies define, and those of their permissions that matter here.
const DEFINED: [(&str, &[&str]); 12] = [
    ("dir", &["read", "write", "search", "remove_name", "rmdir"]),
    ("file", &["read", "write", "append", "open", "ioctl", "execute", "lock", "watch"]),
    ("process", &["fork", "getsched", "setcap", "execmem", "signal"]),
    ("fd", &["use"]),
    ("memprotect", &["mmap_zero"]),
    ("security", &["setenforce", "load_policy"]),
    ("system", &["syslog_read", "syslog_mod", "module_request", "ipc_info", "module_load"]),
    ("unix_dgram_socket", &["create", "read", "write", "sendto"]),
    ("tcp_socket", &["create", "bind", "name_bind", "node_bind", "name_connect"]),
    ("netlink_route_socket", &["nlmsg_read", "nlmsg_write", "nlmsg"]),
    ("perf_event", &["open", "read"]),
    ("capability", &["chown", "kill"]),
];

fn level(sensitivity: u32) -> Level {
    Level { sensitivity, categories: Bits::default() }
}

fn range((low, high): (u32, u32)) -> Range {
    Range { low: level(low), high: level(high) }
}

/// A policy in which each type may do everything to each type.
fn lenient(random: &mut Rng) -> Policy {
    let type_ =
        |number: u32| Type { name: format!("type{number}_t"), set: [number].into_iter().collect(), ..Type::default() };
    let role = |name: &str, types: &[u32]| Role {
        name: name.into(),
        types: types.iter().copied().collect(),
        dominates: Bits::default(),
    };
    let user = |name: &str, roles: &[u32]| User {
        name: name.into(),
        roles: roles.iter().copied().collect(),
        range: range((1, 2)),
        default_level: level(1),
    };
    let initial = |sid, type_| InitialSid {
        sid,
        name: String::new(),
        context: Context { user: 1, role: OBJECT_R, type_, range: range((1, 1)) },
    };
    let defined: Vec<_> = DEFINED.iter().filter(|_| random.u8(..) < 200).collect();
    let classes: Vec<Class> = defined.iter().map(|(name, permissions)| class(name, permissions)).collect();
    let mut types: Vec<Type> = (1..=TYPES).map(type_).collect();
    types[FREE as usize - 1].name = "machine_t".into();
    let all = (1..).zip(&defined).flat_map(|(class, (_, permissions))| {
        let every = (1 << permissions.len()) - 1;
        let pairs = (1..=TYPES).flat_map(|source| (1..=TYPES).map(move |target| (source, target)));
        pairs.map(move |(source, target)| rule(RuleKind::Allow, source, target, class, every))
    });
    Policy {
        mls: true,
        handle_unknown: if random.u8(..) < 240 { HandleUnknown::Allow } else { HandleUnknown::Deny },
        capabilities: ["netlink_xperm", "always_check_network"]
            .into_iter()
            .filter(|_| random.bool())
            .map(str::to_owned)
            .collect(),
        rules: all.collect(),
        classes: std::iter::once(Class::default()).chain(classes).collect(),
        types: std::iter::once(Type::default()).chain(types).collect(),
        roles: vec![Role::default(), role("object_r", &[]), role("system_r", &DOMAINS), role("user_r", &[3])],
        users: vec![User::default(), user("system_u", &[OBJECT_R, 2]), user("user_u", &[OBJECT_R, 2, 3])],
        sensitivities: vec![
            Sensitivity::default(),
            Sensitivity { name: "s0".into(), ..Sensitivity::default() },
            Sensitivity { name: "s1".into(), ..Sensitivity::default() },
        ],
        initial_sids: vec![initial(1, FREE), initial(2, 5), initial(3, UNLABELLED)],
        ..Policy::default()
    }
}

fn leaf(random: &mut Rng) -> Term {
    let pairs =
        [Pair::Users, Pair::Roles, Pair::Types, Pair::L1L2, Pair::L1H2, Pair::H1L2, Pair::H1H2, Pair::L1H1, Pair::L2H2];
    let pair = pairs[random.usize(..pairs.len())];
    let comparisons = [Comparison::Eq, Comparison::Neq, Comparison::Dom, Comparison::DomBy, Comparison::Incomp];
    let kinds = if matches!(pair, Pair::Users | Pair::Roles | Pair::Types) { 2 } else { comparisons.len() };
    if random.bool() {
        return Term::Compare(pair, comparisons[random.usize(..kinds)]);
    }
    Term::In {
        party: [Party::Source, Party::Target][random.usize(..2)],
        kind: NameKind::Type,
        comparison: comparisons[random.usize(..2)],
        names: (1..=TYPES).filter(|_| random.u8(..) < 200).collect(),
        written: Bits::default(),
    }
}

fn expression(random: &mut Rng) -> Vec<Term> {
    let mut terms = vec![leaf(random)];
    while random.bool() {
        terms.push(leaf(random));
        if random.u8(..) < 64 {
            terms.push(Term::Not);
        }
        terms.push(if random.bool() { Term::And } else { Term::Or });
    }
    terms
}

/// Takes one thing away, or has it audited, or makes it depend on a constraint.
fn restrict(policy: &mut Policy, random: &mut Rng) {
    let class = random.usize(1..policy.classes.len());
    let bit = 1 << random.usize(..policy.classes[class].permissions.len());
    let (source, target) = (random.u32(1..=TYPES), random.u32(1..=TYPES));
    match random.u8(..4) {
        0 => policy.rules.push(rule(RuleKind::AuditAllow, source, target, class as u32, bit)),
        1 => policy.types[3].bounds = 2,
        2 => policy.classes[class].constraints.push(Constraint { permissions: bit, expression: expression(random) }),
        _ => {
            let it = policy
                .rules
                .iter_mut()
                .find(|rule| (rule.source, rule.target, rule.class) == (source, target, class as u32));
            it.unwrap().data &= !bit;
        }
    }
}

/// The decisions of a policy for all its contexts.
struct Decisions<'p> {
    policy: &'p Policy,
    tables: Tables,
    levels: Levels,
    contexts: Vec<tg_context>,
    /// What [`Self::denies_somebody`] has found.
    known: RefCell<HashMap<(&'static str, &'static str), bool>>,
}

fn is_process(context: &tg_context) -> bool {
    u32::from(context.role) != OBJECT_R || context.type_ == UNLABELLED
}

/// Whether it is the context of the initial SID with this type.
fn is_of_initial(context: &tg_context, type_: u32) -> bool {
    context.type_ == type_ && u32::from(context.role) == OBJECT_R && context.low == context.high
}

/// What is checked for a socket's own label.
const BY_SOCKETS: [&str; 5] = ["sendto", "connectto", "name_bind", "node_bind", "name_connect"];

impl<'p> Decisions<'p> {
    fn of(policy: &'p Policy) -> Self {
        let laid = tables::build(policy).unwrap();
        let (tables, mut levels) = (Tables::new(&laid.tables).unwrap(), Levels::new(&laid.levels).unwrap());
        let mut contexts = Vec::new();
        for type_ in 1..=TYPES {
            for (role, user) in [(OBJECT_R, 1), (2, 1), (2, 2), (3, 2)] {
                for (low, high) in [(1, 1), (1, 2), (2, 2)] {
                    let [low, high] = [low, high].map(|it| levels.intern(&level(it)).unwrap());
                    contexts.push(tg_context { user, role: role as u16, type_, low, high });
                }
            }
        }
        contexts.retain(|context| tables.valid(&levels, context));
        Self { policy, tables, levels, contexts, known: RefCell::default() }
    }

    fn denies(&self, check: (&'static str, &'static str)) -> bool {
        let known = self.known.borrow().get(&check).copied();
        known.unwrap_or_else(|| {
            let found = self.denies_somebody(check.0, check.1);
            self.known.borrow_mut().insert(check, found);
            found
        })
    }

    /// Whether any process, or any socket, is denied a permission on anything that a program may check it on, or audited.
    fn denies_somebody(&self, class: &'static str, permission: &'static str) -> bool {
        let number = self.policy.classes.iter().position(|known| known.name == class).unwrap_or(0);
        let bit = self.policy.classes[number].permissions.iter().position(|name| name == permission);
        let Some(bit) = bit.filter(|_| number > 0) else {
            let is_open = permission == "open" && hooks::FILES.contains(&class);
            return self.policy.handle_unknown == HandleUnknown::Deny && !is_open;
        };
        let denies = |source: tg_context, target: tg_context| {
            let question = tg_question { source, target, class: number as u32, ..tg_question::default() };
            let answer = self.tables.decide(&self.levels, &question).unwrap();
            answer.allowed >> bit & 1 == 0 || answer.auditallow >> bit & 1 == 1
        };
        let sources = self.contexts.iter().filter(|source| {
            source.type_ != FREE
                && (is_process(source) || class.ends_with("socket") && BY_SOCKETS.contains(&permission))
        });
        let mut pairs = sources.flat_map(|source| self.contexts.iter().map(move |target| (source, target)));
        pairs.any(|(source, target)| {
            let is_target = match (class, permission) {
                ("memprotect" | "capability", _)
                | ("process", "fork" | "setcap" | "execmem")
                | ("perf_event", "open") => std::ptr::eq(source, target),
                ("process" | "fd", _) => is_process(target),
                ("security", _) => is_of_initial(target, 5),
                ("system", "syslog_read" | "syslog_mod" | "module_request" | "ipc_info") => is_of_initial(target, FREE),
                _ => true,
            };
            is_target && denies(*source, *target)
        })
    }

    /// Whether a hook has something to deny or to audit.
    fn matters(&self, hook: &Hook) -> bool {
        let asked = asked(hook).into_iter().map(|(_, class, permission)| (class, permission));
        let mut asked = asked
            .filter(|it| hook.name != "inode_permission" || [("dir", "search"), ("sock_file", "write")].contains(it));
        let single = self.policy.capabilities.iter().any(|name| name == "netlink_xperm");
        asked.any(|(class, permission)| {
            let changes = hooks::FILES.contains(&class)
                && [
                    "watch_mount",
                    "watch_sb",
                    "watch_mountns",
                    "watch_with_perm",
                    "write",
                    "append",
                    "ioctl",
                    "lock",
                    "execmod",
                    "mounton",
                    "quotaon",
                    "remove_name",
                    "rmdir",
                    "unlink",
                    "setattr",
                ]
                .contains(&permission)
                && (class, permission) != ("sock_file", "write");
            let is_meant = hook.name != "netlink_send" || single == (permission == "nlmsg");
            is_meant && self.denies((class, permission)) || changes && self.denies(("security", "setenforce"))
        })
    }
}

/// Hooks that deny something that no rule allows.
fn is_special(hook: &Hook, policy: &Policy) -> bool {
    let refuses = policy.handle_unknown != HandleUnknown::Allow;
    match hook.name {
        "file_receive" => true,
        "netlink_send" => refuses && !policy.capabilities.iter().any(|name| name == "netlink_xperm"),
        _ => false,
    }
}

#[test]
fn omits_no_hook_that_denies_or_audits_something_in_any_pair_of_contexts() {
    let mut random = Rng::with_seed(11);
    let (mut omitted, mut exact, mut coarse) = (0, 0, 0);
    for number in 0..POLICIES {
        let mut policy = lenient(&mut random);
        (0..random.usize(..4)).for_each(|_| restrict(&mut policy, &mut random));
        let depends = policy.classes.iter().any(|class| !class.constraints.is_empty());
        let decisions = Decisions::of(&policy);
        let needed = hooks(&policy, &decisions.tables, &["machine_t".into()], setting(Descriptors::Use)).unwrap();
        let checks = |hook: &Hook| matches!(hook.purpose, Purpose::Asks { keeps: false, .. });
        for hook in crate::hooks::all().unwrap().iter().filter(|hook| checks(hook)) {
            let by_packets = hook.name == PACKETS.0;
            let matters = !by_packets && decisions.matters(hook) || is_special(hook, &policy);
            match (needed.contains(&hook.name), matters) {
                (false, true) => panic!("policy {number}: {} is omitted: {policy:#?}", hook.name),
                (false, false) => omitted += 1,
                (true, true) => exact += 1,
                (true, false) if by_packets => {}
                (true, false) if depends => coarse += 1,
                (true, false) => panic!("policy {number}: {} is not needed: {policy:#?}", hook.name),
            }
        }
    }
    assert!(omitted > 1000 && exact > 1000, "{omitted} omitted, {exact} needed");
    assert!(coarse * 20 < exact, "{coarse} needed only because a constraint might not hold, {exact} in truth");
}
