//! `tollgate hooks count`: counts the hooks that a command or a workload calls, on this machine or in a guest.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_bench::{
    selection::{Selection, expand},
    tracing::{Options, Report, count_command, count_workloads},
    workload::Scope,
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

/// How often an operation is repeated by default.
const OPERATIONS: u32 = 4;
/// The guest's memory in MiB: the tracer's buffers and a command fit.
const MEMORY: u32 = 1024;
/// How often the number of counted workloads is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// The beginning of a progress line, also of those that the program prints in a guest.
const COUNTED: &str = "tollgate: counted ";
/// The directory in which the guests of a study work, so that paths have the same components.
const WORK: &str = "/work";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Count in a guest under this kernel: series (6.1), release, or path of a bzImage
    #[arg(long)]
    kernel: Option<String>,
    /// The guest's security modules, as the kernel's lsm= takes them
    #[arg(long, value_name = "LIST", requires = "kernel")]
    lsm: Option<String>,
    /// Put a file of this machine into the guest, with the libraries that it needs if it is a program
    #[arg(long, value_name = "HOST[:GUEST]", requires = "kernel")]
    file: Vec<String>,
    /// Kill the guest after this many seconds
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
    /// Count workloads that resolve a path at these depths (1 to 10), as a study with these depths measures them; names with
    /// a depth keep theirs
    #[arg(long, value_name = "DEPTHS", value_delimiter = ',', requires = "workload", value_parser = clap::value_parser!(u8).range(1..=10))]
    depths: Vec<u8>,
    /// Make the workloads' files below this directory [default: a temporary one; in a guest /work, as a study does]
    #[arg(long, value_name = "DIR", requires = "workload")]
    work: Option<PathBuf>,
    /// Run the command this often [default: 1], or this many operations [default: 4], and print the mean
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Also print which functions called the hooks
    #[arg(long)]
    callers: bool,
    /// The tracer's buffer, in KB per processor [default: 8192 here, 65536 in a guest]
    #[arg(long, value_name = "KB", value_parser = clap::value_parser!(u32).range(64..=4_000_000))]
    buffer: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Announce each workload; the host of a guest reads this and prints progress by its own clock
    #[arg(long, hide = true)]
    each: bool,
    /// The command; its output goes to standard error
    #[arg(last = true)]
    command: Vec<String>,
}

impl Arguments {
    /// The buffer's size in KB. In a guest on the instruction clock the reader runs only when the command lets it, so the
    /// buffer is larger.
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
        // A command has one report, workloads have a list.
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
        let named = text.split(':').skip(1).any(|suffix| suffix.starts_with('d'));
        for selection in expand(if text == "all" { "@all" } else { text }, &[])? {
            if named || arguments.depths.is_empty() || selection.workload.scope != Scope::Path {
                selections.push(selection);
            } else {
                selections
                    .extend(arguments.depths.iter().map(|depth| Selection { depth: *depth, ..selection.clone() }));
            }
        }
    }
    Ok(selections)
}

/// Prints every few seconds how many workloads are counted, because counting takes minutes.
struct Counting {
    began: Instant,
    said: Instant,
}

impl Counting {
    fn new() -> Self {
        Self { began: Instant::now(), said: Instant::now() }
    }

    /// `counted` is the part of the line after [`COUNTED`].
    fn say(&mut self, counted: &str) {
        if self.said.elapsed() >= PROGRESS_INTERVAL {
            self.said = Instant::now();
            eprintln!("{COUNTED}{counted}, {} s", self.began.elapsed().as_secs());
        }
    }
}

fn here(arguments: &Arguments, selections: &[Selection]) -> anyhow::Result<Vec<Report>> {
    let stop = interrupt::flag()?;
    let kilobytes = arguments.kilobytes();
    let reports = if arguments.command.is_empty() {
        let options = Options { runs: arguments.runs.unwrap_or(OPERATIONS), kilobytes };
        let mut counting = Counting::new();
        let mut progress = |done: usize| {
            let counted = format!("{done} of {} workloads", selections.len());
            if arguments.each { eprintln!("{COUNTED}{counted}") } else { counting.say(&counted) }
        };
        count_workloads(selections, arguments.work.as_deref(), options, stop, &mut progress)?
    } else {
        vec![count_command(&arguments.command, Options { runs: arguments.runs.unwrap_or(1), kilobytes }, stop)?]
    };
    let leave_out = |report: Report| if arguments.callers { report } else { report.without_callers() };
    Ok(reports.into_iter().map(leave_out).collect())
}

/// Runs this program in a guest on the instruction clock, to count there.
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
        wire: None,
    };
    let mut image = Image::with_agent()?;
    let workloads: Vec<String> = selections.iter().map(ToString::to_string).collect();
    programs::provide(&cache, &workloads, &mut image, &mut |_| ())?;
    let argv = words(arguments, &workloads, &mut image)?;
    for file in &arguments.file {
        vm::add_file(&mut image, file, false)?;
    }
    let command = GuestCommand { argv, env: Vec::new(), settle: true, system: None };
    let limits = Limits { timeout: Duration::from_secs(arguments.timeout), interrupted };
    let (mut told, mut said, mut counting) = (Vec::new(), Said::default(), Counting::new());
    let what = match &arguments.command[..] {
        [] => format!("{} workloads", selections.len()),
        [program, ..] => program.clone(),
    };
    eprintln!("tollgate: counting {what} in one boot of {}", kernel.release);
    let outcome = guest::run(&machine, &image, &command, limits, &mut |stream, bytes| match stream {
        Stream::Stdout => told.extend_from_slice(bytes),
        Stream::Stderr => said.push(bytes, &mut |counted| counting.say(counted)),
    })
    .map_err(tollgate_vm::Error::from)?;
    let said = said.text();
    // Lost records are reported here, with the report.
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

/// Collects the standard error of the program in the guest, without its progress.
#[derive(Default)]
struct Said {
    lines: String,
    pending: Vec<u8>,
}

impl Said {
    fn push(&mut self, bytes: &[u8], progress: &mut dyn FnMut(&str)) {
        self.pending.extend_from_slice(bytes);
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            match line.strip_prefix(COUNTED) {
                Some(counted) => progress(counted.trim_end()),
                None => self.lines.push_str(&line),
            }
        }
    }

    fn text(self) -> String {
        self.lines + &String::from_utf8_lossy(&self.pending)
    }
}

/// The arguments of this command for the program in the guest.
fn words(arguments: &Arguments, selections: &[String], image: &mut Image) -> anyhow::Result<Vec<String>> {
    let mut words: Vec<String> = ["tollgate", "hooks", "count", "--json", "--callers"].map(str::to_owned).into();
    words.push(format!("--buffer={}", arguments.kilobytes()));
    words.extend(arguments.runs.map(|runs| format!("--runs={runs}")));
    if !arguments.callers {
        words.retain(|word| word != "--callers");
    }
    if arguments.command.is_empty() {
        words.push("--each".to_owned());
        words.push(format!("--workload={}", selections.join(",")));
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn names(words: &[&str]) -> Vec<String> {
        let line = Line::parse_from(["count"].iter().chain(words));
        selections(&line.arguments).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn counts_paths_at_each_depth_as_a_study_measures_them() {
        let found = names(&["--workload=stat,stat:ext4,creat:d5,fstat,null", "--depths=1,3"]);
        assert_eq!(found, ["stat:d1", "stat", "stat:ext4:d1", "stat:ext4", "creat:d5", "fstat", "null"]);
        assert_eq!(names(&["--workload=stat"]), ["stat"]);
    }

    #[test]
    fn tells_progress_of_a_guest_from_what_else_it_says() {
        let (mut said, mut counted) = (Said::default(), Vec::new());
        for piece in ["tollgate: coun", "ted 3 of 9 workloads\na command's\ntoll", "gate: no such"] {
            said.push(piece.as_bytes(), &mut |line| counted.push(line.to_owned()));
        }
        assert_eq!(
            (counted, said.text().as_str()),
            (vec!["3 of 9 workloads".to_owned()], "a command's\ntollgate: no such")
        );
    }
}
