//! `tollgate vm`: lists and builds kernels, and runs a command under one of them.

pub(crate) mod build;

use std::{
    io::Write,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use tollgate_host::{Cache, process::Limits};
use tollgate_vm::{
    Accelerator, Clock, Disk, Image, Kernel, Machine, accelerator,
    agent::{self, System},
    guest::{self, GuestCommand, Outcome, Stream},
    image,
    kernels::{self, Listed},
    modules,
};

use crate::{INSTRUMENTS, interrupt, output};

/// Drivers for a disk; built-in ones have no file. systemd needs autofs4.
const DISK_DRIVERS: [&str; 4] = ["virtio_pci", "virtio_blk", "ext4", "autofs4"];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the kernels, the newest of each series, and which of them are in the cache
    Kernels(Kernels),
    /// Build kernels from Debian's source, in the cache: the same kernel with LSM hooks and without
    Build(build::Build),
    /// Run a command under a kernel and a list of security modules
    Run(Box<Run>),
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

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Series (6.1), release, or path of a bzImage
    #[arg(long, default_value = "6.1")]
    kernel: String,
    /// Security modules, as in the kernel's lsm= (lockdown and capability are always present)
    #[arg(long, value_name = "LIST")]
    lsm: Option<String>,
    /// The guest's time: exact instruction counts, or the host's clock
    #[arg(long, value_enum, default_value_t = ClockName::Wall)]
    clock: ClockName,
    /// Wall clock only: use kvm or emulation instead of trying KVM
    #[arg(long, value_enum)]
    accelerator: Option<AcceleratorName>,
    /// Further words for the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// Put a file of this machine into the guest, with the libraries that it needs if it is a program and there is no --disk
    #[arg(long, value_name = "HOST[:GUEST]")]
    file: Vec<String>,
    /// Load a kernel module, and the modules that it needs, before the command starts
    #[arg(long, value_name = "NAME")]
    module: Vec<String>,
    /// The guest's memory in MiB
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..))]
    memory: u32,
    /// Virtual processors (wall clock only)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    cpus: u32,
    /// Boot the system on this disk image (raw, ext4, systemd), and run the command as its service after all others have
    /// started; the command's program is then one of that system
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
    /// Give up after this many seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// The command; a program of this machine is copied into the guest with its libraries, busybox has the rest
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClockName {
    Instructions,
    Wall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcceleratorName {
    Kvm,
    Emulation,
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Kernels(arguments) => kernels(&arguments),
        Command::Build(arguments) => build::run(&arguments),
        Command::Run(arguments) => run_command(&arguments),
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

fn run_command(arguments: &Run) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag()?;
    let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
    let kernel = kernels::find(&cache, &arguments.kernel)?;
    let (accelerator, reason) = choose_accelerator(arguments, &cache, &kernel.image)?;
    // QEMU must be installed; checked before anything is prepared.
    guest::emulator_version()?;
    let machine = Machine {
        kernel: kernel.image.clone(),
        clock: arguments.clock.into(),
        accelerator,
        lsm: arguments.lsm.clone(),
        append: arguments.append.clone(),
        memory_mib: arguments.memory,
        cpus: arguments.cpus,
        volumes: arguments.volume.clone(),
        disk: arguments.disk.clone().map(|image| Disk { image, kept: arguments.keep_disk }),
    };
    let (image, argv) = contents(arguments, &kernel)?;
    let settle = machine.clock == Clock::Instructions;
    let system = arguments.disk.as_ref().map(|_| System { context: arguments.context.clone() });
    let command = GuestCommand { argv, env: Vec::new(), settle, system };
    let limits = Limits { timeout: Duration::from_secs(arguments.timeout), interrupted };
    let started = Instant::now();
    let outcome = guest::run(&machine, &image, &command, limits, &mut pass_on).map_err(tollgate_vm::Error::from)?;
    eprintln!("{}", summary(&outcome, &reason, started.elapsed()));
    // The exit code of a shell: the command's own, or 128 + the signal.
    let status = outcome.code.unwrap_or_else(|| 128 + outcome.signal.unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(255)))
}

/// The guest's files at boot, and the command as it is there.
fn contents(arguments: &Run, kernel: &Kernel) -> anyhow::Result<(Image, Vec<String>)> {
    let mut image = Image::with_agent()?;
    let mut argv = arguments.command.clone();
    if let Some(folder) = kernel.modules.as_ref().filter(|_| arguments.disk.is_some() || !arguments.volume.is_empty()) {
        image.kernel_modules(modules::with_dependencies(folder, &DISK_DRIVERS)?);
    }
    if arguments.disk.is_none() {
        argv[0] = add_program(&mut image, &argv[0])?;
    }
    add_modules(&mut image, kernel, &arguments.module)?;
    for file in &arguments.file {
        add_file(&mut image, file, arguments.disk.is_some())?;
    }
    Ok((image, argv))
}

fn choose_accelerator(
    arguments: &Run,
    cache: &Cache,
    image: &std::path::Path,
) -> anyhow::Result<(Accelerator, String)> {
    Ok(match (arguments.clock, arguments.accelerator) {
        (ClockName::Instructions, Some(AcceleratorName::Kvm)) => {
            bail!("KVM cannot count instructions: use --clock wall, or leave --accelerator out")
        }
        (ClockName::Instructions, _) => (Accelerator::Emulation, "the instruction clock needs it".into()),
        (ClockName::Wall, Some(AcceleratorName::Kvm)) => (Accelerator::Kvm, "as requested".into()),
        (ClockName::Wall, Some(AcceleratorName::Emulation)) => (Accelerator::Emulation, "as requested".into()),
        (ClockName::Wall, None) => {
            let verdict = accelerator::choose(cache, image, interrupt::flag()?)?;
            (verdict.accelerator, verdict.reason)
        }
    })
}

/// Copies the command's output; a reader that has gone away does not stop the guest.
fn pass_on(stream: Stream, bytes: &[u8]) {
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

/// Adds kernel modules with those that they need. A module without a file may be built in, and needs no option then.
fn add_modules(image: &mut Image, kernel: &Kernel, wanted: &[String]) -> anyhow::Result<()> {
    let names: Vec<String> = wanted.iter().map(|name| name.replace('-', "_")).collect();
    let found = match &kernel.modules {
        Some(folder) if !names.is_empty() => {
            modules::with_dependencies(folder, &names.iter().map(String::as_str).collect::<Vec<_>>())?
        }
        _ => Vec::new(),
    };
    if let Some(missing) = names.iter().find(|name| !found.iter().any(|(module, _)| module == *name)) {
        bail!(
            "--module {missing}: kernel {} has no file of such a module; leave it out if it is built in",
            kernel.release
        );
    }
    image.kernel_modules(found);
    Ok(())
}

/// `HOST` or `HOST:GUEST`.
pub(crate) fn add_file(image: &mut Image, argument: &str, on_disk: bool) -> anyhow::Result<()> {
    let (host, to) = argument.split_once(':').unwrap_or((argument, argument));
    let host = PathBuf::from(host).canonicalize().with_context(|| format!("--file {argument}"))?;
    let to = if argument.contains(':') { to.to_string() } else { host.to_string_lossy().into_owned() };
    if on_disk {
        // The system on the disk has libraries of its own.
        image.disk_file(&host, &to)?;
    } else {
        image.program(&host, &to, &[])?;
    }
    Ok(())
}

/// Copies the program named `word` and returns its path in the guest; a program that only busybox has is found by PATH.
pub(crate) fn add_program(image: &mut Image, word: &str) -> anyhow::Result<String> {
    let host = if word.contains('/') { Some(PathBuf::from(word)) } else { image::on_path(word) };
    match host {
        Some(host) if host.exists() => {
            let to = std::path::absolute(&host)?.to_string_lossy().into_owned();
            image.program(&host, &to, &[])?;
            Ok(to)
        }
        _ if image.holds(word) || image.holds(&format!("/bin/{word}")) => Ok(word.to_string()),
        _ => bail!("{word}: no such program on this machine, and busybox has no applet of this name"),
    }
}

impl From<ClockName> for Clock {
    fn from(name: ClockName) -> Self {
        match name {
            ClockName::Instructions => Self::Instructions,
            ClockName::Wall => Self::Wall,
        }
    }
}
