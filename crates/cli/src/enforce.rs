//! `tollgate enforce`: starts enforcement.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use tollgate_enforcer::enforcer::{Enforcer, Options};

use crate::output;

/// What to enforce, and how.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A policy built by `tollgate policy build`
    policy: PathBuf,
    /// Grant what is denied, and audit it
    #[arg(long)]
    permissive: bool,
    /// Ask nothing of a domain; of none named, nothing is asked of the machine's and the kernel's
    #[arg(long, value_name = "TYPE")]
    unconfined: Vec<String>,
    /// Start enforcement and end: no daemon stays, denials are not written down
    #[arg(long)]
    once: bool,
    /// Give a context a SID, so that a process can enter it when no daemon runs
    #[arg(long, value_name = "CONTEXT")]
    intern: Vec<String>,
    /// Attach to these hooks only, to measure what each costs; the policy is not enforced then
    #[arg(long, value_name = "HOOK", hide = true)]
    hook: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let built = tollgate_policy::built::Built::open(&arguments.policy)?;
    let options = Options {
        permissive: arguments.permissive,
        unconfined: arguments.unconfined.clone(),
        hooks: arguments.hook.clone(),
        audit_limit: 1000,
        ..Options::default()
    };
    let mut enforcer = Enforcer::start(options, built)?;
    for context in &arguments.intern {
        enforcer.intern(context)?;
    }
    let mode = if enforcer.state().enforcing() { "enforcing" } else { "permissive" };
    let (generation, hooks) = (enforcer.generation().number, enforcer.hooks()?.len());
    output::line(&format!("{mode}, generation {generation}, {hooks} hooks"))?;
    Ok(ExitCode::SUCCESS)
}
