//! `tollgate policy remove`: removes modules from the policy of this machine.

use std::process::ExitCode;

use clap::Args;

use crate::store;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The names of the modules
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    options: store::Options,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    store::change(&arguments.options, |contents, _| {
        arguments.names.iter().try_for_each(|name| contents.remove(name))?;
        Ok(arguments.names.iter().map(|name| format!("module {name}: removed")).collect())
    })
}
