//! Enforcement as metrics for Prometheus: the text exposition format, version 0.0.4. docs/metrics.md lists the names,
//! which stay.

use std::fmt::{Display, Write as _};

use tollgate_client::{
    protocol::Mode,
    shares::Held,
    status::{self, Kind as Lack, Manager, Revoked, Status},
};

/// The type of a metric.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// It only rises, until enforcement or the daemon begins anew.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// The text of all metrics.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    /// Adds a metric: its samples, each with labels and a value.
    fn metric<'l, V: Display>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<(&'l str, &'l str)>, V)>,
    ) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP tollgate_{name} {help}\n# TYPE tollgate_{name} {kind}");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "tollgate_{name}{labels} {value}");
        }
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.metric(name, Kind::Gauge, help, [(Vec::new(), value)]);
    }
}

/// Escapes a label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All metrics, from the daemon's report.
#[must_use]
pub fn text(status: &Status, managers: &[Manager]) -> String {
    let mut page = Page::default();
    running(&mut page, true, status.hooks.attached.len());
    canary(&mut page, status);
    services(&mut page, status);
    policy(&mut page, status);
    domains(&mut page, status);
    revoked(&mut page, status);
    shares(&mut page, status);
    audit(&mut page, status);
    failures(&mut page, status);
    decisions(&mut page, managers);
    page.0
}

/// The metrics that are known if no daemon answers: how many hooks have a program.
#[must_use]
pub fn without_daemon(hooks: usize) -> String {
    let mut page = Page::default();
    running(&mut page, false, hooks);
    page.0
}

fn running(page: &mut Page, daemon: bool, hooks: usize) {
    page.gauge("daemon_up", "Whether the daemon answers (1); enforcement goes on without it.", u8::from(daemon));
    page.gauge("enforced", "Whether a policy is in force (1): programs are attached.", u8::from(hooks > 0));
    page.gauge("hooks_attached", "Kernel hooks with a program.", hooks);
}

/// What should be confined.
fn services(page: &mut Page, status: &Status) {
    page.gauge("services_confined", "Services that are confined as expected.", status.confined);
    let help = "What should be confined and is not, or is not as it was before: `tollgate service list`.";
    page.gauge("services_not_confined", help, status.findings.len());
}

/// What the canary found.
fn canary(page: &mut Page, status: &Status) {
    let runs = status.alarm.as_ref().is_none_or(|alarm| alarm.kind != Lack::Off);
    page.gauge(
        "hooks_run",
        "Whether hooks deny what must be denied (1), which the canary tries continuously.",
        u8::from(runs),
    );
    let answers = status.alarm.is_none();
    page.gauge("canary_answers", "Whether it is known that hooks run (1).", u8::from(answers));
    let help = "Number of gaps in which hooks did not run, or may not have, since the daemon began.";
    page.metric("gaps_total", Kind::Counter, help, [(Vec::new(), status.gaps_seen)]);
    let lasting = status.alarm.iter().flat_map(|alarm| &alarm.slipped);
    let slipped = status.gaps.iter().flat_map(|gap| &gap.slipped).chain(lasting);
    let slipped: usize = slipped.map(|some| some.processes.len()).sum();
    page.gauge("slipped_processes", "Processes that may have left their confinement in the remembered gaps.", slipped);
}

fn policy(page: &mut Page, status: &Status) {
    let enforcing = u8::from(status.mode == Mode::Enforcing);
    page.gauge("enforcing", "Whether what the policy denies is denied (1), or granted and audited (0).", enforcing);
    let info = [(vec![("policy", status.policy.as_str())], 1)];
    page.metric("policy_info", Kind::Gauge, "The policy in force, as it was named; always 1.", info);
    page.gauge("generation", "Policies put in force since enforcement began.", status.generation);
    let help = "When this policy was put in force, in seconds since 1970.";
    page.gauge("generation_start_time_seconds", help, status.generation_since);
    page.gauge("start_time_seconds", "When enforcement began, in seconds since 1970.", status.since);
    let help = "Kernel hooks without a program, because this policy denies nothing there.";
    page.gauge("hooks_not_needed", help, status.hooks.not_needed.len());
    page.gauge("not_enforced", "Things in the policy that no hook of this kernel checks.", status.not_enforced.len());
    let help = "Whether all files that were there when enforcement began have their label (1).";
    page.gauge("labelling_complete", help, u8::from(status.labelling_complete));
    page.gauge("sids", "Security contexts that have a SID.", status.contexts);
}

fn domains(page: &mut Page, status: &Status) {
    page.gauge("permissive_domains", "Domains whose denials are granted and audited.", status.permissive.len());
    let since = status.permissive_since.iter().map(|(domain, since)| (vec![("domain", domain.as_str())], since));
    let help = "Since when a domain is permissive, in seconds since 1970.";
    page.metric("permissive_start_time_seconds", Kind::Gauge, help, since);
    page.gauge("unconfined_domains", "Domains for which nothing is checked.", status.unconfined.len());
}

/// The largest holders of limited resources.
fn shares(page: &mut Page, status: &Status) {
    let labels = |held: &'_ Held| [("room", held.room.to_string()), ("holder", held.holder.clone())];
    let all: Vec<([(&str, String); 2], &Held)> = status.shares.iter().map(|held| (labels(held), held)).collect();
    let samples = |value: fn(&Held) -> u32| {
        let all = all.iter().map(move |(labels, held)| (labels, value(held)));
        all.map(|(labels, value)| (labels.iter().map(|(key, text)| (*key, text.as_str())).collect(), value))
    };
    let help = "Places held in a map of the kernel, for the largest holders of each map.";
    page.metric("held", Kind::Gauge, help, samples(|held| held.held));
    page.metric("held_limit", Kind::Gauge, "How many places the holder may have.", samples(|held| held.share));
}

/// What processes hold although a policy has taken it away.
fn revoked(page: &mut Page, status: &Status) {
    let Revoked { descriptors, mappings, processes } = status.revoked;
    let help = "Open descriptors that the policy in force denies: their use is denied.";
    page.gauge("revoked_descriptors", help, descriptors);
    let help = "Mappings of files that the policy in force denies: memory is used without a check.";
    page.gauge("revoked_mappings", help, mappings);
    page.gauge("revoked_processes", "Processes that hold either.", processes);
    let help = "Processes killed because of memory that was taken away.";
    page.metric("revoked_killed_total", Kind::Counter, help, [(Vec::new(), status.killed)]);
    page.gauge(
        "shadow",
        "Whether a candidate policy is checked beside the one in force (1).",
        u8::from(status.shadow.is_some()),
    );
}

/// The audit. Events that are missing from it are among the failures whose names begin with `event`.
fn audit(page: &mut Page, status: &Status) {
    let help = "Denials, and grants that the policy audits, reported to the daemon.";
    page.metric("audit_events_total", Kind::Counter, help, [(Vec::new(), status.events)]);
    let lost = status::FAILURES.iter().filter_map(|(_, name)| {
        let reason = name.strip_prefix(LOST)?.trim_start();
        Some((reason_label(reason), status.failures.get(*name).copied().unwrap_or(0)))
    });
    let lost: Vec<(String, u64)> = lost.collect();
    let samples = lost.iter().map(|(reason, count)| (vec![("reason", reason.as_str())], count));
    page.metric("audit_events_lost_total", Kind::Counter, "Denials that are in no log.", samples);
    let help = "Records that the daemon could not write, since it began.";
    page.metric("audit_write_errors_total", Kind::Counter, help, [(Vec::new(), status.audit_errors)]);
}

/// The prefix of the failures that count lost events.
const LOST: &str = "event";

fn reason_label(reason: &str) -> String {
    reason.replace(' ', "_")
}

/// All kinds, including those that never occurred: a series that begins with its first failure would hide that failure.
fn failures(page: &mut Page, status: &Status) {
    let kinds = status::FAILURES.iter().map(|(_, name)| *name).filter(|name| !name.starts_with(LOST));
    let kinds: Vec<(String, u64)> =
        kinds.map(|name| (reason_label(name), status.failures.get(name).copied().unwrap_or(0))).collect();
    let samples = kinds.iter().map(|(kind, count)| (vec![("kind", kind.as_str())], count));
    let help = "Acts denied because something failed, since enforcement began.";
    page.metric("failures_total", Kind::Counter, help, samples);
}

fn decisions(page: &mut Page, managers: &[Manager]) {
    let names: Vec<String> = managers.iter().map(|manager| reason_label(&manager.name)).collect();
    let answers = names.iter().zip(managers).flat_map(|(name, Manager { cached, tables, .. })| {
        [("cache", cached), ("tables", tables)]
            .map(|(answer, count)| (vec![("manager", name.as_str()), ("answer", answer)], count))
    });
    let help = "Decisions by object manager and by what answered, counted only while `tollgate status --count` runs.";
    page.metric("decisions_total", Kind::Counter, help, answers);
    let denied = names.iter().zip(managers).map(|(name, manager)| (vec![("manager", name.as_str())], manager.denied));
    let help = "Decisions that denied, counted only while `tollgate status --count` runs.";
    page.metric("decisions_denied_total", Kind::Counter, help, denied);
}

#[cfg(test)]
mod tests {
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
            "shares": [{"room": "labels", "holder": "alice", "held": 11, "share": 12}]}"#;
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
        let page = text(&status(), &managers());
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
        ] {
            assert_eq!(value(name, &[]), expected, "{name}");
        }
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
        let samples = read(&text(&status(), &[]));
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
}
