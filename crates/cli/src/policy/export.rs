//! `tollgate policy export`: what other programs read, taken out of a built policy.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// A built policy
    policy: PathBuf,
    /// Write the binary policy, which SELinux's `load_policy` and setools read
    #[arg(long, value_name = "FILE", required_unless_present = "file_contexts")]
    image: Option<PathBuf>,
    /// Write the file contexts, which libselinux's `restorecon` and `matchpathcon` read
    #[arg(long, value_name = "FILE")]
    file_contexts: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Export) -> anyhow::Result<ExitCode> {
    let built = super::open(&arguments.policy)?;
    let contents =
        [(&arguments.image, built.image.as_slice()), (&arguments.file_contexts, built.file_contexts.as_bytes())];
    for (path, content) in contents {
        if let Some(path) = path {
            fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
