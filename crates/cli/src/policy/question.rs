//! What `query`, `transition`, `member` and `change` are asked.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Question {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    pub(super) policy: PathBuf,
    /// The context of the process that acts
    #[arg(value_name = "SCON", required_unless_present = "batch")]
    source: Option<String>,
    /// The context of what is acted on: of an object, of the directory of a new one, of a program
    #[arg(value_name = "TCON", required_unless_present = "batch")]
    target: Option<String>,
    /// The class of the object; for a labelling decision at exec, `process`
    #[arg(required_unless_present = "batch")]
    class: Option<String>,
    /// Answer the lines `SCON<TAB>TCON<TAB>CLASS` of a file (`-`: standard input), for `transition` with `<TAB>NAME` if
    /// there is one, one a line: the allowed permissions, sorted, with commas between, `-` for none; or the context; or
    /// `error: ...`, and the exit status is then 2
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "json"])]
    pub(super) batch: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Question {
    /// Source, target and class.
    pub(super) fn parts(&self) -> anyhow::Result<[&str; 3]> {
        match (&self.source, &self.target, &self.class) {
            (Some(source), Some(target), Some(class)) => Ok([source, target, class]),
            _ => bail!("give SCON, TCON and CLASS, or --batch FILE"),
        }
    }
}
