//! `tollgate policy stats`: figures of a policy and of its tables.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use tollgate_policy::stats::{self, Figures};

use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let built = policies::open(&arguments.policy)?;
    let stats = stats::stats(&built, built.server()?.tables());
    if arguments.json {
        output::json(&stats)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mls = if stats.mls { "with" } else { "without" };
    output::line(&format!("Version {}, {mls} MLS; handle_unknown {}", stats.version, stats.handle_unknown))?;
    output::line(&format!("Policy capabilities: {}", stats.capabilities.join(", ")))?;
    print("Policy", &stats.policy)?;
    print("Tables", &stats.tables)?;
    print("Bytes of the built file", &stats.sections)?;
    Ok(ExitCode::SUCCESS)
}

fn print(title: &str, figures: &Figures) -> anyhow::Result<()> {
    output::line(&format!("\n{title}"))?;
    for (name, figure) in figures {
        output::line(&format!("  {name:<40} {figure:>10}"))?;
    }
    Ok(())
}
