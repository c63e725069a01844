//! `tollgate policy rebuild`: builds the policy of this machine from its present sources.

use std::process::ExitCode;

use clap::Args;

use crate::store;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also replace a policy that was built from other sources
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    options: store::Options,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { force, options } = arguments;
    if !force {
        return store::change(options, |_, _| Ok(Vec::new()));
    }
    let opened = options.open()?;
    let kept = opened.0.kept().unwrap_or_else(|cause| {
        eprintln!("tollgate: {cause}");
        None
    });
    store::rebuild(options, opened, kept, options.running()?, |_, _| Ok(Vec::new()))
}
