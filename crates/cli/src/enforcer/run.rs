//! `tollgate run`: a command in another context.

use std::{
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use anyhow::anyhow;
use clap::Args;
use tollgate_client::{self, Client, protocol::Attribute};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The command's context
    #[arg(long, value_name = "CONTEXT")]
    context: String,
    /// Grant what is denied to the command and to processes that it starts, and audit it
    #[arg(long)]
    permissive: bool,
    /// The command to run; user and group stay as they are
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Some((program, words)) = arguments.command.split_first() else { return Ok(ExitCode::from(2)) };
    // The connection is closed before the command starts, which would need a permission to use it.
    Client::connect()?.set_context(Attribute::Exec, &arguments.context)?;
    if arguments.permissive {
        tollgate_client::be_permissive()?;
    }
    // `exec` returns only if it fails.
    let cause = Command::new(program).args(words).exec();
    let denied =
        if cause.raw_os_error() == Some(13) { " (`tollgate audit` has the denial, if it is the policy's)" } else { "" };
    Err(anyhow!("cannot run {program} as {}: {cause}{denied}", arguments.context))
}
