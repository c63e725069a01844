//! `tollgate reload`: puts another policy in force, or the same one after a change.

use std::{
    fs::{self, File},
    os::fd::AsFd,
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use tollgate_client::{Client, sanity};

use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// Keep the policy only if it decides as each line of this file says:
    /// `SCON<TAB>TCON<TAB>CLASS<TAB>PERMISSION[,PERMISSION]...`, with `-` before a permission that must be denied
    #[arg(long, value_name = "FILE")]
    sanity: Option<PathBuf>,
    /// Put a policy in force even if this kernel cannot enforce all of it
    #[arg(long)]
    accept_missing: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect()?;
    let built = policies::open_to_enforce(&arguments.policy)?;
    let questions = match &arguments.sanity {
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            tollgate_enforcer::sanity::ask(&built, &sanity::parse(&text)?)?;
            Some(File::open(path).with_context(|| format!("cannot read {}", path.display()))?)
        }
        None => None,
    };
    // The daemon checks the questions again once the policy is in force, and takes the policy back if one fails.
    let policy = policies::file_of(&built, &arguments.policy)?;
    let generation = client.reload(policy.as_fd(), arguments.accept_missing, questions.as_ref().map(AsFd::as_fd))?;
    let status = client.status()?;
    output::line(&format!("generation {generation} is in force: {}, {}", status.policy, status.mode))?;
    if let Some(revoked) = super::revoked(&status.revoked) {
        output::line(&format!("taken away: {revoked}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
