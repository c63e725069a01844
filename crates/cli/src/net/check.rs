//! `tollgate net check`: whether a file of labelled networks could be put in force.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use tollgate_enforcer::datapath::{Networks, Source, config::ConfigError, table};

use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file of labelled networks
    file: PathBuf,
    /// The policy whose contexts and levels it names: a built policy, or sources, which are built first [default: the policy
    /// in force]
    #[arg(long)]
    policy: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (built, name) = match &arguments.policy {
        Some(path) => (policies::open(path)?, path.display().to_string()),
        None => policies::running()?,
    };
    let networks = Networks::read(&Source::named(arguments.file.clone()));
    let mut server = built.server()?;
    match networks.and_then(|networks| table::check(&networks, &built.policy, &mut server).map(|()| networks)) {
        Ok(networks) => {
            let (zones, dois) = (networks.config.zones.len(), networks.config.dois.len());
            let counted =
                |count, what: &str| if count == 1 { format!("one {what}") } else { format!("{count} {what}s") };
            let counts = format!("{} and {}", counted(zones, "zone"), counted(dois, "domain"));
            output::line(&format!("{} fits {name}: {counts}", arguments.file.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(cause @ ConfigError::Unreadable { .. }) => Err(cause.into()),
        Err(cause) => {
            output::line(&cause.to_string())?;
            Ok(ExitCode::from(1))
        }
    }
}
