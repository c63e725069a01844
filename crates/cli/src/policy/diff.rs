//! `tollgate policy diff`: what a change grants and takes away.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{difference, output, policies};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The policy before: a built one; or CIL, a module package or a binary policy, which is built first; with --running, the
    /// policy after
    before: PathBuf,
    /// The policy after, likewise
    #[arg(required_unless_present = "running", conflicts_with = "running")]
    after: Option<PathBuf>,
    /// Compare the policy in force with the given one
    #[arg(long)]
    running: bool,
    /// Print all names of long lists
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (before, after) = match &arguments.after {
        Some(after) => (policies::open(&arguments.before)?, policies::open(after)?),
        None => (policies::running()?.0, policies::open(&arguments.before)?),
    };
    let found = difference::between(&before, &after)?;
    if arguments.json {
        output::json(&found)?;
    } else {
        output::write(&difference::text(&found, arguments.all))?;
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
