//! `tollgate mode`: enforcing or permissive.

use std::process::ExitCode;

use clap::Args;
use tollgate_enforcer::{client::Client, protocol::Mode};

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to do with what policy denies: deny it, or grant and audit it; without, the mode is printed
    #[arg(value_parser = ["enforcing", "permissive"])]
    mode: Option<String>,
    /// Only for this domain, until the next policy is put in force
    #[arg(long, value_name = "TYPE", requires = "mode")]
    domain: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut client = Client::connect()?;
    match arguments.mode.as_deref().map(str::parse::<Mode>) {
        Some(mode) => client.set_mode(mode.map_err(anyhow::Error::msg)?, arguments.domain.as_deref())?,
        None => output::line(&client.mode()?.to_string())?,
    }
    Ok(ExitCode::SUCCESS)
}
