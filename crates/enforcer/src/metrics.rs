//! Enforcement as metrics for Prometheus: the text exposition format, version 0.0.4. docs/metrics.md lists the names,
//! which stay.

mod fleet;
#[cfg(test)]
mod tests;

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

/// All metrics, from the daemon's report. `now` is in seconds since 1970.
#[must_use]
pub fn text(status: &Status, managers: &[Manager], now: u64) -> String {
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
    status.fleet.iter().for_each(|report| fleet::add(&mut page, report, now));
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
