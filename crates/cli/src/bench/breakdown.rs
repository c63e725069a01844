//! `tollgate bench breakdown`: where the instructions of one operation go.

use std::{fmt::Write, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tollgate_bench::job::Measured;
use tollgate_host::Cache;
use tollgate_study::{
    breakdown::{Breakdown, Group, HookCost, log_operations},
    laboratory::{Boot, Laboratory},
    stats::exact::Summary,
    study::Study,
    word::word,
};
use tollgate_vm::Accelerator;

use crate::{interrupt, output};

/// Operations that are logged; the one that is nearest to the row's figure is shown.
const OPERATIONS: u32 = 5;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// NAME[:tmpfs|:ext4|:rootfs][:dN][:loopback|:veth], or a family, as `tollgate bench list` has them
    #[arg(required = true, value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// The security module and its policy, as study files name them
    #[arg(long, value_name = "NAME", default_value = "tollgate-debian-confined")]
    configuration: String,
    /// The guest's kernel: series (6.1), release, or path of a bzImage
    #[arg(long, value_name = "KERNEL", default_value = "6.1")]
    kernel: String,
    /// Kill the guest after this many seconds
    #[arg(long, default_value_t = 1200, value_name = "SECONDS")]
    timeout: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The breakdown of a workload's operation.
#[derive(Serialize)]
struct Row<'r> {
    kernel: &'r str,
    configuration: &'r str,
    workload: &'r str,
    /// The study's figure for the same boot, by its samples.
    figure: f64,
    samples: usize,
    operation: &'r Breakdown,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::flag()?;
    let study = study(arguments)?;
    let cache = Cache::of_user()?.interruptible(interrupted);
    let timeout = Duration::from_secs(arguments.timeout);
    let mut said = |step: &str| eprintln!("tollgate: {step}");
    let laboratory = Laboratory::prepare(&cache, &study, Accelerator::Emulation, timeout, interrupted, &mut said)?;
    let boot = Boot { kernel: study.kernels[0].clone(), configuration: study.baseline.clone(), index: 0 };
    let logged = log_operations(&laboratory, &boot, OPERATIONS, &mut said)?;
    let each = logged.report.workloads.iter().zip(&logged.operations);
    let rows = each.map(|(measured, operations)| row(&study, &logged.report.release, measured, operations));
    let rows = rows.collect::<anyhow::Result<Vec<Row<'_>>>>()?;
    if arguments.json {
        output::json(&rows)?;
    } else {
        output::write(&rows.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The arguments as a study of one boot.
fn study(arguments: &Arguments) -> anyhow::Result<Study> {
    let Arguments { workloads, configuration, kernel, .. } = arguments;
    let text = format!(
        "name = \"breakdown\"\ntitle = \"\"\nclock = \"instructions\"\nkernels = [{kernel:?}]\n\
         configurations = [{configuration:?}]\nbaseline = {configuration:?}\nworkloads = {workloads:?}\n"
    );
    Study::parse("the arguments as a study file", &text).context("no such operation can be measured")
}

/// The operation that is nearest to the figure of the samples.
fn row<'r>(
    study: &'r Study,
    kernel: &'r str,
    measured: &'r Measured,
    operations: &'r [Breakdown],
) -> anyhow::Result<Row<'r>> {
    let name = &measured.name;
    let Some(summary) = Summary::of(&measured.samples) else {
        bail!("{name}: {}", measured.error.as_deref().unwrap_or("no samples"));
    };
    let figure = study.figure.choose(measured.tasks, summary.min, summary.median, summary.mean);
    let distance = |operation: &&Breakdown| (operation.counted as f64 - figure).abs() as u64;
    let operation = operations.iter().min_by_key(distance).with_context(|| format!("{name}: nothing was logged"))?;
    let samples = measured.samples.len();
    Ok(Row { kernel, configuration: &study.baseline, workload: name, figure, samples, operation })
}

fn text(row: &Row<'_>) -> String {
    let Row { kernel, configuration, workload, figure, samples, operation } = row;
    let Breakdown { executed, counted, outside, interrupts, .. } = operation;
    let inside = operation.inside();
    let mut text = format!(
        "{workload} under {configuration}, {kernel}\n\
         instructions: {executed} logged, {counted} by the counter; {figure} is the figure of {samples} samples\n\
         in hooks {inside}, outside {outside}, interrupts {interrupts}\n\n"
    );
    let heads: String = Group::ALL.iter().map(|group| format!("{:>9}", word(group))).collect();
    let _ = writeln!(text, "{:>7}{heads}{:>9}  hook", "calls", "all");
    for hook in &operation.hooks {
        let _ = writeln!(text, "{}", line(&hook.calls.to_string(), |group| hook.of(group), &hook.function));
    }
    let of_all = |group| operation.hooks.iter().map(|hook| hook.of(group)).sum();
    let _ = writeln!(text, "{}", line("", of_all, "all hooks"));
    operation.hooks.iter().for_each(|hook| text.push_str(&parts(hook)));
    text
}

fn line(calls: &str, of: impl Fn(Group) -> u64, name: &str) -> String {
    let counts: String = Group::ALL.iter().map(|group| format!("{:>9}", of(*group))).collect();
    let all: u64 = Group::ALL.iter().map(|group| of(*group)).sum();
    format!("{calls:>7}{counts}{all:>9}  {name}")
}

fn parts(hook: &HookCost) -> String {
    let mut text = format!("\n{}\n", hook.function);
    for part in &hook.parts {
        let _ = writeln!(text, "{:>9}  {:<8} {}", part.instructions, word(&part.group), part.what);
    }
    text
}
