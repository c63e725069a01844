use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn status() -> Status {
    let text = r#"{"mode": "enforcing", "policy": "/p \"q\"\\\n", "generation": 3, "generation_since": 20, "since": 10, "daemon": 7,
        "hooks": {"attached": ["file_open", "file_ioctl"], "not_needed": ["inode_permission"]},
        "not_enforced": ["user_namespace create"], "descriptors": "use", "permissive": ["a_t"], "permissive_since": {"a_t": 15},
        "unconfined": ["u_t"], "subjects": [], "contexts": 4, "labelling_complete": false,
        "events": 5, "failures": {"an object without label": 6, "event lost": 2, "event above the limit": 1},
        "audit": false, "audit_errors": 0,
        "shadow": {"policy": "/c", "since": 30}, "revoked": {"descriptors": 8, "mappings": 9, "processes": 2}, "killed": 1,
        "shares": [{"room": "labels", "holder": "alice", "held": 11, "share": 12}],
        "fleet": {"fleet": "f", "node": "n", "group": "g", "root": 1, "number": 13, "manifest": "aa", "generation": "bb",
            "tables": "cc", "mode": "enforcing", "hooks": 2, "unenforced": 14, "failures": 0, "denials": 15, "refused": null,
            "refusals": 16, "expires": 1000, "stale_since": 40,
            "agent": {"state": "ended", "looked": 30, "failures": 17, "cause": "no answer"}}}"#;
    serde_json::from_str(text).unwrap()
}

fn managers() -> [Manager; 2] {
    ["files", "file systems"].map(|name| Manager { name: name.into(), asked: 7, cached: 4, tables: 3, denied: 2 })
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// A sample's labels, by the format's grammar, and what follows them.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        let (name, after) = rest.split_once("=\"")?;
        let (mut value, mut end, mut chars) = (String::new(), None, after.char_indices());
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    end = Some(at);
                    break;
                }
                '\\' => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    c @ ('"' | '\\') => c,
                    _ => return None,
                }),
                '\n' => return None,
                c => value.push(c),
            }
        }
        let known = labels.insert(name.to_owned(), value).is_some();
        if known || !is_name(name) {
            return None;
        }
        rest = &after[end? + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((labels, rest.strip_prefix("} ")?)),
        }
    }
}

/// A page by the rules of the format and of promtool's linter: each metric has HELP and TYPE, once, before its samples,
/// which are together; counters end in `_total` and nothing else does; no sample is there twice.
fn read(page: &str) -> BTreeMap<(String, BTreeMap<String, String>), f64> {
    assert!(page.ends_with('\n'));
    let (mut samples, mut seen) = (BTreeMap::new(), BTreeSet::new());
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, help) =
            line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')).unwrap_or_else(|| panic!("{line}"));
        assert!(is_name(name) && seen.insert(name.to_owned()) && help.ends_with('.'), "{line}");
        let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
        assert!(kind == "gauge" || kind == "counter", "{kind}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        let mut count = 0;
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let rest = line.strip_prefix(name).unwrap_or_else(|| panic!("{line} is not of {name}"));
            let (labels, value) = match rest.strip_prefix('{') {
                Some(rest) => labels(rest).unwrap_or_else(|| panic!("{line}")),
                None => (BTreeMap::new(), rest.strip_prefix(' ').unwrap()),
            };
            let value: f64 = value.parse().unwrap();
            assert!(value >= 0.0 && samples.insert((name.to_owned(), labels), value).is_none(), "{line}");
            count += 1;
        }
        assert!(count > 0, "{name} has no sample");
    }
    samples
}

fn value(samples: &BTreeMap<(String, BTreeMap<String, String>), f64>, name: &str, label: &[(&str, &str)]) -> f64 {
    let labels = label.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    samples[&(format!("tollgate_{name}"), labels)]
}

#[test]
fn tells_everything_in_the_form_that_prometheus_reads() {
    let page = text(&status(), &managers(), 100);
    let samples = read(&page);
    let value = |name, label| value(&samples, name, label);
    for (name, expected) in [
        ("daemon_up", 1.0),
        ("enforced", 1.0),
        ("enforcing", 1.0),
        ("hooks_attached", 2.0),
        ("hooks_not_needed", 1.0),
        ("not_enforced", 1.0),
        ("generation", 3.0),
        ("generation_start_time_seconds", 20.0),
        ("start_time_seconds", 10.0),
        ("labelling_complete", 0.0),
        ("sids", 4.0),
        ("permissive_domains", 1.0),
        ("unconfined_domains", 1.0),
        ("revoked_descriptors", 8.0),
        ("revoked_mappings", 9.0),
        ("revoked_processes", 2.0),
        ("revoked_killed_total", 1.0),
        ("shadow", 1.0),
        ("audit_events_total", 5.0),
        ("fleet_expires_time_seconds", 1000.0),
        ("fleet_stale_seconds", 60.0),
        ("fleet_refused", 0.0),
        ("fleet_offers_refused_total", 16.0),
        ("fleet_not_enforced", 14.0),
        ("fleet_denials_last_minute", 15.0),
        ("fleet_agent_up", 0.0),
        ("fleet_agent_look_time_seconds", 30.0),
        ("fleet_agent_failures_total", 17.0),
    ] {
        assert_eq!(value(name, &[]), expected, "{name}");
    }
    assert_eq!(value("fleet_generation", &[("fleet", "f"), ("group", "g")]), 13.0);
    assert_eq!(value("fleet_info", &[("fleet", "f"), ("group", "g"), ("node", "n")]), 1.0);
    assert_eq!(value("fleet_generation_info", &[("generation", "bb"), ("mode", "enforcing")]), 1.0);
    assert_eq!(value("policy_info", &[("policy", "/p \"q\"\\\n")]), 1.0);
    assert_eq!(value("permissive_start_time_seconds", &[("domain", "a_t")]), 15.0);
    let of_alice = [("room", "labels"), ("holder", "alice")];
    assert_eq!([value("held", &of_alice), value("held_limit", &of_alice)], [11.0, 12.0]);
    assert_eq!(value("audit_events_lost_total", &[("reason", "lost")]), 2.0);
    assert_eq!(value("failures_total", &[("kind", "an_object_without_label")]), 6.0);
    assert_eq!(value("failures_total", &[("kind", "no_SID_left")]), 0.0, "told before it comes about");
    assert_eq!(value("decisions_total", &[("manager", "file_systems"), ("answer", "cache")]), 4.0);
    assert_eq!(value("decisions_denied_total", &[("manager", "files")]), 2.0);
}

#[test]
fn counts_each_failure_under_one_name() {
    let samples = read(&text(&status(), &[], 100));
    let told = samples
        .keys()
        .filter(|(name, _)| name == "tollgate_failures_total" || name == "tollgate_audit_events_lost_total");
    assert_eq!(told.count(), status::FAILURES.len());
    assert!(!samples.keys().any(|(name, _)| name.starts_with("tollgate_decisions")), "nothing was counted");
}

#[test]
fn tells_of_a_daemon_that_is_gone() {
    let samples = read(&without_daemon(9));
    assert_eq!([value(&samples, "daemon_up", &[]), value(&samples, "enforced", &[])], [0.0, 1.0]);
    assert_eq!(value(&read(&without_daemon(0)), "enforced", &[]), 0.0);
}

#[test]
fn says_nothing_of_a_fleet_that_the_machine_does_not_belong_to() {
    let samples = read(&text(&Status { fleet: None, ..status() }, &[], 100));
    assert!(!samples.keys().any(|(name, _)| name.starts_with("tollgate_fleet")));
}

const RULES: &str = include_str!("../../../../packaging/prometheus/tollgate.rules.yml");
const PAGE: &str = include_str!("../../../../docs/metrics.md");

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("tollgate_")).collect()
}

#[test]
fn alarms_by_metrics_that_exist_and_describes_each_metric() {
    let samples = read(&text(&status(), &managers(), 100));
    let known: BTreeSet<&str> = samples.keys().map(|(name, _)| name.as_str()).collect();
    let alarms: String = RULES.lines().filter(|line| line.trim_start().starts_with("expr:")).collect();
    assert!(named(&alarms).len() > 10, "{alarms}");
    assert_eq!(&named(&alarms) - &known, BTreeSet::new(), "no such metric");
    assert_eq!(&known - &named(PAGE), BTreeSet::new(), "docs/metrics.md lacks it");
}

#[test]
fn describes_each_alarm_on_the_page() {
    let alarms = RULES.lines().filter_map(|line| line.trim_start().strip_prefix("- alert: "));
    let lacking: Vec<&str> = alarms.clone().filter(|alarm| !PAGE.contains(&format!("`{alarm}`"))).collect();
    assert!(alarms.count() > 10 && lacking.is_empty(), "{lacking:?}");
}
