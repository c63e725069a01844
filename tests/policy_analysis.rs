//! `tollgate policy diff`, `reach`, `stats`, `check` and `bool`: their output, and that the comparison of Debian's two
//! policies agrees with their rules, one by one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tollgate_policy::{
    built::Built,
    model::{Policy, RuleKind},
};

use crate::program::{Scratch, word};

const SMALL: &str = include_str!("policies/small.cil");

fn build(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let (source, built) = (scratch.file(&format!("{name}.cil"), text), scratch.path(name));
    scratch.run(&["policy", "build", word(&source), "-o", word(&built)]).with(0);
    built
}

#[test]
fn prints_what_a_change_grants_and_takes_away() {
    let scratch = Scratch::new();
    let before = build(&scratch, "before", SMALL);
    let changed = SMALL.replace(
        "(allow sshd_t sshd_exec_t (file (entrypoint read)))",
        "(allow sshd_t sshd_exec_t (file (entrypoint)))",
    ) + "(type web_t) (allow sshd_t shadow_t (file (read))) (allow sshd_t self (process (transition)))";
    let after = build(&scratch, "after", &changed);
    scratch.run(&["policy", "diff", word(&before), word(&before)]).with(0);
    let text = scratch.run(&["policy", "diff", word(&before), word(&after)]).with(1).stdout;
    for line in [
        "+ type web_t (",
        "sshd_t\n",
        "  + allow file { read } on shadow_t\n",
        "  - allow file { read } on sshd_exec_t\n",
        "  + allow process { transition } on itself\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let diff = scratch.run(&["policy", "diff", word(&before), word(&after), "--json"]).with(1).json();
    assert_eq!(diff["domains"][0]["sources"], json!(["sshd_t"]));
    assert_eq!(diff["added_types"][0]["name"], "web_t");
}

#[test]
fn prints_where_information_goes() {
    let scratch = Scratch::new();
    let policy = build(&scratch, "small", SMALL);
    let reach = |arguments: &[&str], status| {
        let all = [&["policy", "reach", word(&policy)], arguments].concat();
        scratch.run(&all).with(status)
    };
    let names = |answer: &Value| -> Vec<String> {
        let types = answer["types"].as_array().unwrap().iter();
        types.map(|reached| reached["name"].as_str().unwrap().to_owned()).collect()
    };
    // init_t reads it, writes every file and becomes sshd_t.
    let all = reach(&["--from", "shadow_t", "--json"], 0).json();
    assert_eq!(names(&all)[0], "init_t");
    assert!(names(&all).contains(&"sshd_t".to_owned()));
    assert_eq!(names(&reach(&["--from", "shadow_t", "--exclude", "init_t", "--json"], 0).json()), [""; 0]);
    let path = reach(&["--from", "shadow_t", "--to", "sshd_t"], 1).stdout;
    for part in
        ["sshd_t (2 steps)", "shadow_t -> init_t: (allow init_t shadow_t (file (read)))", "(process (transition))"]
    {
        assert!(path.contains(part), "{path}");
    }
    let through = reach(&["--from", "shadow_t", "--to", "tmp_t", "--through", "sshd_t", "--json"], 1).json();
    assert_eq!(through["types"][0]["steps"], 3, "{through}");
    assert_eq!(names(&reach(&["--to", "shadow_t", "--steps", "1", "--json"], 0).json()), ["init_t"]);
    let error = reach(&["--from", "shadow"], 2).stderr;
    assert!(error.contains("like it: shadow_t"), "{error}");
    reach(&[], 2);
}

#[test]
fn lists_and_sets_booleans() {
    let scratch = Scratch::new();
    let policy = build(&scratch, "small", SMALL);
    assert_eq!(
        scratch.run(&["policy", "bool", word(&policy), "--json"]).with(0).json(),
        json!([{"name": "keys", "value": true, "rules": 1}])
    );
    let would = scratch.run(&["policy", "bool", word(&policy), "keys=off"]).with(0).stdout;
    assert!(would.contains("  - allow file { read open } on sshd_key_t"), "{would}");
    let out = scratch.path("without");
    scratch.run(&["policy", "bool", word(&policy), "keys=off", "-o", word(&out)]).with(0);
    let question = ["system_u:system_r:sshd_t:s0", "system_u:object_r:sshd_key_t:s0", "file", "--json"];
    let ask = |policy: &Path| {
        let all = [&["policy", "query", word(policy)], &question[..]].concat();
        scratch.run(&all).with(0).json()["allowed"].clone()
    };
    assert_eq!((ask(&policy), ask(&out)), (json!(["open", "read"]), json!([])));
    let image = scratch.path("image");
    scratch.run(&["policy", "export", word(&out), "--image", word(&image)]).with(0);
    assert_eq!(ask(&image), json!([]), "the binary policy has the value, too");
    for wrong in ["kezs=on", "keys", "keys=perhaps"] {
        let error = scratch.run(&["policy", "bool", word(&policy), wrong]).with(2).stderr;
        assert!(error.contains("like it: keys") || error.contains("NAME=on or NAME=off"), "{error}");
    }
}

#[test]
fn counts_and_checks_a_policy() {
    let scratch = Scratch::new();
    let policy = build(&scratch, "small", SMALL);
    let stats = scratch.run(&["policy", "stats", word(&policy), "--json"]).with(0).json();
    assert_eq!((&stats["policy"]["types"], &stats["policy"]["attributes"]), (&json!(7), &json!(3)));
    assert_eq!((&stats["policy"]["classes"], &stats["policy"]["booleans"]), (&json!(4), &json!(1)));
    assert_eq!(stats["policy"]["constraints_on_levels"], 2);
    scratch.run(&["policy", "stats", word(&policy)]).with(0);
    let found = scratch.run(&["policy", "check", word(&policy), "--kernel", "6.1"]).with(1).stdout;
    assert!(found.contains("warning: classes and permissions of Linux 6.1 that the policy does not define"), "{found}");
    let error = scratch.run(&["policy", "check", word(&policy), "--kernel", "2.6.9"]).with(2).stderr;
    assert!(error.contains("give a release from 5.10 on"), "{error}");
}

fn debian(scratch: &Scratch, name: &str) -> PathBuf {
    let out = scratch.path(name);
    scratch.run(&["policy", "debian", name, "-o", word(&out)]).with(0);
    out
}

/// A policy's rules for one source: permissions by target, class and kind.
fn said(policy: &Policy, source: &str) -> HashMap<(u32, u32, RuleKind), u32> {
    let place = policy.types.iter().position(|t| t.name == source && !t.attribute).unwrap();
    let of = &policy.types[place].set;
    let kinds = [RuleKind::Allow, RuleKind::AuditAllow, RuleKind::DontAudit];
    let mut all = HashMap::new();
    for rule in policy.rules.iter().filter(|rule| kinds.contains(&rule.kind)) {
        if !(of.has(rule.source) || rule.source as usize == place) || !policy.holds(rule.condition) {
            continue;
        }
        let target = &policy.types[rule.target as usize];
        let targets: Vec<u32> = if target.attribute { target.set.iter().collect() } else { vec![rule.target] };
        for target in targets {
            *all.entry((target, rule.class, rule.kind)).or_default() |= rule.data;
        }
    }
    all
}

/// The same by names, of targets in `shared`: lines `allow TARGET CLASS PERMISSION`.
fn lines(policy: &Policy, source: &str, shared: &HashSet<&str>) -> HashSet<String> {
    let mut lines = HashSet::new();
    for ((target, class, kind), vector) in said(policy, source) {
        let target = policy.types[target as usize].name.as_str();
        let class = &policy.classes[class as usize];
        let kind = format!("{kind:?}").to_lowercase();
        let granted = (0..).zip(&class.permissions).filter(|(bit, _)| vector >> bit & 1 == 1);
        if shared.contains(target) {
            lines.extend(granted.map(|(_, permission)| format!("{kind} {target} {} {permission}", class.name)));
        }
    }
    lines
}

/// The lines of `diff` for one source, in that form: granted, taken away.
fn told(diff: &Value, source: &str) -> [HashSet<String>; 2] {
    let mut told = [HashSet::new(), HashSet::new()];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = |value: &Value| value.as_array().unwrap().iter().map(text).collect::<Vec<_>>();
    for domains in diff["domains"].as_array().unwrap() {
        if !list(&domains["sources"]).iter().any(|name| name == source) {
            continue;
        }
        for change in domains["changes"].as_array().unwrap() {
            let mut targets = list(&change["targets"]);
            targets.retain(|target| target != source);
            if change["itself"] == true {
                targets.push(source.to_owned());
            }
            let (kind, class) = (text(&change["kind"]), text(&change["class"]));
            let place = usize::from(change["added"] == false);
            for permission in list(&change["permissions"]) {
                told[place].extend(targets.iter().map(|target| format!("{kind} {target} {class} {permission}")));
            }
        }
    }
    told
}

fn types(policy: &Policy) -> HashSet<&str> {
    policy.types.iter().filter(|t| !t.attribute && !t.name.is_empty()).map(|t| t.name.as_str()).collect()
}

#[test]
fn compares_debians_policies_as_their_rules_say() {
    let scratch = Scratch::new();
    let (default, mls) = (debian(&scratch, "default"), debian(&scratch, "mls"));
    let diff = scratch.run(&["policy", "diff", word(&default), word(&mls), "--json"]).with(1).json();
    let (before, after) = (Built::open(&default).unwrap().policy, Built::open(&mls).unwrap().policy);
    let shared: HashSet<&str> = types(&before).intersection(&types(&after)).copied().collect();
    // Every source in `diff`, and one in forty of the others.
    let mut sources: BTreeMap<&str, bool> = shared.iter().map(|name| (*name, false)).collect();
    for domains in diff["domains"].as_array().unwrap() {
        for name in domains["sources"].as_array().unwrap() {
            *sources.get_mut(name.as_str().unwrap()).unwrap() = true;
        }
    }
    let mut differences = 0;
    for (place, (source, changed)) in sources.iter().enumerate() {
        if !changed && place % 40 != 0 {
            continue;
        }
        let (old, new) = (lines(&before, source, &shared), lines(&after, source, &shared));
        let expected = [new.difference(&old).cloned().collect(), old.difference(&new).cloned().collect()];
        assert_eq!(told(&diff, source), expected, "{source}");
        differences += expected.iter().map(HashSet::len).sum::<usize>();
    }
    assert!(differences > 500, "hardly anything differs: {differences}");
}
