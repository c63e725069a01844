//! `tollgate bench`: measures workloads and decisions on this machine, and does the job that a guest is given.

mod breakdown;
mod decisions;

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use tollgate_bench::{
    counter::{Counter, Meter},
    job::{Job, Measured},
    measure::measure,
    places::Places,
    selection::{Selection, expand},
    workloads::catalogue,
};
use tollgate_study::{stats::exact::Summary, word::word};

use crate::{interrupt, output};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the workloads
    List(List),
    /// Measure workloads on this machine, as it is
    Run(Run),
    /// Time decisions on this machine's processor: hits in the caches, misses, the evaluator in BPF and in user space
    Decisions(decisions::Decisions),
    /// Break an operation down: where its instructions go, by LSM hook and by what the security module does in it
    Breakdown(breakdown::Arguments),
    /// Do a job: read it as JSON, print the report as JSON; studies run this in their guests
    Job(JobFile),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// NAME[:tmpfs|:ext4|:rootfs][:dN][:loopback|:veth], or a family: @all, @controls, @files, @processes,
    /// @communication, @flask, @mls, @commands, @calls
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// Samples per workload, instead of its own number
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    samples: Option<u32>,
    /// Make the workloads' files below this directory, so that paths have its components in addition to their own [default: a
    /// temporary one]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Unit of samples; instructions need a guest on the instruction clock
    #[arg(long, value_enum, default_value_t = CounterName::Wall)]
    counter: CounterName,
    /// Print JSON, with every sample
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobFile {
    /// The job, as JSON
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CounterName {
    Instructions,
    Wall,
}

impl From<CounterName> for Counter {
    fn from(name: CounterName) -> Counter {
        match name {
            CounterName::Instructions => Counter::Instructions,
            CounterName::Wall => Counter::Wall,
        }
    }
}

/// Runs the command; the exit code is 2 if something could not be measured.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(list) => list_workloads(&list),
        Command::Run(run) => run_workloads(&run),
        Command::Decisions(decisions) => decisions::run(&decisions),
        Command::Breakdown(arguments) => breakdown::run(&arguments),
        Command::Job(job) => do_job(&job),
    }
}

fn list_workloads(list: &List) -> anyhow::Result<ExitCode> {
    let workloads = catalogue();
    if list.json {
        output::json(&workloads)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!("{:<16} {:<14} {:<8} ONE OPERATION", "WORKLOAD", "GROUP", "SCOPE"))?;
    for workload in workloads {
        let (group, scope) = (word(&workload.group), word(&workload.scope));
        output::line(&format!("{:<16} {group:<14} {scope:<8} {}", workload.name, workload.about))?;
    }
    output::write(
        "\nfile workloads take :tmpfs, :ext4 or :rootfs; path workloads also a depth, :d1 to :d10; network workloads\n\
         :loopback or :veth. What is not said is tmpfs, d3, loopback.\n",
    )?;
    Ok(ExitCode::SUCCESS)
}

fn run_workloads(run: &Run) -> anyhow::Result<ExitCode> {
    let stop = interrupt::flag()?;
    let mut selections = Vec::new();
    for text in &run.workloads {
        selections.extend(expand(text, &[])?);
    }
    let mut meter = Meter::open(run.counter.into())?;
    if !run.json {
        output::line(&header(meter.counter().unit()))?;
    }
    let places = Places::open(run.work.as_deref(), &selections)?;
    let measured = match measure_each(run, &selections, &places, &mut meter, stop) {
        // A closed pipe ends the program quietly, as in other filters; not by `exit`, which would leave the places behind.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
        other => other?,
    };
    drop(places);
    if run.json {
        output::json(&measured)?;
    }
    if stop.load(Ordering::Relaxed) {
        anyhow::bail!("interrupted after {} of {} workloads", measured.len(), selections.len());
    }
    let failed = measured.iter().any(|one| one.error.is_some());
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn measure_each(
    run: &Run,
    selections: &[Selection],
    places: &Places,
    meter: &mut Meter,
    stop: &AtomicBool,
) -> io::Result<Vec<Measured>> {
    let mut all = Vec::with_capacity(selections.len());
    for selection in selections {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let measured = measure(selection, places, meter, run.samples);
        if !run.json {
            writeln!(io::stdout().lock(), "{}", row(&measured))?;
        }
        all.push(measured);
    }
    Ok(all)
}

fn header(unit: &str) -> String {
    format!(
        "{:<24} {:>14} {:>14} {:>9} {:>9}   {unit} an operation",
        "WORKLOAD", "MINIMUM", "MEDIAN", "SPREAD", "AT MIN"
    )
}

fn row(measured: &Measured) -> String {
    match (&measured.error, Summary::of(&measured.samples)) {
        (None, Some(summary)) => format!(
            "{:<24} {:>14.1} {:>14.1} {:>8.2}% {:>5}/{}",
            measured.name,
            summary.min,
            summary.median,
            summary.spread,
            summary.at_min,
            measured.samples.len()
        ),
        (error, _) => format!("{:<24} {}", measured.name, error.as_deref().unwrap_or("no samples")),
    }
}

fn do_job(file: &JobFile) -> anyhow::Result<ExitCode> {
    let path = file.file.display();
    let text = fs::read_to_string(&file.file).with_context(|| format!("read the job {path}"))?;
    let job: Job = serde_json::from_str(&text).with_context(|| format!("{path} is not a job"))?;
    let report = tollgate_bench::run::run(&job, &mut |what| eprintln!("progress {what}"))?;
    output::line(&serde_json::to_string(&report)?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_bench::workload::Tasks;

    fn measured(samples: &[f64], error: Option<&str>) -> Measured {
        Measured {
            name: "open+close".into(),
            unit: "instructions".into(),
            tasks: Tasks::One,
            samples: samples.to_vec(),
            idle: None,
            decisions: None,
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn reports_minimum_median_and_how_many_are_at_the_minimum() {
        let row = row(&measured(&[6025.0, 6025.0, 6025.0, 15798.0], None));
        assert!(row.contains("6025.0         6025.0") && row.ends_with("3/4"), "{row}");
    }

    #[test]
    fn reports_why_a_workload_could_not_be_measured() {
        assert!(row(&measured(&[], Some("no mke2fs on PATH"))).ends_with("no mke2fs on PATH"));
    }

    #[test]
    fn names_groups_as_the_files_do() {
        assert_eq!(word(&tollgate_bench::workload::Group::Communication), "communication");
    }
}
