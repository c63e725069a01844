//! The arguments of `query`, `transition`, `member` and `change`.

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
    /// The context of the object: an existing one, the directory of a new one, or a program
    #[arg(value_name = "TCON", required_unless_present = "batch")]
    target: Option<String>,
    /// The class of the object; `process` for a labelling decision at exec
    #[arg(required_unless_present = "batch")]
    class: Option<String>,
    /// Answer the lines `SCON<TAB>TCON<TAB>CLASS` of a file (`-`: standard input), one per line; for `transition`,
    /// `<TAB>NAME` may follow. An answer is the allowed permissions, sorted and joined by commas (`-`: none), or the context,
    /// or `error: ...`, which makes the exit status 2
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
