//! `tollgate learn`: turns denials into CIL.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_audit::{
    learn::{self, abstraction},
    untrusted::for_people,
};
use tollgate_client::Client;
use tollgate_policy::explain::Explainer;

use crate::{denials::Denials, output};

/// How long to wait for equal denials: a little more than the second after which the daemon logs their count.
const STORM_TIME: Duration = Duration::from_millis(1200);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    denials: Denials,
    /// Write all rules out, and call no macros of the policy in their place
    #[arg(long)]
    without_macros: bool,
    /// Write the CIL to a new file, which you build together with the policy's sources
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (built, name) = arguments.denials.policy()?;
    let unwritten = if arguments.denials.is_log() { settle() } else { 0 };
    let entries = arguments.denials.read()?;
    arguments.denials.check_domain(&built, &name, &entries)?;
    let explainer = Explainer::new(&built.policy, &built.lines);
    let mut learnt = learn::learn(&explainer, entries);
    if !arguments.without_macros {
        learnt.group(&abstraction::of(&built.lines), &built.policy);
    }
    let (doubts, apart) = (learnt.doubts(), &learnt.apart);
    if let Some(why) = built.lines.missing.as_ref().filter(|_| built.lines.statements.is_empty()) {
        eprintln!("tollgate: the policy's promises (neverallow) are not known: {why}");
    }
    if unwritten > 0 {
        eprintln!("tollgate: {unwritten} records could not be written, so what was denied is not all in the log");
    }
    if let Some(domain) = arguments.denials.domain().filter(|_| learnt.evidence.count == 0) {
        eprintln!(
            "tollgate: nothing was denied to {domain}: `tollgate ps --domain {domain}` shows whether anything runs in it"
        );
    }
    doubts.iter().for_each(|doubt| eprintln!("tollgate: {doubt}"));
    apart.iter().for_each(|apart| eprint!("tollgate: no allow rule helps: {apart}"));
    learnt.wide().iter().for_each(|wide| eprintln!("tollgate: {wide}"));
    let text = format!("; For the policy {}.\n{learnt}", for_people(name));
    match &arguments.out {
        Some(path) => {
            write_new(path, &text)?;
            let (rules, permissions) = (learnt.rules.len(), learnt.granted());
            let macros =
                if learnt.calls.is_empty() { String::new() } else { format!("macros: {}, ", learnt.calls.len()) };
            output::line(&format!(
                "{}: {macros}rules: {rules}, permissions: {permissions}, each of which was denied",
                path.display()
            ))?;
        }
        None => output::write(&text)?,
    }
    Ok(if learnt.is_whole() && unwritten == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Makes the daemon, if there is one, log what it has received; returns how many records it could not write.
pub(crate) fn settle() -> u64 {
    // The request wakes the daemon; it logs the count of a storm when the second is over.
    let status = Client::connect().and_then(|mut client| client.status());
    let Ok(status) = status else { return 0 };
    thread::sleep(STORM_TIME);
    status.audit_errors
}

/// Refuses to overwrite a file: what was learnt before may be in no log any more.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let made = File::create_new(path);
    if made.as_ref().is_err_and(|cause| cause.kind() == io::ErrorKind::AlreadyExists) {
        bail!(
            "{} is there already, with rules that the policy in force may need: name another file and build with both",
            path.display()
        );
    }
    let written = made.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.with_context(|| format!("cannot write {}", path.display()))
}
