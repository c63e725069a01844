//! `tollgate-fleet zones`: the zones of a fleet, and what crosses between them.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use tollgate_fleet::{
    Name,
    zones::{Crossing, Report, Zone, Zones},
};

use crate::{input::read, output};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file of zones
    zones: PathBuf,
    /// A built policy, with these zones or without
    policy: PathBuf,
    /// Print the statements that put the zones into the policy
    #[arg(long, conflicts_with = "json")]
    cil: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Exit status 1: the policy was not built with these zones.
pub(crate) fn zones(Arguments { zones, policy, cil, json }: &Arguments) -> anyhow::Result<ExitCode> {
    let (file, bytes) = (parse(zones)?, read(policy)?);
    let named = || format!("{} in {}", zones.display(), policy.display());
    if *cil {
        output::line(file.statements(&bytes).with_context(named)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = file.report(&bytes).with_context(named)?;
    if *json {
        output::line(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print(&report)?;
    }
    Ok(ExitCode::from(u8::from(!report.open.is_empty())))
}

/// The sanity questions of a policy that a group gets: those that somebody has written, and those of the zones.
pub(crate) fn questions(path: &Path, policy: &[u8], group: &Name, written: &[u8]) -> anyhow::Result<Vec<u8>> {
    let zones = parse(path)?;
    if !zones.has(group) {
        anyhow::bail!("no zone of {} has the group {group}: add it to one", path.display());
    }
    let named = || path.display().to_string();
    if let Some(open) = zones.report(policy).with_context(named)?.open.first() {
        anyhow::bail!(
            "the policy was not built with the zones of {}: {}; write their statements with `tollgate fleet zones --cil`, \
             and build the policy with them",
            path.display(),
            open.replace('\t', " ")
        );
    }
    let mut text = written.to_vec();
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend(zones.questions(policy).with_context(named)?.into_bytes());
    Ok(text)
}

fn parse(path: &Path) -> anyhow::Result<Zones> {
    Zones::parse(&read(path)?).with_context(|| path.display().to_string())
}

fn print(Report { zones, crossings, open }: &Report) -> anyhow::Result<()> {
    for Zone { name, groups, addresses, domains, ports } in zones {
        output::line(&format!("zone {name}"))?;
        output::line(&format!("  groups   {}", list(groups)))?;
        output::line(&format!("  nodes    {}", list(addresses)))?;
        output::line(&format!("  domains  {}", domains.join(" ")))?;
        if !ports.is_empty() {
            output::line(&format!("  ports    {}", ports.join(" ")))?;
        }
    }
    for Crossing { from, to, ports, ways } in crossings {
        output::line(&format!("from {from} to {to}"))?;
        for port in ports {
            output::line(&format!("  by {}: {}", port.name, port.numbers.join(", ")))?;
        }
        for way in ways {
            output::line(&format!("  {} reaches {} by {} {}", way.source, way.target, way.protocol, way.port))?;
        }
        if ways.is_empty() {
            output::line("  nothing crosses: the policy allows none of it")?;
        }
    }
    match open.len() {
        0 => output::line("the policy has these zones: nothing else crosses"),
        more => {
            output::line(&format!("the policy was not built with these zones: {more} answers differ, such as"))?;
            open.iter().take(3).try_for_each(|line| output::line(&format!("  {}", line.replace('\t', " "))))
        }
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}
