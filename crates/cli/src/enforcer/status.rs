//! `tollgate status`: what is enforced.

use std::{path::Path, process::ExitCode, thread, time::Duration};

use clap::Args;
use serde::Serialize;
use tollgate_client::{
    Client, ClientError,
    descriptors::Descriptors,
    fleet::{Agent, AgentState, Report},
    guard::GuardStatus,
    shares::Held,
    status::{Kind, Manager, Status},
};
use tollgate_enforcer::{
    guard::Guard,
    metrics,
    programs::{self, Pins},
};

use super::{
    ago::{ago, now},
    kept::Kept,
    wait, why,
};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Count for this many seconds how often object managers check access, and what answers them
    #[arg(long, value_name = "SECONDS")]
    count: Option<u64>,
    /// If a daemon is starting, wait until it answers, and say what it does meanwhile
    #[arg(long)]
    wait: bool,
    /// Say why the program of each hook is attached, or why not; of one hook, with an example for each class
    #[arg(long, value_name = "HOOK", num_args = 0..=1, conflicts_with_all = ["count", "metrics"])]
    why: Option<Option<String>>,
    /// Print metrics in Prometheus' text form (docs/metrics.md)
    #[arg(long, conflicts_with_all = ["count", "json"])]
    metrics: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Folders in which the unit may be installed.
const UNITS: [&str; 4] = [
    "/etc/systemd/system/tollgate.service",
    "/usr/local/lib/systemd/system/tollgate.service",
    "/lib/systemd/system/tollgate.service",
    "/usr/lib/systemd/system/tollgate.service",
];

/// What is known when no daemon runs.
#[derive(Debug, Serialize)]
struct Orphaned {
    /// Whether programs are attached: enforcement goes on then.
    enforced: bool,
    /// Always null, because there is no daemon.
    daemon: Option<u32>,
    /// The hooks with a program.
    attached: Vec<String>,
    /// The guard, as far as this user can see.
    guard: Option<GuardStatus>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.wait {
        wait::for_daemon();
    }
    if let Some(hook) = &arguments.why {
        return why::show(hook.as_deref(), arguments.json);
    }
    match Client::connect() {
        Ok(mut client) if arguments.metrics => {
            let (status, managers) = (client.status()?, client.statistics()?);
            output::write(&metrics::text(&status, &managers, now()))?;
            Ok(verdict(&status))
        }
        Err(ClientError::NoDaemon { .. }) if arguments.metrics => {
            let attached = programs::attached(&Pins::default()).unwrap_or_default();
            output::write(&metrics::without_daemon(attached.len()))?;
            Ok(if attached.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
        }
        Ok(mut client) => match arguments.count {
            Some(seconds) => count(&mut client, Duration::from_secs(seconds), arguments.json),
            None => show(&client.status()?, arguments.json),
        },
        Err(cause @ ClientError::NoDaemon { .. }) => without_daemon(cause, arguments.json),
        Err(cause @ ClientError::Halted { .. }) => {
            without_daemon(cause, arguments.json)?;
            Ok(ExitCode::from(1))
        }
        Err(cause) => Err(cause.into()),
    }
}

/// Everything that `status --json` prints.
#[derive(Debug, Serialize)]
struct Shown<'s> {
    #[serde(flatten)]
    status: &'s Status,
    built: Kept,
}

fn show(status: &Status, json: bool) -> anyhow::Result<ExitCode> {
    let built = Kept::of(status.generation);
    if json {
        output::json(&Shown { status, built })?;
        return Ok(verdict(status));
    }
    let mut rows = rows(status);
    let place = rows.iter().position(|(name, _)| *name == "policy").map_or(0, |place| place + 1);
    rows.splice(place..place, built.rows());
    output::write(&lines(rows))?;
    Ok(verdict(status))
}

/// Exit status 1: hooks do not run, or it is not known whether they do; or something should be confined and is not.
fn verdict(status: &Status) -> ExitCode {
    let guard = status.guard.as_ref().and_then(|guard| guard.alarm.as_ref());
    if status.alarm.is_some() || guard.is_some() || !status.findings.is_empty() {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    }
}

/// Whether hooks run, by the canary, and the gaps in which they did not.
fn canary(status: &Status) -> Vec<(&'static str, String)> {
    let now = match &status.alarm {
        None => "hooks run: what must be denied is denied".to_owned(),
        Some(alarm) => format!("{}; for {}", alarm.text, ago(alarm.since)),
    };
    let lasting =
        status.alarm.iter().flat_map(|alarm| alarm.slipped.iter().map(|some| ("  slipped", some.to_string())));
    let mut rows = vec![("canary", now)];
    rows.extend(lasting);
    for gap in &status.gaps {
        let what = match gap.kind {
            Kind::Off => "hooks did not run",
            Kind::Silent => "it did not answer",
            Kind::Unwatched => "no daemon has looked",
        };
        let length = humantime::format_duration(Duration::from_secs(gap.to.saturating_sub(gap.from)));
        rows.push(("  gap", format!("{what} for {length} at most, until {} ago", ago(gap.to))));
        rows.extend(gap.slipped.iter().map(|some| ("  slipped", some.to_string())));
        rows.extend(gap.not_entered.iter().map(|some| ("  not entered", some.to_string())));
    }
    rows
}

fn rows(status: &Status) -> Vec<(&'static str, String)> {
    let hooks = &status.hooks;
    let sum = |word: &str| status.failures.iter().filter(|(name, _)| name.starts_with(word)).map(|(_, n)| n).sum();
    let lost: u64 = sum("event");
    let to = if status.audit { "the kernel's audit" } else { "a file" };
    let errors = if status.audit_errors > 0 { format!(", {} not written", status.audit_errors) } else { String::new() };
    let failures = status.failures.iter().filter(|(name, _)| !name.starts_with("event"));
    let mut failures: Vec<String> = failures.map(|(name, count)| format!("{name} {count}")).collect();
    let lacking = status.findings.len();
    failures.extend((lacking > 0).then(|| format!("not confined {lacking}")));
    let lacking = if lacking > 0 { format!(", {lacking} not: `tollgate service list`") } else { String::new() };
    let mut rows = vec![
        ("mode", status.mode.to_string()),
        (
            "policy",
            format!("{}, generation {}, for {}", status.policy, status.generation, ago(status.generation_since)),
        ),
        ("enforced", format!("for {}", ago(status.since))),
        ("daemon", format!("process {}", status.daemon)),
        ("hooks", format!("{} attached", hooks.attached.len())),
        ("  not needed", list(&hooks.not_needed, ": `tollgate status --why HOOK` says why")),
        ("not enforced", list(&status.not_enforced, "")),
        (
            "descriptors",
            match status.descriptors {
                Descriptors::Check => "checked when they change hands".to_owned(),
                Descriptors::Use => "checked at each use".to_owned(),
            },
        ),
        (
            "shadow",
            status.shadow.as_ref().map_or_else(
                || "none".to_owned(),
                |candidate| format!("{}, for {}: `tollgate shadow report`", candidate.policy, ago(candidate.since)),
            ),
        ),
        ("taken away", taken_away(status)),
        ("unconfined", list(&status.unconfined, "")),
        (
            "permissive",
            list(&status.permissive.iter().map(|domain| permissive(status, domain)).collect::<Vec<_>>(), ""),
        ),
        ("subjects", list(&status.subjects, "")),
        ("contexts", status.contexts.to_string()),
        ("labels", labels(status).to_owned()),
        ("held", much(&status.shares)),
        ("denials", format!("{} logged to {to}, {lost} lost{errors}", status.events)),
        ("failures", if failures.is_empty() { "none".to_owned() } else { failures.join(", ") }),
        ("services", format!("{} confined as they should be{lacking}", status.confined)),
    ];
    rows.extend(status.findings.iter().map(|finding| ("  lacking", finding.clone())));
    rows.extend(guard(status.guard.as_ref()));
    rows.extend(status.fleet.iter().flat_map(fleet));
    rows.splice(1..1, canary(status));
    rows
}

/// What a node enforces of what its fleet has published, and why not what was published last.
fn fleet(report: &Report) -> Vec<(&'static str, String)> {
    let Report { fleet, node, number, generation, mode, denials, refused, .. } = report;
    let has = match (generation, mode) {
        (Some(generation), Some(mode)) => {
            format!("{mode} of generation {}, {denials} denials a minute", &generation[..16])
        }
        _ => "nothing of it".to_owned(),
    };
    let stale = report.stale_since.map(|since| ("  stale", format!("for {}: it goes on with what it has", ago(since))));
    let row = ("fleet", format!("{fleet}, as {node}; manifest {number}: {has}"));
    let refused = refused.iter().map(|why| ("  refused", why.clone()));
    [row].into_iter().chain(refused).chain(stale).chain([("  agent", agent(&report.agent))]).collect()
}

/// Whether the fleet's agent runs, and why it does not know what is newest.
fn agent(Agent { state, looked, cause, .. }: &Agent) -> String {
    let what = match state {
        AgentState::Awaited => "has not come yet",
        AgentState::Runs => "runs",
        AgentState::Once => "looked once",
        AgentState::Ended => "has ended: see `systemctl status tollgate-fleet`",
        AgentState::Silent => "should have come again: see `systemctl status tollgate-fleet`",
    };
    let looked = looked.map_or(String::new(), |looked| format!("; it looked {} ago", ago(looked)));
    let cause = cause.as_ref().map_or(String::new(), |cause| format!(", and failed: {cause}"));
    format!("{what}{looked}{cause}")
}

/// The guard's rows, below one that says whether it runs.
fn guard(guard: Option<&GuardStatus>) -> Vec<(&'static str, String)> {
    let Some(guard) = guard else { return vec![("guard", "none".to_owned())] };
    let database = guard.in_force.as_deref().unwrap_or("being put in force");
    let mut rows = vec![("guard", format!("in force, by the database {database}"))];
    rows.extend(guard.rows());
    rows
}

/// Holders of half of their share or more, to which more may soon be refused.
fn much(shares: &[Held]) -> String {
    let much = shares.iter().filter(|held| held.unlabelled || held.held >= held.share / 2);
    let rows = much.map(|Held { room, holder, held, share, unlabelled }| {
        let left = if *unlabelled { ", files without label" } else { "" };
        format!("{room}: {holder} {held} of {share}{left}")
    });
    let rows: Vec<String> = rows.collect();
    if rows.is_empty() { "half of a share or more: by nobody".to_owned() } else { rows.join("; ") }
}

fn labels(status: &Status) -> &'static str {
    if !status.labelling_complete {
        "not complete yet"
    } else if status.findings.iter().any(|finding| finding.contains("file_contexts say")) {
        "not those that file_contexts give programs: `tollgate service list`"
    } else {
        "complete"
    }
}

/// What processes hold that the policy denies, and how many of them were killed.
fn taken_away(status: &Status) -> String {
    let killed = (status.killed > 0).then(|| format!("killed because of mappings: {}", status.killed));
    let parts: Vec<String> = super::revoked(&status.revoked).into_iter().chain(killed).collect();
    if parts.is_empty() { "nothing that is in use".to_owned() } else { parts.join("; ") }
}

fn list(names: &[String], meaning: &str) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("{}{meaning}", names.join(" ")) }
}

/// A permissive domain, and since when it is permissive.
fn permissive(status: &Status, domain: &str) -> String {
    let since = status.permissive_since.get(domain);
    since.map_or_else(|| domain.to_owned(), |since| format!("{domain} (for {})", ago(*since)))
}

fn count(client: &mut Client, time: Duration, json: bool) -> anyhow::Result<ExitCode> {
    let before = client.statistics()?;
    client.count(true)?;
    thread::sleep(time);
    let after = client.statistics();
    // Counting is switched off even after a failure, because it slows decisions down.
    client.count(false)?;
    let counted: Vec<Manager> = after?.into_iter().map(|manager| since(&before, manager)).collect();
    if json {
        output::json(&counted)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{:<16} {:>12} {:>12} {:>12} {:>12}\n", "", "checks", "from cache", "from tables", "denied");
    for Manager { name, asked, cached, tables, denied } in &counted {
        text.push_str(&format!("{name:<16} {asked:>12} {cached:>12} {tables:>12} {denied:>12}\n"));
    }
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What an object manager has counted since `before`.
fn since(before: &[Manager], after: Manager) -> Manager {
    let Some(before) = before.iter().find(|before| before.name == after.name) else { return after };
    Manager {
        asked: after.asked.saturating_sub(before.asked),
        cached: after.cached.saturating_sub(before.cached),
        tables: after.tables.saturating_sub(before.tables),
        denied: after.denied.saturating_sub(before.denied),
        name: after.name,
    }
}

/// The status without a daemon: enforcement may go on, and the pins show whether it does.
fn without_daemon(cause: ClientError, json: bool) -> anyhow::Result<ExitCode> {
    let attached = programs::attached(&Pins::default()).unwrap_or_default();
    let (enforced, beside) = (!attached.is_empty(), guard_here());
    if json {
        output::json(&Orphaned { enforced, daemon: None, attached, guard: beside })?;
        return Ok(if enforced { ExitCode::SUCCESS } else { ExitCode::from(1) });
    }
    let mut rows = if enforced {
        let daemon = match cause {
            ClientError::Halted { .. } => cause.to_string(),
            _ => "none: denials are not logged; `tollgate enforce POLICY` takes over".to_owned(),
        };
        let mode = format!("as it was: {} programs are attached, enforcement goes on", attached.len());
        vec![("mode", mode), ("daemon", daemon)]
    } else {
        let (seen, root) = (", as far as this user can see", nix::unistd::geteuid().is_root());
        eprintln!("tollgate: no daemon answers: {}", begin(&UNITS.map(Path::new)));
        vec![("mode", format!("nothing is enforced{}", if root { "" } else { seen }))]
    };
    if beside.is_some() {
        rows.extend(guard(beside.as_ref()));
    }
    output::write(&lines(rows))?;
    Ok(if enforced { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What the guard does, without its daemon.
fn guard_here() -> Option<GuardStatus> {
    let found = Guard::adopt().ok().flatten()?;
    Some(found.status(&found.read_database().unwrap_or_default(), None))
}

fn lines(rows: Vec<(&'static str, String)>) -> String {
    rows.into_iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect()
}

/// How to begin enforcement, with the unit if it is installed.
fn begin(units: &[&Path]) -> &'static str {
    if units.iter().any(|unit| unit.exists()) {
        "begin with `systemctl enable --now tollgate`"
    } else {
        "start it with `tollgate enforce POLICY`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_unit_where_it_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let unit = folder.path().join("tollgate.service");
        assert!(begin(&[&unit]).contains("tollgate enforce"));
        std::fs::write(&unit, "").unwrap();
        assert!(begin(&[Path::new("/nowhere"), &unit]).contains("systemctl enable --now tollgate"));
    }

    #[test]
    fn shows_what_lacks_and_what_failed() {
        let text = r#"{"mode": "enforcing", "policy": "/p", "generation": 3, "generation_since": 0, "since": 0, "daemon": 7,
            "hooks": {"attached": ["file_open"], "not_needed": ["inode_permission"]},
            "not_enforced": ["user_namespace create (web_t may be denied it)"],
            "descriptors": "use", "revoked": {"descriptors": 3, "mappings": 1, "processes": 2}, "killed": 1, "permissive": ["a_t"], "unconfined": [], "subjects": [], "contexts": 4, "labelling_complete": false,
            "events": 5, "failures": {"an object without label": 6, "event lost": 2, "event above the limit": 1},
            "audit": false, "audit_errors": 0, "shares": [
                {"room": "credentials", "holder": "alice", "held": 100, "share": 100},
                {"room": "labels", "holder": "bob", "held": 1, "share": 100, "unlabelled": true},
                {"room": "labels", "holder": "the machine", "held": 49, "share": 100}]}"#;
        let rows = rows(&serde_json::from_str(text).unwrap());
        let row = |name| rows.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str()).unwrap();
        assert_eq!(row("not enforced"), "user_namespace create (web_t may be denied it)");
        assert!(row("  not needed").starts_with("inode_permission: "));
        assert_eq!(row("denials"), "5 logged to a file, 3 lost");
        assert_eq!(row("failures"), "an object without label 6");
        assert_eq!(row("labels"), "not complete yet");
        assert_eq!(row("held"), "credentials: alice 100 of 100; labels: bob 1 of 100, files without label");
        assert_eq!(
            row("taken away"),
            "3 descriptors (denied at their use) and 1 mapping of files, in 2 processes; killed because of mappings: 1"
        );
        assert_eq!((row("permissive"), row("unconfined")), ("a_t", "none"));
        assert_eq!(row("guard"), "none");
    }

    #[test]
    fn counts_from_where_it_began() {
        let manager = |asked| Manager { name: "files".into(), asked, cached: asked, tables: 0, denied: 0 };
        assert_eq!(since(&[manager(3)], manager(10)), manager(7));
        assert_eq!(since(&[], manager(10)), manager(10));
    }
}
