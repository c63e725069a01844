//! `tollgate hooks count`: the hooks that a command or a workload asks, counted where they are asked; here or in a guest.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_bench::{
    selection::{Selection, expand},
    tracing::{Options, Report, count_command, count_workloads},
};
use tollgate_host::{Cache, process::Limits};
use tollgate_study::programs;
use tollgate_vm::{
    Accelerator, Clock, Image, Machine,
    guest::{self, GuestCommand, Stream},
    kernels,
};

use super::counted;
use crate::{interrupt, output, vm};

/// What one operation is repeated where nothing is said.
const OPERATIONS: u32 = 4;
/// The guest's memory in MiB: buffers and a command.
const MEMORY: u32 = 1024;
/// Where a study's guests work: a path has as many components there.
const WORK: &str = "/work";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Count in a guest under this kernel: series (6.1), release, or path of a bzImage
    #[arg(long)]
    kernel: Option<String>,
    /// The guest's security modules, as the kernel's lsm= takes them
    #[arg(long, value_name = "LIST", requires = "kernel")]
    lsm: Option<String>,
    /// Put a file of this machine into the guest, with the libraries it needs if it is a program
    #[arg(long, value_name = "HOST[:GUEST]", requires = "kernel")]
    file: Vec<String>,
    /// Give the guest up after this many seconds
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,
    /// Count an operation of these workloads, as `tollgate bench list` names them, or of a family (@files)
    #[arg(
        long,
        value_name = "WORKLOAD",
        value_delimiter = ',',
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    workload: Vec<String>,
    /// Make the workloads' files below this directory [default: a temporary one; in a guest /work, as a study does]
    #[arg(long, value_name = "DIR", requires = "workload")]
    work: Option<PathBuf>,
    /// Run the command so often (once), or so many operations (4), and give the mean
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Say also which functions asked
    #[arg(long)]
    callers: bool,
    /// The tracer's buffer, in KB a processor [default: 8192 here, 65536 in a guest]
    #[arg(long, value_name = "KB", value_parser = clap::value_parser!(u32).range(64..=4_000_000))]
    buffer: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command; what it prints goes to standard error
    #[arg(last = true)]
    command: Vec<String>,
}

impl Arguments {
    /// The buffer's size. In a guest on the instruction clock the reader has the only processor when the command lets it.
    fn kilobytes(&self) -> u32 {
        self.buffer.unwrap_or(if self.kernel.is_some() { 65536 } else { 8192 })
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let selections = selections(arguments)?;
    let reports = match &arguments.kernel {
        Some(kernel) => in_guest(arguments, kernel, &selections)?,
        None => here(arguments, &selections)?,
    };
    match (&reports[..], arguments.json) {
        // A command has one report, workloads a list.
        ([report], true) if report.command.is_some() => output::json(report)?,
        (reports, true) => output::json(&reports)?,
        (reports, false) => output::write(&reports.iter().map(counted::text).collect::<Vec<_>>().join("\n"))?,
    }
    let lost: u64 = reports.iter().map(|report| report.lost).sum();
    if lost > 0 {
        bail!(
            "the kernel could not keep {lost} records, and the counts are too small: give a --buffer larger than {} KB",
            arguments.kilobytes()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn selections(arguments: &Arguments) -> anyhow::Result<Vec<Selection>> {
    let mut selections = Vec::new();
    for text in &arguments.workload {
        selections.extend(expand(if text == "all" { "@all" } else { text })?);
    }
    Ok(selections)
}

fn here(arguments: &Arguments, selections: &[Selection]) -> anyhow::Result<Vec<Report>> {
    let stop = interrupt::flag()?;
    let kilobytes = arguments.kilobytes();
    let reports = if arguments.command.is_empty() {
        let options = Options { runs: arguments.runs.unwrap_or(OPERATIONS), kilobytes };
        count_workloads(selections, arguments.work.as_deref(), options, stop)?
    } else {
        vec![count_command(&arguments.command, Options { runs: arguments.runs.unwrap_or(1), kilobytes }, stop)?]
    };
    let leave_out = |report: Report| if arguments.callers { report } else { report.without_callers() };
    Ok(reports.into_iter().map(leave_out).collect())
}

/// Has the program in a guest count, on the instruction clock.
fn in_guest(arguments: &Arguments, kernel: &str, selections: &[Selection]) -> anyhow::Result<Vec<Report>> {
    let interrupted = interrupt::flag()?;
    let cache = Cache::of_user()?.interruptible(interrupted);
    let kernel = kernels::find(&cache, kernel)?;
    guest::emulator_version()?;
    let machine = Machine {
        kernel: kernel.image.clone(),
        clock: Clock::Instructions,
        accelerator: Accelerator::Emulation,
        lsm: arguments.lsm.clone(),
        append: Vec::new(),
        memory_mib: MEMORY,
        cpus: 1,
        disk: None,
        volumes: Vec::new(),
    };
    let mut image = Image::with_agent()?;
    let workloads: Vec<String> = selections.iter().map(ToString::to_string).collect();
    programs::provide(&cache, &workloads, &mut image, &mut |_| ())?;
    let argv = words(arguments, &mut image)?;
    for file in &arguments.file {
        vm::add_file(&mut image, file, false)?;
    }
    let command = GuestCommand { argv, env: Vec::new(), settle: true, system: None };
    let limits = Limits { timeout: Duration::from_secs(arguments.timeout), interrupted };
    let (mut told, mut said) = (Vec::new(), Vec::new());
    let outcome = guest::run(&machine, &image, &command, limits, &mut |stream, bytes| match stream {
        Stream::Stdout => told.extend_from_slice(bytes),
        Stream::Stderr => said.extend_from_slice(bytes),
    })
    .map_err(tollgate_vm::Error::from)?;
    let said = String::from_utf8_lossy(&said);
    // Lost records are ours to tell, with the report.
    let reports: Option<Vec<Report>> = serde_json::from_slice(&told).ok().or_else(|| {
        let report: Report = serde_json::from_slice(&told).ok()?;
        Some(vec![report])
    });
    let Some(reports) = reports else {
        let error = said.lines().filter_map(|line| line.strip_prefix("tollgate: ")).next_back();
        bail!("in the guest, kernel {}: {}", outcome.release, error.unwrap_or(&said));
    };
    if !arguments.command.is_empty() {
        eprint!(
            "{}",
            said.lines().filter(|line| !line.starts_with("tollgate: ")).fold(String::new(), |t, l| t + l + "\n")
        );
    }
    Ok(reports)
}

/// This command again, as the guest is given it.
fn words(arguments: &Arguments, image: &mut Image) -> anyhow::Result<Vec<String>> {
    let mut words: Vec<String> = ["tollgate", "hooks", "count", "--json", "--callers"].map(str::to_owned).into();
    words.push(format!("--buffer={}", arguments.kilobytes()));
    words.extend(arguments.runs.map(|runs| format!("--runs={runs}")));
    if !arguments.callers {
        words.retain(|word| word != "--callers");
    }
    if arguments.command.is_empty() {
        words.push(format!("--workload={}", arguments.workload.join(",")));
        let work = arguments.work.as_deref().unwrap_or(Path::new(WORK));
        words.push(format!("--work={}", work.display()));
        return Ok(words);
    }
    let mut command = arguments.command.clone();
    let first = command.first_mut().context("no command was given")?;
    *first = vm::add_program(image, first)?;
    words.push("--".to_owned());
    words.extend(command);
    Ok(words)
}
