//! `tollgate vm`: lists and builds kernels, and runs a command under one of them.

pub(crate) mod build;
mod contents;
mod hardware;
mod image;
mod run;
mod save;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use tollgate_host::Cache;
use tollgate_vm::{
    agent,
    kernels::{self, Listed},
};

use crate::{INSTRUMENTS, interrupt, output};

pub(crate) use contents::{add_file, add_program};
pub(crate) use hardware::AcceleratorName;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the kernels, the newest of each series, and which of them are in the cache
    Kernels(Kernels),
    /// Build kernels from Debian's source, in the cache: the same kernel with LSM hooks and without
    Build(build::Build),
    /// Run a command under a kernel and a list of security modules
    Run(Box<run::Run>),
    /// Boot a machine and save it, for `vm run --saved` to continue as often as wanted without a boot
    Save(save::Save),
    /// Make a disk image of a Debian system with these packages, in the cache, for `vm run --disk`, and print its path. Needs root
    Image(image::Image),
    /// Follow an order that the host has left in a file; runs as a service of the guest's system
    #[command(hide = true)]
    Agent {
        /// The file with the order, as JSON
        order: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Kernels {
    /// Read the package lists again
    #[arg(long)]
    update: bool,
    /// Fetch the newest kernel of this series even if the cache has an older one
    #[arg(long, value_name = "SERIES")]
    fetch: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Kernels(arguments) => kernels(&arguments),
        Command::Build(arguments) => build::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Save(arguments) => save::run(&arguments),
        Command::Image(arguments) => image::run(arguments),
        Command::Agent { order } => agent::service(&order, INSTRUMENTS),
    }
}

fn kernels(arguments: &Kernels) -> anyhow::Result<ExitCode> {
    let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
    for series in &arguments.fetch {
        let kernel = kernels::refresh(&cache, series)?;
        eprintln!("{series}: {}", kernel.release);
    }
    let listed = kernels::list(&cache, arguments.update)?;
    if arguments.json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (built, fetched): (Vec<Listed>, Vec<Listed>) = listed.into_iter().partition(|kernel| kernel.built);
    let width = fetched.iter().map(|k| k.release.len()).max().unwrap_or(7);
    output::line(&format!("{:<7} {:<width$} in the cache", "series", "newest"))?;
    for kernel in fetched {
        let cached = kernel.cached.as_deref().unwrap_or("-");
        output::line(&format!("{:<7} {:<width$} {cached}", kernel.series, kernel.release))?;
    }
    let width = built.iter().map(|k| k.series.len()).max().unwrap_or(0);
    output::line("\nbuilt here from Debian's source (tollgate vm build):")?;
    for kernel in built {
        let state = kernel.cached.as_deref().unwrap_or("to be built");
        output::line(&format!("{:<width$} {state}: {}", kernel.series, kernel.release))?;
    }
    Ok(ExitCode::SUCCESS)
}
