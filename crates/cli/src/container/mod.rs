//! `tollgate container`: contexts of containers.

mod hook;
mod runtime;

use std::process::ExitCode;

use clap::Subcommand;
use tollgate_client::{Client, containers::Container};

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a container that is about to start its context; for container runtimes, as the OCI hooks createRuntime and poststop
    Hook(hook::Arguments),
    /// Run an OCI runtime, with the labels in config.json as what the container gets
    Runtime(runtime::Arguments),
    /// List the containers that have a context
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Hook(arguments) => hook::run(arguments),
        Command::Runtime(arguments) => runtime::run(arguments),
        Command::List { json } => list(json),
    }
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let containers = Client::connect()?.containers()?;
    if json {
        output::json(&containers)?;
    } else {
        let line =
            |Container { cgroup, context, files }: &Container| format!("{} {context} {files}\n", cgroup.display());
        output::write(&containers.iter().map(line).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}
