//! `tollgate-fleet status` and `report`: what is published, and what nodes prove.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use tollgate_fleet::{
    Name, Time,
    register::Request,
    report::{Evidence, Limits, Report},
    store::{Head, Kind, Store},
};

use crate::{
    input::{duration, read},
    output,
    source::Source,
};

/// How often `--wait` looks.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Asked {
    #[command(flatten)]
    source: Source,
    /// The group of nodes
    #[arg(long, value_name = "GROUP")]
    group: Name,
    /// A node that has said nothing for so long is stale [default: 30min]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    silence: Option<Duration>,
    /// How far clocks may be apart; a node whose clock is farther off is skewed [default: 5min]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    skew: Option<Duration>,
    /// Wait so long at most until all nodes have converged
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "check")]
    wait: Option<Duration>,
    /// Write what the report rests on into a file, which others can check
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    evidence: Option<PathBuf>,
    /// Check such a file instead of the store's nodes
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    source: Source,
    /// The group of nodes
    #[arg(long, value_name = "GROUP")]
    group: Name,
}

pub(crate) async fn report(asked: &Asked) -> anyhow::Result<ExitCode> {
    let end = asked.wait.map(|wait| Instant::now() + wait);
    let (evidence, report) = loop {
        let evidence = asked.evidence().await?;
        let report = evidence.report(&asked.source.root().await?, &asked.group, asked.limits())?;
        if report.converged || end.is_none_or(|end| Instant::now() >= end) {
            break (evidence, report);
        }
        tokio::time::sleep(INTERVAL).await;
    };
    if let Some(path) = &asked.evidence {
        std::fs::write(path, serde_json::to_string_pretty(&evidence)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if asked.json {
        output::line(&serde_json::to_string_pretty(&report)?)?
    } else {
        print(&report)?
    }
    Ok(ExitCode::from(u8::from(!report.converged)))
}

impl Asked {
    fn limits(&self) -> Limits {
        let Limits { silence, skew } = Limits::USUAL;
        Limits { silence: self.silence.unwrap_or(silence), skew: self.skew.unwrap_or(skew) }
    }

    async fn evidence(&self) -> anyhow::Result<Evidence> {
        match &self.check {
            None => present(&self.source, &self.group).await,
            Some(path) => serde_json::from_slice(&read(path)?)
                .with_context(|| format!("{} is no evidence, which `report --evidence` writes", path.display())),
        }
    }
}

/// The present evidence in the store.
pub(crate) async fn present(source: &Source, group: &Name) -> anyhow::Result<Evidence> {
    let store = source.store()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let manifest = store.head(&Head::Current(group.clone())).await?;
    let manifest = manifest.with_context(|| format!("nothing is published for the group {group}"))?;
    let register = store.head(&Head::Register).await?;
    let register = register.context("no node belongs to the fleet yet: approve one")?;
    let states = store.all(Kind::State).await?.into_iter();
    let states: BTreeMap<_, _> = states.map(|(node, bytes)| (node.to_string(), text(bytes))).collect();
    Ok(Evidence { read: Time::now().seconds(), manifest: text(manifest.bytes), register: text(register.bytes), states })
}

fn print(report: &Report) -> anyhow::Result<()> {
    let Report { fleet, group, number, rollout, register, converged, nodes } = report;
    output::line(&format!("{fleet}, group {group}: manifest {number}, rollout {rollout}, register {register}"))?;
    for finding in nodes {
        let verdict = format!("{:?}", finding.verdict).to_lowercase();
        output::line(&format!("{:24} {verdict:10} {}", finding.node, finding.why))?;
    }
    output::line(if *converged { "converged" } else { "not converged" })
}

pub(crate) async fn status(Status { source, group }: &Status) -> anyhow::Result<ExitCode> {
    let root = source.root().await?;
    output::line(&format!("{}: root file {}, valid until {}", root.fleet, root.version, root.expires))?;
    match source.current(&root, group).await? {
        None => output::line(&format!("{group}: nothing is published"))?,
        Some((_, Err(cause))) => output::line(&format!("{group}: {cause}"))?,
        Some((_, Ok(checked))) => {
            let manifest = checked.manifest();
            let (number, expires, generation) = (manifest.number, manifest.expires, manifest.generation());
            output::line(&format!("{group}: manifest {number}, valid until {expires}, generation {generation}"))?;
            for stage in &manifest.stages {
                output::line(&format!("  stage {stage}"))?;
            }
            output::line(&format!("  rollout {}", manifest.progress))?;
        }
    }
    let (register, _) = source.register(&root).await?;
    output::line(&format!("register {}: {} nodes", register.number, register.members.len()))?;
    for (node, bytes) in source.store()?.all(Kind::Request).await? {
        let request = Request::parse(&bytes).ok();
        let Some(request) = request.filter(|request| request.member.node == node && request.fleet == root.fleet) else {
            continue;
        };
        if register.member(&node) != Some(&request.member) {
            output::line(&format!(
                "  {node} asks to belong to {}, with key {}",
                request.member.group,
                request.member.key.digits()
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
