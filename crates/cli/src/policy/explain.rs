//! `tollgate policy explain`: why a decision is as it is, and what would change it.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use tollgate_policy::explain::{self, Question, Verdict};

use crate::{output, policies};

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// The context of the process that acts; it need not be valid
    #[arg(value_name = "SCON")]
    source: String,
    /// The context of the object; it need not be valid
    #[arg(value_name = "TCON")]
    target: String,
    /// The class of the object
    class: String,
    /// The permission to explain
    #[arg(value_name = "PERM")]
    permission: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Explain) -> anyhow::Result<ExitCode> {
    let built = policies::open(&arguments.policy)?;
    let server = built.server()?;
    let names = server.names();
    let class = server.class(&arguments.class)?;
    let question = Question {
        source: names.context(&built.policy, &arguments.source)?,
        target: names.context(&built.policy, &arguments.target)?,
        class,
        permission: names.permission(class, &arguments.permission)?,
    };
    let explanation = explain::explain(&built.policy, &built.lines, &question);
    if arguments.json {
        output::json(&explanation)?
    } else {
        output::write(&explanation.to_string())?
    }
    Ok(if explanation.verdict == Verdict::Allowed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
