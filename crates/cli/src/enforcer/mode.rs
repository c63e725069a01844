//! `tollgate mode`: enforcing or permissive.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use tollgate_audit::{Entry, avc::Verdict, log::Filter, sink};
use tollgate_client::{Client, protocol::Mode};

use crate::{audit, denials, output};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Whether to deny what the policy denies, or to grant and audit it; without a mode, the present one is printed
    #[arg(value_parser = ["enforcing", "permissive"])]
    mode: Option<String>,
    /// Only for this domain, until the next policy is put in force
    #[arg(long, value_name = "TYPE", requires = "mode")]
    domain: Option<String>,
    /// Enforce the domain only if nothing was denied to it, and no event was lost, for this long: `30min`, `7days`; else exit
    /// status 1, and nothing changes
    #[arg(long, value_name = "TIME", value_parser = audit::since, requires = "domain")]
    if_quiet: Option<u64>,
    /// The folder that the daemon writes its log to
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER, requires = "if_quiet")]
    log: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect()?;
    if let (Some(since), Some(domain), Some("enforcing")) =
        (arguments.if_quiet, &arguments.domain, arguments.mode.as_deref())
        && !is_quiet(&arguments.log, domain, since)?
    {
        return Ok(ExitCode::from(1));
    }
    match arguments.mode.as_deref().map(str::parse::<Mode>) {
        Some(mode) => client.set_mode(mode.map_err(anyhow::Error::msg)?, arguments.domain.as_deref())?,
        None => output::line(&client.mode()?.to_string())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether nothing was denied to a domain since then, by the log; prints the denials if there were some.
fn is_quiet(log: &Path, domain: &str, since: u64) -> anyhow::Result<bool> {
    let filter = Filter { domain: Some(domain.to_owned()), since: Some(since) };
    let (mut denied, mut lost) = (0, 0);
    denials::read_log(log, Some(since), |entry| match entry {
        _ if !filter.takes(&entry) => {}
        Entry::Lost(events) => lost += events.count,
        Entry::Avc(denial) if denial.verdict == Verdict::Denied => denied += denial.repeated + 1,
        Entry::Avc(_) | Entry::Load(_) => {}
    })?;
    if denied > 0 {
        eprintln!(
            "tollgate: {domain} was denied {denied} times since then: tollgate learn --domain {domain} shows what it needs"
        );
    }
    if lost > 0 {
        eprintln!(
            "tollgate: {lost} events were lost since then: it is unknown whether something was denied to {domain}"
        );
    }
    Ok(denied == 0 && lost == 0)
}
