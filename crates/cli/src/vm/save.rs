//! `tollgate vm save`: boots a machine and saves it, so that guests can go on from there.

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Args;
use tollgate_host::{Cache, process::Limits};
use tollgate_vm::{Clock, Error, guest::GuestCommand, kernels, saved};

use super::{contents::Contents, hardware::Hardware, run::pass_on};
use crate::interrupt;

#[derive(Debug, Args)]
pub(crate) struct Save {
    /// The folder to save the machine in. It must not exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    contents: Contents,
    /// Give up after this many seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// A command to run in the machine first; unless it succeeds, nothing is saved
    #[arg(last = true)]
    command: Vec<String>,
}

pub(super) fn run(arguments: &Save) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag()?;
    if arguments.output.exists() {
        // Checked before a kernel is fetched.
        return Err(Error::SavedBefore { folder: arguments.output.clone() }.into());
    }
    let cache = Cache::of_user()?.interruptible(interrupted);
    let kernel = kernels::find(&cache, &arguments.hardware.kernel)?;
    let (machine, reason) = arguments.hardware.machine(&cache, &kernel, Clock::Wall)?;
    let (image, argv) = arguments.contents.image(&kernel, &saved::DRIVERS, &arguments.command, false)?;
    let command = GuestCommand { argv, ..GuestCommand::default() };
    let limits = Limits { timeout: Duration::from_secs(arguments.timeout), interrupted };
    let started = Instant::now();
    saved::save((&machine, &kernel), &image, &command, limits, &arguments.output, &mut pass_on).map_err(Error::from)?;
    eprintln!(
        "tollgate: saved in {}: kernel {}, {} ({reason}), {:.1} s in all",
        arguments.output.display(),
        kernel.release,
        machine.accelerator.name(),
        started.elapsed().as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
}
