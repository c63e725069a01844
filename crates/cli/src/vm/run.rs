//! `tollgate vm run`: a command in a guest that boots, or that goes on from a saved machine.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::{Args, ValueEnum};
use tollgate_host::{Cache, process::Limits};
use tollgate_vm::{
    Clock, Disk, Error, Machine, Saved, Wire,
    agent::System,
    guest::{self, GuestCommand, Outcome, Stream},
    kernels,
    system::DRIVERS,
    wire,
};

use super::{contents::Contents, hardware::Hardware};
use crate::interrupt;

/// Options that are fixed when a machine boots, so `--saved` excludes them.
const FIXED_AT_BOOT: [&str; 10] =
    ["kernel", "lsm", "clock", "accelerator", "append", "memory", "cpus", "disk", "keep_disk", "volume"];

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Continue the machine that `vm save` has saved in this folder, instead of booting one. Options that are fixed at
    /// boot are refused, and the saved machine does not change
    #[arg(long, value_name = "FOLDER", conflicts_with_all = FIXED_AT_BOOT)]
    saved: Option<PathBuf>,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    contents: Contents,
    /// The guest's time: exact instruction counts, or the host's clock
    #[arg(long, value_enum, default_value_t = ClockName::Wall)]
    clock: ClockName,
    /// Boot the system on this disk image (raw, ext4, systemd), and run the command as its service after all others have
    /// started. The command's program is then one of that system
    #[arg(long, value_name = "IMAGE")]
    disk: Option<PathBuf>,
    /// Keep the guest's changes on the disk
    #[arg(long, requires = "disk")]
    keep_disk: bool,
    /// Attach a raw disk image, which keeps the guest's changes: /dev/vda, or the first after --disk; may be repeated
    #[arg(long, value_name = "IMAGE")]
    volume: Vec<PathBuf>,
    /// The command's SELinux context in that system, if it has SELinux
    #[arg(long, value_name = "CONTEXT", requires = "disk")]
    context: Option<String>,
    /// Give the guest a network card (eth0), joined to that of another guest. Each end is a socket: this guest's, which must not
    /// exist, and the other's, which names the same two the other way round. Wall clock only
    #[arg(long, value_name = "OWN:OTHER")]
    wire: Option<Wire>,
    /// Give up after this many seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// The command. A program of this machine is copied into the guest with its libraries; others are busybox's
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClockName {
    Instructions,
    Wall,
}

pub(super) fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag()?;
    let limits = Limits { timeout: Duration::from_secs(arguments.timeout), interrupted };
    let started = Instant::now();
    let (outcome, reason) = match &arguments.saved {
        Some(folder) => (arguments.go_on(folder, limits)?, "as it was saved".into()),
        None => arguments.boot(limits)?,
    };
    eprintln!("{}", summary(&outcome, &reason, started.elapsed()));
    Ok(ExitCode::from(u8::try_from(outcome.status()).unwrap_or(255)))
}

impl Run {
    fn go_on(&self, folder: &Path, limits: Limits<'_>) -> anyhow::Result<Outcome> {
        let saved = Saved::open(folder)?;
        let (image, argv) = self.contents.image(saved.kernel(), self.card_drivers(), &self.command, false)?;
        let command = GuestCommand { argv, ..GuestCommand::default() };
        Ok(saved.run(&image, &command, self.wire.as_ref(), limits, &mut pass_on).map_err(Error::from)?)
    }

    fn card_drivers(&self) -> &'static [&'static str] {
        if self.wire.is_some() { &wire::DRIVERS } else { &[] }
    }

    /// Boots a machine and runs the command. Returns the outcome with the reason for the accelerator.
    fn boot(&self, limits: Limits<'_>) -> anyhow::Result<(Outcome, String)> {
        if self.wire.is_some() && self.clock == ClockName::Instructions {
            bail!("--wire needs --clock wall: another guest's frames come at no certain instruction");
        }
        let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
        let kernel = kernels::find(&cache, &self.hardware.kernel)?;
        let (machine, reason) = self.hardware.machine(&cache, &kernel, self.clock.into())?;
        let machine = Machine {
            volumes: self.volume.clone(),
            disk: self.disk.clone().map(|image| Disk { image, kept: self.keep_disk }),
            wire: self.wire.clone(),
            ..machine
        };
        let has_disks = machine.disk.is_some() || !machine.volumes.is_empty();
        let disk_drivers = if has_disks { &DRIVERS[..] } else { &[] };
        let drivers = [disk_drivers, self.card_drivers()].concat();
        let (image, argv) = self.contents.image(&kernel, &drivers, &self.command, self.disk.is_some())?;
        let settle = machine.clock == Clock::Instructions;
        let system = self.disk.as_ref().map(|_| System { context: self.context.clone(), bare: false });
        let command = GuestCommand { argv, env: Vec::new(), settle, system };
        let outcome = guest::run(&machine, &image, &command, limits, &mut pass_on).map_err(Error::from)?;
        Ok((outcome, reason))
    }
}

/// Copies the command's output. A reader that has closed its end does not stop the guest.
pub(super) fn pass_on(stream: Stream, bytes: &[u8]) {
    let _ = match stream {
        Stream::Stdout => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
        Stream::Stderr => std::io::stderr().write_all(bytes),
    };
}

fn summary(outcome: &Outcome, reason: &str, wall: Duration) -> String {
    let busy = outcome.elapsed_ns.saturating_sub(outcome.idle_ns.unwrap_or(0));
    let cost = match outcome.clock {
        Clock::Instructions if outcome.idle_ns.is_some() => format!("{busy} instructions (without idle)"),
        Clock::Instructions => format!("{} instructions (idle time included)", outcome.elapsed_ns),
        Clock::Wall => format!("{:.3} s in the guest", outcome.elapsed_ns as f64 / 1e9),
    };
    let mut text = format!(
        "tollgate: kernel {}, {} ({reason}), clock {}: {cost}, {:.1} s in all",
        outcome.release,
        outcome.accelerator.name(),
        outcome.clock.name(),
        wall.as_secs_f64()
    );
    if let Some(settled) = &outcome.settled {
        text.push_str("\ntollgate: ");
        text.push_str(settled);
    }
    text
}

impl From<ClockName> for Clock {
    fn from(name: ClockName) -> Self {
        match name {
            ClockName::Instructions => Self::Instructions,
            ClockName::Wall => Self::Wall,
        }
    }
}
