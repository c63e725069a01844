//! `tollgate policy export`: the parts of a built policy that other programs read.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;

use crate::policies;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("parts").required(true).multiple(true))]
pub(crate) struct Export {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// Write the binary policy, which SELinux's `load_policy` and setools read
    #[arg(long, value_name = "FILE", group = "parts")]
    image: Option<PathBuf>,
    /// Write the file contexts, which libselinux's `restorecon` and `matchpathcon` read
    #[arg(long, value_name = "FILE", group = "parts")]
    file_contexts: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Export) -> anyhow::Result<ExitCode> {
    let built = policies::open(&arguments.policy)?;
    if arguments.file_contexts.is_some() && built.file_contexts.is_empty() {
        bail!(
            "{} has no file contexts: they come from `filecon` statements, module packages and \
             `policy build --file-contexts FILE`",
            arguments.policy.display()
        );
    }
    let original = fs::canonicalize(&arguments.policy).ok();
    let written = [&arguments.image, &arguments.file_contexts].into_iter().flatten();
    if written.into_iter().any(|path| original.is_some() && fs::canonicalize(path).ok() == original) {
        bail!("{} would be overwritten by a part of itself: name another file", arguments.policy.display());
    }
    let contents =
        [(&arguments.image, built.image.as_slice()), (&arguments.file_contexts, built.file_contexts.as_bytes())];
    for (path, content) in contents {
        if let Some(path) = path {
            fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
