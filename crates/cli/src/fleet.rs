//! `tollgate fleet`: the program `tollgate-fleet`, which lies beside this one. The network is not for a privileged program.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    process::{self, ExitCode},
};

use anyhow::{Context, anyhow};
use clap::Args;

const PROGRAM: &str = "tollgate-fleet";

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// What `tollgate-fleet` is called with; `--help` lists it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(Arguments { arguments }: &Arguments) -> anyhow::Result<ExitCode> {
    let beside = env::current_exe().ok().map(|own| own.with_file_name(PROGRAM)).filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PROGRAM.into());
    // It returns only if it fails.
    let cause = process::Command::new(&program).args(arguments).exec();
    let remedy = match cause.kind() {
        io::ErrorKind::NotFound => "; install it beside this program, or into a folder of PATH",
        _ => "",
    };
    Err(anyhow!(cause)).with_context(|| format!("cannot run {}{remedy}", program.display()))
}
