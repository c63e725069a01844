//! `tollgate model predict`: what a command would cost under each module.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_study::{
    model::{
        Observations, fit, predict,
        prediction::{counts_of_fits, counts_of_workloads, kernel},
    },
    results::Results,
    store::Store,
};

use super::{level, read_counts, text};
use crate::output;

/// The file of counts in a study's folder.
const COUNTS: &str = "counts.json";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How often the command passes each hook: a file of `tollgate hooks count --json`, or a profile of the same form
    #[arg(value_name = "COUNTS")]
    command: PathBuf,
    /// The folder of a study that measured the modules
    #[arg(long, value_name = "DIR")]
    prices: PathBuf,
    /// How often the study's workloads pass each hook; by default counts.json in the folder, else the slopes of its [latency]
    /// table
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// The cost of one run of the command under the baseline, in the study's unit (instructions or nanoseconds), instead of
    /// the cost in its counts
    #[arg(long, value_name = "COST", value_parser = cost)]
    cost: Option<f64>,
    /// The kernel of the study whose prices are used, instead of the one on which the command was counted
    #[arg(long)]
    kernel: Option<String>,
    /// The confidence level of intervals, in percent
    #[arg(long, default_value = "95", value_name = "PERCENT", value_parser = level)]
    level: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn cost(text: &str) -> Result<f64, String> {
    match text.replace(['_', ','], "").parse::<f64>() {
        Ok(cost) if cost.is_finite() && cost > 0.0 => Ok(cost),
        _ => Err("give a number above 0, in the study's unit".into()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let commands = read_counts(&arguments.command)?;
    if let Some(lost) = commands.iter().find(|counts| counts.lost > 0) {
        bail!("{}: {} events were lost while counting: count again with a larger buffer", lost.name(), lost.lost);
    }
    let store = Store::open(&arguments.prices)?;
    let results = store.read_results()?;
    let mut all = Vec::new();
    for command in &commands {
        let kernel = kernel(&results, arguments.kernel.as_deref(), &command.kernel)?;
        let workloads = workloads(arguments, &store, &results, kernel)?;
        all.push(predict(&results, kernel, &workloads, command, (arguments.cost, arguments.level))?);
    }
    if arguments.json {
        output::json(&all)?;
    } else {
        output::write(&text::predictions(&all))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How often each of the study's workloads passes each hook on a kernel.
fn workloads(
    arguments: &Arguments,
    store: &Store,
    results: &Results,
    kernel: &str,
) -> anyhow::Result<BTreeMap<String, BTreeMap<String, f64>>> {
    let beside = arguments.prices.join(COUNTS);
    let file: Option<&Path> = arguments.counts.as_deref().or_else(|| beside.is_file().then_some(&*beside));
    if let Some(file) = file {
        let counts = read_counts(file)?;
        return counts_of_workloads(results, kernel, &counts).with_context(|| file.display().to_string());
    }
    let is_release = |release: &str| results.on(kernel).any(|one| one.release == release);
    let observed = Observations::of_records(&store.read_boots()?, results.study.figure);
    let Some(observed) = observed.iter().find(|observed| is_release(&observed.kernel)) else {
        return Ok(BTreeMap::new());
    };
    Ok(counts_of_fits(&fit(observed, arguments.level).with_context(|| arguments.prices.display().to_string())?))
}
