//! `tollgate enforce`: starts enforcement.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use tollgate_enforcer::enforcer::{Enforcer, Options};

/// What to enforce, and how.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A policy built by `tollgate policy build`
    policy: PathBuf,
    /// Grant what is denied, and audit it
    #[arg(long)]
    permissive: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let built = tollgate_policy::built::Built::open(&arguments.policy)?;
    let options = Options { permissive: arguments.permissive, audit_limit: 1000, ..Options::default() };
    Enforcer::start(options, built)?;
    Ok(ExitCode::SUCCESS)
}
