//! `tollgate policy rebuild`: the policy of this machine, of its sources as they are.

use std::process::ExitCode;

use clap::Args;

use crate::store;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also in the place of a policy that was built from other sources
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
