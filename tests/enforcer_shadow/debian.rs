//! Debian's two policies, one on trial beside the other: the kernel's counts agree with libsepol's decisions on the checked
//! questions, and with `policy diff`.
//!
//! The audit shows which questions were checked: the policies are loaded with everything audited, and no dontaudit.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::Value;
use tollgate_policy::{
    built::Built,
    context,
    diff::{self, Diff, Side},
    model::{HandleUnknown, Policy, Rule, RuleKind},
    oracle::Oracle,
    tables,
    vectors::Vectors,
};

use crate::program::{
    Scratch, report,
    steps::{Guest, Step},
    word,
};

/// The domains that act.
const SUBJECTS: [&str; 3] =
    ["sysadm_u:sysadm_r:sysadm_t:s0", "user_u:user_r:user_t:s0", "staff_u:staff_r:staff_t:s0:c1"];
/// The acts of all domains, in this order.
const ACTS: &str = include_str!("acts.txt");
/// The objects of the acts: name, creation, context.
const OBJECTS: [(&str, &str, &str); 12] = [
    ("user", "mkdir", "user_u:object_r:user_home_t:s0"),
    ("user/file", "echo text >", "user_u:object_r:user_home_t:s0"),
    ("user/secret", "echo text >", "user_u:object_r:user_home_t:s0:c5"),
    ("staff", "mkdir", "staff_u:object_r:user_home_t:s0"),
    ("staff/file", "echo text >", "staff_u:object_r:user_home_t:s0"),
    ("unlabeled", "mkdir", "system_u:object_r:unlabeled_t:s0"),
    ("mtrr", "echo text >", "system_u:object_r:mtrr_device_t:s0"),
    ("boolean", "echo text >", "system_u:object_r:boolean_t:s0"),
    ("shadow", "echo text >", "system_u:object_r:shadow_t:s0"),
    ("block", "mknod -m 666 $name b 7 99", "system_u:object_r:removable_device_t:s0"),
    ("null", "mknod -m 666 $name c 1 3", "system_u:object_r:null_device_t:s0"),
    ("subject", "cp /tollgate-scenario", "system_u:object_r:shell_exec_t:s0"),
];
/// `things` creates the objects, `act` does acts: exit status 0 if all succeeded, 1 if one failed.
const HELPERS: &str = "\
label() { tollgate label set $1 $2 >/dev/null; }
start() { context=$1; shift; tollgate run --context $context -- ./subject --subject tollgate 0 -1 -1 \"$@\" <null >null 2>null; }
act() { context=$1; shift; start $context \"$@\"; echo \"= $?\"; }
number() { tollgate audit --json | wc -l; }
";
/// Extracts the permissions and contexts of a record.
const FIELDS: &str = r#"s/.*"permissions":\[\([^]]*\)\].*"scontext":"\([^"]*\)".*"tcontext":"\([^"]*\)".*"tclass":"\([^"]*\)".*/\2 \3 \4 \1/p"#;

/// A check of one permission: the contexts, the class, the permission.
type Question = (String, String, String, String);

/// One of Debian's policies.
struct Flavour {
    built: Built,
    /// The policy with everything audited.
    audited: PathBuf,
}

impl Flavour {
    fn new(scratch: &Scratch, name: &str) -> Self {
        let (file, audited) = (scratch.path(name), scratch.path(&format!("{name}-audited")));
        scratch.run(&["policy", "debian", name, "-o", word(&file)]).with(0);
        audit_everything(Built::open(&file).unwrap()).write(&audited).unwrap();
        Self { built: Built::open(&file).unwrap(), audited }
    }

    fn policy(&self) -> &Policy {
        &self.built.policy
    }

    /// The context in this policy of a SID that has this context in another: initial SIDs have each policy's own.
    fn own(&self, other: &Self, text: &str) -> String {
        let mut initial = other.policy().initial_sids.iter();
        let known = initial.find(|initial| context::text(other.policy(), &initial.context) == text);
        let own = known.and_then(|known| self.policy().initial_sids.iter().find(|own| own.sid == known.sid));
        own.map_or_else(|| text.to_owned(), |own| context::text(self.policy(), &own.context))
    }

    /// libsepol's decisions on questions that were checked under another of the policies, or under this one.
    fn allows(&self, under: &Self, questions: &BTreeSet<Question>) -> BTreeMap<Question, bool> {
        let mut oracle = Oracle::load(&self.built.image).unwrap();
        let policy = self.policy();
        let mut allows = |(source, target, class, permission): &Question| {
            let place = policy.classes.iter().position(|known| known.name == *class);
            let bit = |place: usize| policy.classes[place].permissions.iter().position(|name| name == permission);
            let Some((place, bit)) = place.and_then(|place| Some((place, bit(place)?))) else {
                return policy.handle_unknown == HandleUnknown::Allow;
            };
            let [source, target] = [source, target].map(|text| {
                let own = self.own(under, text);
                oracle.sid(&own).unwrap_or_else(|| panic!("no context of this policy: {own}"))
            });
            oracle.access(source, target, place as u32).allowed >> bit & 1 == 1
        };
        questions.iter().map(|question| (question.clone(), allows(question))).collect()
    }
}

/// Everything that is granted or denied to the subjects' domains is audited.
fn audit_everything(mut built: Built) -> Built {
    let policy = &mut built.policy;
    policy.rules.retain(|rule| rule.kind != RuleKind::DontAudit);
    let place = |name: &str| policy.types.iter().position(|type_| type_.name == name).unwrap() as u32;
    let sources = ["sysadm_t", "user_t", "staff_t"].map(place);
    let wide = ["file_type", "domain", "port_type"].map(place);
    let covered = |number: u32| wide.iter().any(|attribute| policy.types[*attribute as usize].set.has(number));
    let alone = (1..).zip(&policy.types[1..]).filter(|(number, type_)| !type_.attribute && !covered(*number));
    let targets: Vec<u32> = wide.into_iter().chain(alone.map(|(number, _)| number)).collect();
    let classes: Vec<u32> = (1..policy.classes.len() as u32).collect();
    for source in sources {
        for target in &targets {
            let rule = |class: &u32| Rule {
                kind: RuleKind::AuditAllow,
                source,
                target: *target,
                class: *class,
                data: (1_u64 << policy.classes[*class as usize].permissions.len()).wrapping_sub(1) as u32,
                condition: None,
            };
            policy.rules.extend(classes.iter().map(rule).collect::<Vec<_>>());
        }
    }
    let laid = tables::build(policy).unwrap();
    Built { tables: laid.tables, levels: laid.levels, ..built }
}

/// The lines of acts: whether they end with an act that fails, and the acts.
fn lines() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = ACTS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| match line.strip_prefix("* ") {
        Some(acts) => ("undeterred", acts.split("; ").collect()),
        None => ("ends", line.split("; ").collect()),
    })
}

/// All acts, of all subjects.
fn acts() -> String {
    let quoted = |acts: &[&str]| acts.iter().map(|act| format!(" \"{act}\"")).collect::<String>();
    let all = lines().flat_map(|(how, acts)| SUBJECTS.map(|subject| format!("act {subject} {how}{}\n", quoted(&acts))));
    format!("things\n{}", all.collect::<String>())
}

/// What `things` does.
fn things() -> String {
    let make = |(name, how, context): (&str, &str, &str)| {
        let how = if how.contains("$name") { how.replace("$name", name) } else { format!("{how} {name}") };
        format!("{how}; label {context} {name}\n")
    };
    let [_, user, staff] = SUBJECTS;
    format!(
        "things() {{\nkill -9 $p $q 2>/dev/null; cd /; rm -rf /t/w; mkdir /t/w; cd /t/w; label system_u:object_r:tmp_t:s0 .\n{}\
         start {user} stays 'msgget 7 create' 'semget 7 create' 'shmget 7 create' & p=$!\n\
         start {staff} stays 'stat user' & q=$!\nsleep 2\n}}\n",
        OBJECTS.map(make).concat()
    )
}

/// The questions in the audit log.
fn asked(step: &Step) -> BTreeSet<Question> {
    let of = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [source, target, class, permissions] = words[..] else { panic!("{line}") };
        let name = |name: &str| name.trim_matches('"').to_owned();
        let question = |permission: &str| (source.into(), target.into(), class.into(), name(permission));
        permissions.split(',').map(question).collect::<Vec<Question>>()
    };
    step.is(0, &["lost 0\n"]).text.lines().filter(|line| line.contains(':')).flat_map(of).collect()
}

/// The differences in a report, and whether the candidate would grant.
fn listed(report: &Value) -> BTreeMap<Question, bool> {
    assert_eq!((&report["not_asked"], &report["omitted"]), (&0.into(), &0.into()));
    let mut all = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for one in report["differences"].as_array().unwrap() {
        for (kind, granted) in [("denied", false), ("granted", true)] {
            for permission in one[kind].as_array().unwrap() {
                let question = (text(&one["source"]), text(&one["target"]), text(&one["class"]), text(permission));
                assert_eq!(all.insert(question, granted), None, "listed twice");
            }
        }
    }
    all
}

/// The differences of the policies, by `policy diff`.
struct Told {
    /// Rules: source, target, class and permission; whether the second policy has them.
    rules: BTreeMap<Question, bool>,
    /// The classes and permissions of constraints that differ.
    constrained: BTreeSet<(String, String)>,
    /// Whether the policies treat unknown permissions differently.
    unknown: bool,
}

impl Told {
    fn new(diff: &Diff) -> Self {
        let mut rules = BTreeMap::new();
        for domains in &diff.domains {
            for (source, change) in domains.sources.iter().flat_map(|s| domains.changes.iter().map(move |c| (s, c))) {
                let others = change.targets.iter().filter(|target| *target != source);
                let targets = others.chain(change.itself.then_some(source));
                for (target, permission) in targets.flat_map(|t| change.permissions.iter().map(move |p| (t, p))) {
                    let question = (source.clone(), target.clone(), change.class.clone(), permission.clone());
                    if change.kind == diff::Kind::Allow {
                        rules.insert(question, change.added);
                    }
                }
            }
        }
        let statements = |kind: &str| {
            let found = diff.statements.iter().filter(move |statements| statements.kind == kind);
            found.flat_map(|statements| statements.removed.iter().chain(&statements.added)).collect::<Vec<_>>()
        };
        let about = |statement: &&String| {
            let (class, permissions) = statement.split_once(" (")?.1.split_once(" (")?;
            let names = permissions.split_once(')')?.0.split(' ');
            Some(names.map(|name| (class.to_owned(), name.to_owned())).collect::<Vec<_>>())
        };
        let constrained = statements("constraints").iter().filter_map(about).flatten().collect();
        let unknown = statements("settings").iter().any(|statement| statement.contains("handleunknown"));
        Self { rules, constrained, unknown }
    }

    fn rule(&self, (source, target, class, permission): &Question) -> Option<bool> {
        let type_ = |text: &String| text.split(':').nth(2).unwrap().to_owned();
        self.rules.get(&(type_(source), type_(target), class.clone(), permission.clone())).copied()
    }

    /// Whether any of its differences is about a question.
    fn is_about(&self, question: &Question, policy: &Policy) -> bool {
        let (_, _, class, permission) = question;
        self.rule(question).is_some()
            || self.constrained.contains(&(class.clone(), permission.clone()))
            || (self.unknown && !defines(policy, question))
    }
}

/// The steps of one policy in force and the other on trial.
fn trial<'s>(guest: Guest<'s>, name: &str, candidate: &str) -> Guest<'s> {
    let lost = r#"echo lost $(tail -n +$((before + 1)) /t/told | grep -c '"type":"lost"')"#;
    guest
        .step(&format!("{name} start"), &format!("sleep 3; before=$(number); tollgate shadow start /{candidate}"))
        .step(&format!("{name} acts"), &acts())
        .step(&format!("{name} report"), "sleep 3; tollgate shadow report --json")
        .step(
            &format!("{name} asked"),
            &format!(
                "tollgate audit --json >/t/told; {lost}; tail -n +$((before + 1)) /t/told | sed -n '{FIELDS}' | sort -u"
            ),
        )
}

/// Questions about permissions that a policy does not define. No rule audits them: a policy that denies what it does not
/// define audits them, one that grants it does not.
fn undefined(policies: [&Policy; 2], questions: &BTreeSet<Question>) -> BTreeSet<Question> {
    let of = |question: &&Question| policies.iter().any(|policy| !defines(policy, question));
    questions.iter().filter(of).cloned().collect()
}

fn defines(policy: &Policy, (_, _, class, permission): &Question) -> bool {
    let class = policy.classes.iter().find(|known| known.name == *class);
    class.is_some_and(|class| class.permissions.contains(permission))
}

/// The acts under one policy, with the other one on trial.
struct Trial<'t> {
    name: &'t str,
    steps: &'t BTreeMap<String, Step>,
    now: &'t Flavour,
    then: &'t Flavour,
    questions: BTreeSet<Question>,
}

/// Compares the kernel's counts with libsepol's decisions, and both with `policy diff`.
fn assert_lists(trial: &Trial<'_>, told: &Told) {
    let Trial { name, steps, now, then, questions } = trial;
    let step = |what: &str| &steps[&format!("{name} {what}")];
    let done = step("acts").text.lines().filter(|line| ["= 0", "= 1"].contains(line)).count();
    let acts = lines().count() * SUBJECTS.len();
    let (allowed, would) = (now.allows(now, questions), then.allows(now, questions));
    let expected: BTreeMap<Question, bool> =
        would.iter().filter(|(question, would)| allowed[*question] != **would).map(|(q, w)| (q.clone(), *w)).collect();
    let listed = listed(&step("report").is(1, &[]).json());
    let by_rule = expected.keys().filter(|question| told.rule(question).is_some()).count();
    let classes: BTreeSet<&String> = questions.iter().map(|(_, _, class, _)| class).collect();
    println!(
        "{name}: {done} of {acts} lines of acts, {} questions about {} classes; {} differences, {by_rule} by rules",
        questions.len(),
        classes.len(),
        expected.len()
    );
    report(
        &format!("differences of {name}"),
        &listed.len().to_string(),
        &expected.len().to_string(),
        listed == expected,
    );
    assert_eq!(listed, expected);
    for question in expected.keys() {
        let about = told.is_about(question, now.policy()) && told.is_about(question, then.policy());
        assert!(about, "policy diff tells nothing of {question:?}");
    }
    for question in questions.iter().filter(|question| told.rule(question).is_some()) {
        let denied = !allowed[question] && !would[question];
        assert!(denied || expected.contains_key(question), "a rule differs, and not the decision: {question:?}");
    }
    assert!(done > acts * 9 / 10 && classes.len() > 20 && expected.len() > 20 && by_rule > 5, "{questions:?}");
    assert!(expected.values().any(|granted| *granted) && expected.values().any(|granted| !granted));
}

#[test]
fn lists_of_debians_two_policies_what_their_difference_predicts() {
    let scratch = Scratch::new();
    let [default, mls] = ["default", "mls"].map(|name| Flavour::new(&scratch, name));
    let kinds: BTreeSet<&str> = lines().flat_map(|(_, acts)| acts).filter_map(|act| act.split(' ').next()).collect();
    assert!(kinds.len() >= 30, "{kinds:?}");
    let options = "--machine system_u:system_r:local_login_t:s0 --audit-limit 1000000";
    let guest = Guest::new(&scratch, "6.1")
        .with(&default.audited, "/default")
        .with(&mls.audited, "/mls")
        .with(Path::new(env!("CARGO_BIN_EXE_tollgate-scenario")), "/tollgate-scenario")
        .step(
            "enforce",
            &format!(
                "{HELPERS}{}ifconfig lo up; mkdir /t && mount -t tmpfs none /t && tollgate enforce /default {options}",
                things()
            ),
        );
    // The first run makes all contexts known.
    let guest = guest.step("first", &acts());
    let guest = trial(guest, "default", "mls").step("reload", "tollgate shadow stop && tollgate reload /mls");
    let steps = trial(guest, "mls", "default").run();
    steps["enforce"].is(0, &[]);
    steps["reload"].is(0, &[]);
    let told = {
        let vectors = [&default, &mls].map(|flavour| Vectors::of(flavour.built.server().unwrap().tables()));
        let side = |policy, vectors| Side { policy, vectors };
        Told::new(&diff::diff(side(default.policy(), &vectors[0]), side(mls.policy(), &vectors[1])))
    };
    let [one, other] = ["default asked", "mls asked"].map(|name| asked(&steps[name]));
    let both: BTreeSet<Question> = one.union(&other).cloned().collect();
    let undefined = undefined([default.policy(), mls.policy()], &both);
    assert!(!undefined.is_empty());
    let with = |questions: BTreeSet<Question>| questions.union(&undefined).cloned().collect();
    let (one, other) = (with(one), with(other));
    assert_lists(&Trial { name: "default", steps: &steps, now: &default, then: &mls, questions: one }, &told);
    assert_lists(&Trial { name: "mls", steps: &steps, now: &mls, then: &default, questions: other }, &told);
}
