//! `tollgate policy check`: doubtful parts of a policy.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use tollgate_policy::check::{self, Kernel, Severity};

use crate::{difference::listed, output, policies};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// Also list what the kernel of this release, such as 6.1 or 6.12.9-amd64, cannot enforce
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Print all names of long lists
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let kernel = arguments.kernel.as_deref().map(Kernel::find).transpose()?;
    let built = policies::open(&arguments.policy)?;
    let findings = check::check(&built.policy, built.server()?.tables(), built.levels.len(), kernel.as_ref());
    if arguments.json {
        output::json(&findings)?;
    } else if findings.is_empty() {
        output::line("Nothing found.")?;
    } else {
        for finding in &findings {
            let severity = match finding.severity {
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let names: Vec<&str> = finding.names.iter().map(String::as_str).collect();
            output::line(&format!("{severity}: {} ({})", finding.text, names.len()))?;
            output::line(&format!("  {}\n  {}", listed(&names, arguments.all), finding.remedy))?;
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
