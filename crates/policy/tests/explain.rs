//! Explanations hold: they say what the decision tables say, and the CIL that they offer changes the decision.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::{fs, path::PathBuf};

use fastrand::Rng;
use tollgate_policy::{
    built::Built,
    context,
    explain::{Explanation, Match, Question, ReportedRule, Step, Verdict, explain},
    model::{Context, Level, Policy, Range},
    oracle::Oracle,
    sepol::{self, CilFile, Options},
    server::SecurityServer,
};

/// A policy in which permissions are denied for every reason there is.
const EVERY_REASON: &str = include_str!("explain.cil");
const SEED: u64 = 1;

/// Numbers that are the same in each run.
struct Numbers(Rng);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

fn own_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/tollgate"))
}

fn own_sources() -> Vec<CilFile> {
    let mut paths: Vec<PathBuf> = fs::read_dir(own_folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "cil"));
    paths.sort();
    let file = |path: &PathBuf| CilFile {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        text: fs::read(path).unwrap(),
    };
    paths.iter().map(file).collect()
}

fn small_sources() -> Vec<CilFile> {
    vec![CilFile { name: "explain.cil".to_owned(), text: EVERY_REASON.into() }]
}

fn build(sources: &[CilFile]) -> Built {
    Built::from_compiled(sepol::compile(sources, &Options::default()).unwrap()).unwrap()
}

fn with(sources: &[CilFile], statements: &[String]) -> Vec<CilFile> {
    let added = CilFile { name: "added.cil".to_owned(), text: statements.join("\n").into_bytes() };
    sources.iter().cloned().chain([added]).collect()
}

fn question(built: &Built, source: &str, target: &str, class: &str, permission: &str) -> Question {
    let server = built.server().unwrap();
    let class = server.class(class).unwrap();
    Question {
        source: server.names().context(&built.policy, source).unwrap(),
        target: server.names().context(&built.policy, target).unwrap(),
        class,
        permission: server.names().permission(class, permission).unwrap(),
    }
}

/// Whether the tables allow what an explanation is about, with these contexts.
fn tables_allow(server: &mut SecurityServer<'_>, told: &Explanation, source: &str, target: &str) -> bool {
    let (source, target) = (server.context(source).unwrap(), server.context(target).unwrap());
    let class = server.class(&told.class).unwrap();
    let permission = server.names().permission(class, &told.permission).unwrap();
    server.access(source, target, class).allowed & permission != 0
}

fn libsepol_allows(image: &[u8], asked: &Question, source: &str, target: &str) -> bool {
    let mut oracle = Oracle::load(image).unwrap();
    let (source, target) = (oracle.sid(source).unwrap(), oracle.sid(target).unwrap());
    oracle.access(source, target, asked.class).allowed & asked.permission != 0
}

/// Compiles with statements added; libsepol, and for `tables` the decision tables too, must then allow it.
fn allowed_with(sources: &[CilFile], added: &[String], asked: &Question, told: &Explanation, tables: bool) {
    let (source, target) = (&told.source, &told.target);
    let options = Options { without_lines: true, ..Options::default() };
    let changed = sepol::compile(&with(sources, added), &options).unwrap_or_else(|e| panic!("{e}\n{told}"));
    assert!(libsepol_allows(&changed.image, asked, source, target), "libsepol: {added:?}\n{told}");
    if tables {
        let changed = Built::from_compiled(changed).unwrap();
        assert!(tables_allow(&mut changed.server().unwrap(), told, source, target), "tables: {added:?}\n{told}");
    }
}

/// Compiling with statements added must fail for a neverallow statement.
fn forbidden_with(sources: &[CilFile], added: &[String], told: &Explanation) {
    let options = Options { without_lines: true, ..Options::default() };
    let refused = sepol::compile(&with(sources, added), &options).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("neverallow"), "{refused}\n{told}");
}

fn random_context(policy: &Policy, numbers: &mut Numbers) -> Context {
    let types: Vec<u32> = (1..policy.types.len() as u32).filter(|t| !policy.types[*t as usize].attribute).collect();
    let user = 1 + numbers.below(policy.users.len() - 1) as u32;
    let type_ = numbers.of(&types);
    let granted = &policy.users[user as usize];
    let mut roles: Vec<u32> =
        granted.roles.iter().filter(|role| policy.roles[*role as usize].types.has(type_)).collect();
    roles.push(1);
    let level = |numbers: &mut Numbers| {
        let sensitivity = 1 + numbers.below(policy.sensitivities.len() - 1) as u32;
        let all: Vec<u32> = policy.sensitivities[sensitivity as usize].categories.iter().collect();
        let count = numbers.below(3).min(all.len());
        Level { sensitivity, categories: (0..count).map(|_| numbers.of(&all)).collect() }
    };
    let (one, other) = (level(numbers), level(numbers));
    let range = match numbers.below(3) {
        0 => granted.range.clone(),
        1 => Range { low: granted.range.low.clone(), high: one },
        _ => Range { low: one, high: other },
    };
    Context { user, role: numbers.of(&roles), type_, range }
}

/// A question with valid contexts. Half of them, roughly, are about a rule that there is.
fn random_question(server: &mut SecurityServer<'_>, numbers: &mut Numbers) -> Question {
    let policy = server.policy();
    loop {
        let (mut source, mut target) = (random_context(policy, numbers), random_context(policy, numbers));
        let mut class = 1 + numbers.below(policy.classes.len() - 1) as u32;
        let mut permissions = u32::MAX;
        if numbers.below(2) == 0 {
            let rule = numbers.of(&policy.rules);
            let types = |number: u32| {
                let type_ = &policy.types[number as usize];
                if type_.attribute { type_.set.iter().collect() } else { vec![number] }
            };
            let (sources, targets) = (types(rule.source), types(rule.target));
            if sources.is_empty() || targets.is_empty() {
                continue;
            }
            (source.type_, target.type_) = (numbers.of(&sources), numbers.of(&targets));
            class = rule.class;
            permissions = rule.data;
        }
        let count = policy.classes[class as usize].permissions.len();
        let bits: Vec<u32> = (0..count as u32).map(|bit| 1 << bit).filter(|bit| permissions & bit != 0).collect();
        let mut valid = |context: &Context| server.context(&context::text(policy, context)).is_ok();
        if !bits.is_empty() && valid(&source) && valid(&target) {
            return Question { source, target, class, permission: numbers.of(&bits) };
        }
    }
}

fn agrees_with_the_tables(built: &Built, count: usize) {
    let mut numbers = Numbers(Rng::with_seed(SEED));
    let mut server = built.server().unwrap();
    let mut allowed = 0;
    for _ in 0..count {
        let asked = random_question(&mut server, &mut numbers);
        let told = explain(&built.policy, &built.lines, &asked);
        let expected = tables_allow(&mut server, &told, &told.source, &told.target);
        assert_eq!(told.verdict == Verdict::Allowed, expected, "{told}");
        assert_eq!(told.remedy.is_none(), expected);
        if expected {
            allowed += 1;
            let places = |step: &Step| step.rules.iter().map(|rule| rule.places.len()).sum::<usize>();
            assert!(told.steps.iter().all(|step| places(step) > 0), "no statement is told: {told}");
        }
    }
    assert!((count / 10..count * 9 / 10).contains(&allowed), "{allowed} of {count} are allowed: too few or too many");
}

/// What was offered, by kind.
#[derive(Debug, Default)]
struct Offered {
    allowing: usize,
    exempting: usize,
    forbidden: usize,
    other_contexts: usize,
}

impl Offered {
    /// Tries what is offered to allow `asked`, which is denied.
    fn check(&mut self, sources: &[CilFile], asked: &Question, told: &Explanation, tables: bool) {
        let remedy = told.remedy.as_ref().unwrap();
        if !remedy.forbidden_by.is_empty() {
            self.forbidden += 1;
            forbidden_with(sources, &remedy.cil, told);
        } else if !remedy.cil.is_empty() {
            self.allowing += 1;
            self.exempting += usize::from(remedy.cil.iter().any(|cil| cil.starts_with("(typeattributeset")));
            allowed_with(sources, &remedy.cil, asked, told, tables);
        } else {
            assert!(remedy.obstacle.is_some(), "{told}");
        }
        for other in remedy.alternatives.iter().filter(|_| remedy.with_alternatives.is_empty() && tables) {
            self.other_contexts += 1;
            let mut told = told.clone();
            let is_source = other.part.starts_with("source");
            *(if is_source { &mut told.source } else { &mut told.target }) = other.context.clone();
            allowed_with(sources, &[], asked, &told, tables);
        }
    }
}

#[test]
fn agrees_with_the_decision_tables() {
    agrees_with_the_tables(&build(&small_sources()), 3000);
    agrees_with_the_tables(&build(&own_sources()), 300);
}

#[test]
fn offers_what_changes_the_decision() {
    let sources = small_sources();
    let built = build(&sources);
    let (mut numbers, mut offered) = (Numbers(Rng::with_seed(SEED ^ 1)), Offered::default());
    let mut server = built.server().unwrap();
    for _ in 0..600 {
        let asked = random_question(&mut server, &mut numbers);
        let told = explain(&built.policy, &built.lines, &asked);
        if told.remedy.is_some() {
            offered.check(&sources, &asked, &told, true);
        }
    }
    let Offered { allowing, exempting, forbidden, other_contexts } = offered;
    assert!(allowing > 80 && exempting > 10 && forbidden > 4 && other_contexts > 20, "{offered:?}");
}

#[test]
fn offers_what_changes_the_own_policys_decisions() {
    let sources = own_sources();
    let built = build(&sources);
    let table = fs::read_to_string(own_folder().join("questions.tsv")).unwrap();
    let denied =
        table.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|cells| cells.get(4) == Some(&"no"));
    let mut offered = Offered::default();
    for cells in denied.step_by(2) {
        let asked = question(&built, cells[0], cells[1], cells[2], cells[3]);
        let told = explain(&built.policy, &built.lines, &asked);
        offered.check(&sources, &asked, &told, false);
    }
    let Offered { allowing, exempting, forbidden, .. } = offered;
    assert!(allowing > 10 && exempting > 2 && forbidden > 2, "{offered:?}");
}

const WEB: &str = "system_u:system_r:web_t:s0";

fn object(type_: &str, range: &str) -> String {
    format!("system_u:object_r:{type_}:{range}")
}

/// Asks the small policy, and tries what it offers.
fn ask(source: &str, target: &str, class: &str, permission: &str) -> Explanation {
    let sources = small_sources();
    let built = build(&sources);
    let asked = question(&built, source, target, class, permission);
    let told = explain(&built.policy, &built.lines, &asked);
    if told.remedy.is_some() {
        Offered::default().check(&sources, &asked, &told, true);
    }
    told
}

fn offered(told: &Explanation) -> Vec<&str> {
    told.remedy.iter().flat_map(|remedy| &remedy.cil).map(String::as_str).collect()
}

fn line_of(statement: &str) -> u32 {
    1 + EVERY_REASON.lines().position(|line| line.contains(statement)).unwrap() as u32
}

#[test]
fn tells_rules_by_attribute_by_self_and_by_class_map() {
    let told = ask(WEB, &object("log_t", "s0"), "file", "read");
    let rule = &told.steps[0].rules[0];
    assert_eq!(told.verdict, Verdict::Allowed);
    assert_eq!(rule.source, Match::Attribute { name: "domain".to_owned() });
    assert_eq!(rule.target, Match::Attribute { name: "content".to_owned() });
    assert_eq!(rule.places[0].line, line_of("(allow domain content (files (r)))"));
    let told = ask(WEB, WEB, "process", "fork");
    let rule = &told.steps[0].rules[0];
    assert_eq!((&rule.source, &rule.target), (&Match::Attribute { name: "domain".to_owned() }, &Match::Itself));
    assert_eq!(rule.places[0].cil, "(allow domain self (process (fork signal)))");
    let told = ask("system_u:system_r:admin_t:s0", &object("log_t", "s0"), "file", "entrypoint");
    assert_eq!(told.steps[0].rules[0].places[0].cil, "(allow admin_t content running)", "a named permission set");
}

#[test]
fn names_the_booleans_that_switch_rules() {
    let told = ask(WEB, &object("log_t", "s0"), "file", "write");
    assert_eq!(told.verdict, Verdict::Denied);
    let condition = told.steps[0].switched_off[0].condition.as_ref().unwrap();
    assert_eq!(condition.expression, "(and web_logs (not strict))");
    let flips: Vec<_> = condition.flips.iter().map(|flip| (flip.boolean.as_str(), flip.value)).collect();
    assert_eq!(flips, [("web_logs", true), ("strict", false)]);
    assert_eq!(told.steps[0].switched_off[0].places[0].line, line_of("(true (allow web_t log_t (file (write))))"));
    assert_eq!(offered(&told), ["(allow web_t log_t (file (write)))"]);
    assert!(told.to_string().contains("set web_logs=on strict=off"), "{told}");
    let told = ask(WEB, &object("log_t", "s0"), "file", "entrypoint");
    for (condition, statement) in [("web_logs", "(booleanif web_logs"), ("strict", "(booleanif (not strict)")] {
        let rules = told.steps[0].switched_off.iter();
        let of_condition = |rule: &&ReportedRule| rule.condition.iter().any(|c| c.expression.contains(condition));
        let lines: Vec<u32> = rules.filter(of_condition).flat_map(|r| &r.places).map(|place| place.line).collect();
        assert_eq!(lines, [line_of(statement)], "not the statement of the other condition");
    }
    let told = ask("staff_u:staff_r:shell_t:s0", &object("log_t", "s0"), "file", "write");
    let condition = told.steps[0].rules[0].condition.as_ref().unwrap();
    assert_eq!((told.verdict, condition.expression.as_str()), (Verdict::Allowed, "(not (and web_logs (not strict)))"));
}

#[test]
fn names_the_promise_that_forbids_a_rule() {
    let told = ask(WEB, &object("secret_t", "s0"), "file", "read");
    let promise = &told.remedy.as_ref().unwrap().forbidden_by;
    assert_eq!(promise[0].line, line_of("(neverallow confined secret_t (file (read write)))"));
    assert_eq!(told.dontaudit[0].cil, "(dontaudit web_t secret_t (file (read)))");
    let told = ask("system_u:system_r:blk.t:s0", &object("log_t", "s0"), "file", "write");
    assert_eq!(told.remedy.as_ref().unwrap().forbidden_by.len(), 1, "of an attribute that a block has for itself");
    assert!(told.to_string().contains("neverallow rules of the policy forbid this"), "{told}");
}

#[test]
fn tells_a_missing_role_change() {
    let told = ask("staff_u:staff_r:shell_t:s0", "staff_u:system_r:web_t:s0", "process", "transition");
    assert_eq!(offered(&told), ["(roleallow staff_r system_r)"]);
    assert!(!told.steps[0].role_allow.as_ref().unwrap().exists);
}

#[test]
fn tells_what_a_parent_lacks_and_gives_it_first() {
    let told = ask("system_u:system_r:web_child_t:s0", &object("web_part_t", "s0"), "file", "execute");
    assert_eq!(told.steps.len(), 2);
    assert_eq!((told.steps[1].source.as_str(), told.steps[1].target.as_str()), ("web_t", "web_data_t"));
    let expected = ["(allow web_t web_data_t (file (execute)))", "(allow web_child_t web_part_t (file (execute)))"];
    assert_eq!(offered(&told), expected);
}

#[test]
fn tells_each_comparison_of_a_constraint() {
    let told = ask(WEB, &object("log_t", "s2:c1"), "file", "read");
    let constraint = &told.steps[0].constraints[0];
    assert_eq!(constraint.cil, "(mlsconstrain (file (ioctl read execute)) (or (dom l1 l2) (eq t1 mlstrusted)))");
    assert_eq!(constraint.places[0].line, line_of("(mlsconstrain (file (read ioctl execute))"));
    let leaf = &constraint.expression.parts[0];
    assert_eq!((leaf.holds, leaf.compared.as_deref()), (false, Some("l1 is s0, l2 is s2:c1")));
    let others = &told.remedy.as_ref().unwrap().alternatives;
    let ranges: Vec<_> = others.iter().map(|other| other.context.as_str()).collect();
    assert_eq!(ranges, ["system_u:system_r:web_t:s2:c1", "system_u:object_r:log_t:s0-s2:c1"]);
}

#[test]
fn prefers_an_exception_that_nothing_is_against() {
    // In mlstrusted, web_t would leave plain and have less than web_child_t, which it bounds.
    let told = ask("system_u:system_r:web_t:s1", &object("web_part_t", "s0"), "file", "append");
    assert_eq!(offered(&told), ["(typeattributeset mlswriter (web_t))"]);
    let told = ask(WEB, &object("log_t", "s2:c1"), "file", "read");
    let obstacle = told.remedy.as_ref().unwrap().obstacle.as_ref().unwrap();
    assert!(obstacle.contains("web_child_t would then have more than web_t"), "{told}");
    let told = ask("staff_u:system_r:web_t:s0", WEB, "process", "transition");
    assert_eq!(offered(&told), ["(typeattributeset changer (web_t))"]);
    let promise = &told.remedy.as_ref().unwrap().forbidden_by;
    assert_eq!(promise[0].line, line_of("(neverallow changer log_t (file (append)))"), "{told}");
}

#[test]
fn says_when_no_statement_would_do() {
    let told = ask(WEB, &object("log_t", "s1"), "dir", "add_name");
    assert_eq!(offered(&told), [""; 0]);
    let remedy = told.remedy.as_ref().unwrap();
    assert!(remedy.obstacle.as_ref().unwrap().contains("no attribute"), "{told}");
    assert_eq!(remedy.with_alternatives, ["(allow web_t log_t (dir (add_name)))"]);
    assert!(told.to_string().contains("which also needs"), "{told}");
}

#[test]
fn tells_invalid_contexts_and_what_makes_them_valid() {
    let told = ask("staff_u:staff_r:web_t:s0", &object("log_t", "s0"), "file", "read");
    assert_eq!((told.verdict, offered(&told)), (Verdict::Invalid, vec!["(roletype staff_r web_t)"]));
    let told = ask("system_u:staff_r:shell_t:s0", &object("log_t", "s0"), "file", "read");
    assert_eq!((told.verdict, offered(&told)), (Verdict::Invalid, vec!["(userrole system_u staff_r)"]));
    let told = ask("staff_u:staff_r:shell_t:s0-s2", &object("log_t", "s0"), "file", "read");
    assert!(told.remedy.as_ref().unwrap().obstacle.as_ref().unwrap().contains("no levels but those of"), "{told}");
}

#[test]
fn tells_permissive_domains_and_allowed_commands() {
    let told = ask("staff_u:staff_r:shell_t:s0", &object("secret_t", "s0"), "file", "append");
    assert!(told.permissive && told.verdict == Verdict::Denied);
    let told = ask("staff_u:staff_r:shell_t:s0", &object("log_t", "s0"), "file", "ioctl");
    assert_eq!(told.extended.as_ref().unwrap().allowed, ["0x1201", "(range 0x5400 0x54ff)"]);
    let told = ask("system_u:system_r:admin_t:s0", &object("secret_t", "s0"), "file", "read");
    assert_eq!(told.auditallow[0].places[0].line, line_of("(auditallow admin_t secret_t"));
}

#[test]
fn explains_a_binary_policy_without_places() {
    let sources = small_sources();
    let image = build(&sources).image;
    let built = Built::from_compiled(sepol::read(&image).unwrap()).unwrap();
    let asked = question(&built, WEB, &object("log_t", "s2:c1"), "file", "write");
    let told = explain(&built.policy, &built.lines, &asked);
    assert!(told.no_places.is_some());
    assert_eq!(told.steps[0].switched_off[0].cil, "(allow web_t log_t (file (write)))");
    // Not web_t: leaving `plain`, which only the sources tell of, it would have less than what it bounds.
    let asked = question(&built, "staff_u:staff_r:shell_t:s0", &object("log_t", "s2:c1"), "file", "read");
    let told = explain(&built.policy, &built.lines, &asked);
    assert_eq!(offered(&told), ["(typeattributeset mlstrusted (shell_t))"]);
    allowed_with(&sources, &told.remedy.as_ref().unwrap().cil, &asked, &told, true);
}
