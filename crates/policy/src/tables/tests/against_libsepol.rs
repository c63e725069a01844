//! Random small policies, compiled by libsepol: our tables and libsepol's evaluator give the same answers to every
//! question about them. Sockets, names and bounds, where libsepol 3.4 differs from the kernel, are left out.

use std::fmt::Write;

use fastrand::Rng;
use tollgate_abi::tables::tg_context;

use crate::{
    dump,
    oracle::Oracle,
    sepol::{self, CilFile, Options},
    server::{Ask, SecurityServer},
    tables::build,
};

struct Random(Rng);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Some of the choices, at least one.
    fn some(&mut self, choices: &[&str]) -> String {
        let mut some: Vec<&str> = choices.iter().copied().filter(|_| self.chance(40)).collect();
        if some.is_empty() {
            some.push(self.of(choices));
        }
        some.join(" ")
    }
}

const TYPES: [&str; 8] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
const SETS: [&str; 12] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "p", "q", "r", "everything"];
const ROLES: [&str; 3] = ["object_r", "r1", "r2"];
const USERS: [&str; 2] = ["u1", "u2"];
const LEVELS: [&str; 5] = ["s0", "s0:c1", "s1:c1,c2", "s1:c0.c3", "s2:c0,c3"];
const CLASSES: [&str; 3] = ["file", "dir", "process"];
const FIXED: &str = "
(handleunknown allow) (mls true)
(class file (read write append create)) (class dir (read write append create))
(class process (read write transition dyntransition)) (classorder (file dir process))
(sensitivity s0) (sensitivity s1) (sensitivity s2) (sensitivityorder (s0 s1 s2))
(category c0) (category c1) (category c2) (category c3) (categoryorder (c0 c1 c2 c3))
(sensitivitycategory s0 (range c0 c3)) (sensitivitycategory s1 (range c0 c3)) (sensitivitycategory s2 (c0 c2 c3))
(user u1) (user u2) (userlevel u1 (s0)) (userlevel u2 (s0))
(userrange u1 ((s0) (s2 (c0 c2 c3)))) (userrange u2 ((s0) (s1 (range c0 c3))))
(role object_r) (role r1) (role r2) (userrole u1 object_r) (userrole u2 object_r)
(userrole u1 r1) (userrole u1 r2) (userrole u2 r1) (roletype object_r everything) (roletype r1 everything)
(type t1) (type t2) (type t3) (type t4) (type t5) (type t6) (type t7) (type t8)
(typeattribute p) (typeattribute q) (typeattribute r) (typeattribute everything)
(typeattributeset everything (t1 t2 t3 t4 t5 t6 t7 t8))
(sid kernel) (sidorder (kernel)) (sidcontext kernel (u1 r1 t1 ((s0) (s0))))
";

fn permissions(class: &str) -> &'static [&'static str] {
    if class == "process" {
        &["read", "write", "transition", "dyntransition"]
    } else {
        &["read", "write", "append", "create"]
    }
}

/// Rules of access vectors, to follow a boolean or not.
fn access_rules(random: &mut Random, count: usize) -> String {
    let mut text = String::new();
    for _ in 0..count {
        let rule = random.of(&["allow", "allow", "allow", "auditallow", "dontaudit"]);
        let target = if random.chance(25) { "self" } else { random.of(&SETS) };
        let class = random.of(&CLASSES);
        let (source, permissions) = (random.of(&SETS), random.some(permissions(class)));
        writeln!(text, "({rule} {source} {target} ({class} ({permissions})))").unwrap();
    }
    text
}

/// A constraint's expression.
fn expression(random: &mut Random, depth: usize, changes: bool) -> String {
    if depth > 0 && random.chance(60) {
        return match random.of(&["not", "and", "or"]) {
            "not" => format!("(not {})", expression(random, depth - 1, changes)),
            both => {
                let (left, right) = (expression(random, depth - 1, changes), expression(random, depth - 1, changes));
                format!("({both} {left} {right})")
            }
        };
    }
    let equality = random.of(&["eq", "neq"]);
    let relation = random.of(&["eq", "neq", "dom", "domby", "incomp"]);
    let party = random.of(if changes { &["1", "2", "3"] } else { &["1", "2"] });
    match random.below(7) {
        0 => format!("({equality} {} )", random.of(&["t1 t2", "u1 u2"])),
        1 => format!("({relation} r1 r2)"),
        2 => format!("({equality} t{party} ({}))", random.some(&SETS)),
        3 => format!("({equality} r{party} ({}))", random.some(&ROLES)),
        4 => format!("({equality} u{party} ({}))", random.some(&USERS)),
        _ => format!("({relation} {})", random.of(&["l1 l2", "l1 h2", "h1 l2", "h1 h2", "l1 h1", "l2 h2"])),
    }
}

fn constraints(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(6) {
        let class = random.of(&CLASSES);
        let (permissions, expression) = (random.some(permissions(class)), expression(random, 3, false));
        writeln!(text, "(mlsconstrain ({class} ({permissions})) {expression})").unwrap();
    }
    for _ in 0..random.below(4) {
        writeln!(text, "(mlsvalidatetrans {} {})", random.of(&CLASSES), expression(random, 3, true)).unwrap();
    }
    text
}

/// Rules of labels: each source, target and class once, or CIL finds a conflict.
fn labels(random: &mut Random) -> String {
    let mut text = String::new();
    for (source, class) in TYPES.iter().flat_map(|source| CLASSES.map(|class| (source, class))) {
        for rule in ["typetransition", "typemember", "typechange"] {
            let rule = format!("({rule} {source} {} {class} {})", random.of(&TYPES), random.of(&TYPES));
            match random.below(10) {
                0 => writeln!(text, "(booleanif {} ({} {rule}))", random.of(&["b1", "b2"]), random.chance(50)).unwrap(),
                1 | 2 => writeln!(text, "{rule}").unwrap(),
                _ => {}
            }
        }
        if random.chance(20) {
            let (low, high) = random.of(&[("(s0)", "(s2 (c0 c3))"), ("(s0 (c1))", "(s1 (c1 c2))"), ("(s1)", "(s1)")]);
            writeln!(text, "(rangetransition {source} {} {class} ({low} {high}))", random.of(&TYPES)).unwrap();
        }
    }
    for class in CLASSES {
        for what in ["user", "role", "type"] {
            if random.chance(30) {
                writeln!(text, "(default{what} {class} {})", random.of(&["source", "target"])).unwrap();
            }
        }
        if random.chance(60) {
            let ends = ["source low", "source high", "source low-high", "target low", "target high", "target low-high"];
            let range = if random.chance(20) { "glblub" } else { random.of(&ends) };
            writeln!(text, "(defaultrange {class} {range})").unwrap();
        }
        if random.chance(60) {
            writeln!(text, "(roletransition r1 {} {class} r2)", random.of(&TYPES)).unwrap();
        }
    }
    for (from, to) in [("r1", "r2"), ("r2", "r1"), ("r1", "object_r")] {
        if random.chance(50) {
            writeln!(text, "(roleallow {from} {to})").unwrap();
        }
    }
    text
}

fn policy(random: &mut Random) -> String {
    let mut text = FIXED.to_owned();
    for attribute in ["p", "q", "r"] {
        writeln!(text, "(typeattributeset {attribute} ({}))", random.some(&TYPES)).unwrap();
    }
    writeln!(text, "(roletype r2 {})", random.of(&SETS)).unwrap();
    let rules = 5 + random.below(40);
    text.push_str(&access_rules(random, rules));
    for boolean in ["b1", "b2"] {
        let (value, rules, others) = (random.chance(50), random.below(6) + 1, random.below(6) + 1);
        let (rules, others) = (access_rules(random, rules), access_rules(random, others));
        writeln!(text, "(boolean {boolean} {value}) (booleanif {boolean} (true {rules}) (false {others}))").unwrap();
    }
    text + &constraints(random) + &labels(random)
}

/// Contexts of all users, roles and types, of a few ranges; not all are valid.
fn contexts(random: &mut Random) -> Vec<String> {
    let mut all = Vec::new();
    for user in USERS {
        for role in ROLES {
            for type_ in TYPES {
                let (low, high) = (random.of(&LEVELS), random.of(&LEVELS));
                let range = if random.chance(50) { low.to_owned() } else { format!("s0-{high}") };
                all.push(format!("{user}:{role}:{type_}:{range}"));
            }
        }
    }
    all
}

/// What was compared, so that the test can say that it was not nothing.
#[derive(Debug, Default)]
struct Compared {
    decisions: usize,
    granted: usize,
    audited: usize,
    labels: usize,
    refused: usize,
    changes: usize,
    forbidden: usize,
}

/// One policy, ours and libsepol's, and contexts as each knows them.
struct Both<'p> {
    server: SecurityServer<'p>,
    oracle: Oracle,
    known: Vec<(tg_context, u32)>,
}

impl Both<'_> {
    fn access(
        &self,
        (source, s): (tg_context, u32),
        (target, t): (tg_context, u32),
        class: u32,
        compared: &mut Compared,
    ) {
        let (ours, theirs) = (self.server.access(source, target, class), self.oracle.access(s, t, class));
        let ours = (ours.allowed, ours.auditallow, ours.auditdeny);
        assert_eq!(ours, (theirs.allowed, theirs.auditallow, theirs.auditdeny));
        compared.decisions += 1;
        compared.granted += usize::from(ours.0 != 0);
        compared.audited += usize::from(ours.1 != 0 || ours.2 != u32::MAX);
    }

    fn validate(&self, old: usize, new: usize, task: usize, class: u32, compared: &mut Compared) {
        let [(old, o), (new, n), (task, t)] = [old, new, task].map(|context| self.known[context]);
        let valid = self.server.validate(old, new, task, class);
        assert_eq!(valid, self.oracle.validate(o, n, t, class), "validatetrans");
        compared.changes += 1;
        compared.forbidden += usize::from(!valid);
    }

    fn label(&mut self, ask: Ask, source: usize, target: usize, class: u32, compared: &mut Compared) {
        let [(source, s), (target, t)] = [source, target].map(|context| self.known[context]);
        let theirs = match ask {
            Ask::Transition => self.oracle.transition(s, t, class),
            Ask::Member => self.oracle.member(s, t, class),
            Ask::Change => self.oracle.change(s, t, class),
        };
        let theirs = theirs.and_then(|sid| self.oracle.context(sid));
        let ours = self.server.label(ask, source, target, class, None).map(|new| self.server.text(&new)).ok();
        assert_eq!(ours, theirs, "{ask:?}");
        compared.labels += 1;
        compared.refused += usize::from(ours.is_none());
    }
}

fn compare(seed: u64, compared: &mut Compared) {
    let mut random = Random(Rng::with_seed(seed));
    let text = policy(&mut random);
    let files = [CilFile { name: "random.cil".to_owned(), text: text.clone().into_bytes() }];
    let compiled = sepol::compile(&files, &Options { without_lines: true, ..Options::default() })
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let model = dump::read(&compiled.model).unwrap();
    let laid = build(&model).unwrap();
    let server = SecurityServer::new(&model, &laid.tables, &laid.levels).unwrap();
    let mut both = Both { server, oracle: Oracle::load(&compiled.image).unwrap(), known: Vec::new() };
    for context in contexts(&mut random) {
        let (ours, theirs) = (both.server.context(&context), both.oracle.sid(&context));
        assert_eq!(ours.is_ok(), theirs.is_some(), "{context} {ours:?}");
        both.known.extend(ours.ok().zip(theirs));
    }
    let classes = CLASSES.map(|name| both.server.class(name).unwrap());
    let count = both.known.len();
    for (source, target) in (0..count).flat_map(|source| (0..count).map(move |target| (source, target))) {
        for class in classes {
            // libsepol says no more than the numbers; this is what they are about when it fails.
            let _about = About([source, target].map(|context| both.server.text(&both.known[context].0)), class, seed);
            both.access(both.known[source], both.known[target], class, compared);
            both.validate(source, target, random.below(count), class, compared);
            both.label(random.of(&[Ask::Transition, Ask::Member, Ask::Change]), source, target, class, compared);
        }
    }
}

/// Says what was asked when an assertion fails.
struct About([String; 2], u32, u64);

impl Drop for About {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self([source, target], class, seed) = self;
            eprintln!("source {source}, target {target}, class {class}, seed {seed}");
        }
    }
}

#[test]
fn answers_as_libsepol_does() {
    let mut compared = Compared::default();
    (0..30).for_each(|seed| compare(seed, &mut compared));
    let Compared { decisions, granted, audited, labels, refused, changes, forbidden } = compared;
    assert!(decisions > 50_000, "{compared:?}");
    assert!(granted > decisions / 10 && granted < decisions * 9 / 10, "{compared:?}");
    assert!(audited > decisions / 10 && refused > labels / 100 && forbidden > changes / 100, "{compared:?}");
}
