//! `tollgate vm image`: a Debian system on a disk image.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;
use tollgate_host::Cache;
use tollgate_vm::system::{Recipe, System};

use crate::{interrupt, output};

#[derive(Debug, Args)]
pub(crate) struct Image {
    /// Debian packages to install, beside an init and what an administrator needs
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// The release
    #[arg(long, default_value = "bookworm", value_name = "NAME")]
    release: String,
    /// Run this shell script in the system when its packages are installed
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// The image's size in MiB; empty space takes no room on the disk
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(512..), value_name = "MIB")]
    size: u32,
    /// Print a line of each installed package, its name and version, instead of the image's path
    #[arg(long)]
    list: bool,
}

pub(super) fn run(arguments: Image) -> anyhow::Result<ExitCode> {
    let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
    let read = |path: &PathBuf| fs::read_to_string(path).with_context(|| format!("--script {}", path.display()));
    let script = arguments.script.as_ref().map(read).transpose()?.unwrap_or_default();
    let Image { packages, release, size, list, .. } = arguments;
    let system = System::find(&cache, &Recipe { release, packages, script, labels: None, size })?;
    if list {
        let path = system.packages();
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        output::line(text.trim_end())?;
    } else {
        output::line(&system.image().display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
