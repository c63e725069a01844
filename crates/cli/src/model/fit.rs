//! `tollgate model fit`: fits a line to each workload of an experiment.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tollgate_study::{
    model::{Against, Fits, Observations, against, fit},
    store::Store,
};

use super::{level, read_counts, text};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder of a study with a [latency] table, or a file such as its observations.json
    #[arg(value_name = "DIR|FILE")]
    observations: PathBuf,
    /// Compare the slopes with counts: a file of `tollgate hooks count --json`
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Only this workload; may be given several times
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// The confidence level of intervals, in percent
    #[arg(long, default_value = "95", value_name = "PERCENT", value_parser = level)]
    level: f64,
    /// Print every run's residual
    #[arg(long)]
    residuals: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One kernel's fits, and their comparison with counts.
#[derive(Debug, Serialize)]
struct Fitted {
    #[serde(flatten)]
    fits: Fits,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Against>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let counts = arguments.against.as_deref().map(read_counts).transpose()?;
    let mut all = Vec::new();
    for mut observations in read(&arguments.observations)? {
        choose(&mut observations, &arguments.workload)?;
        let fits = fit(&observations, arguments.level)?;
        let against = counts.as_ref().map(|counts| against(&fits, counts));
        all.push(Fitted { fits, against });
    }
    if arguments.json {
        output::json(&all)?;
    } else {
        for fitted in &all {
            output::write(&text::fits(&fitted.fits, arguments.residuals))?;
            if let Some(against) = &fitted.against {
                output::write(&text::against(against))?;
            }
        }
    }
    let unexplained = all.iter().flat_map(|fitted| &fitted.against).flat_map(|against| &against.differences);
    Ok(ExitCode::from(u8::from(unexplained.into_iter().any(|difference| difference.reason.is_none()))))
}

/// Reads a folder from its raw records, a file as it is.
fn read(path: &Path) -> anyhow::Result<Vec<Observations>> {
    let observations = if path.is_dir() {
        let store = Store::open(path)?;
        Observations::of_records(&store.read_boots()?, store.read_results()?.study.figure)
    } else {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Observations::read(&text).with_context(|| path.display().to_string())?
    };
    if observations.is_empty() {
        bail!(
            "{} holds no run in which a hook took longer: give the study a [latency] table, with \"bpf-latency\" among \
             its configurations",
            path.display()
        );
    }
    Ok(observations)
}

/// Leaves out workloads that were not named; without names, none.
fn choose(observations: &mut Observations, asked: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = asked.iter().find(|name| !observations.workloads.contains(name)) {
        bail!("no workload {unknown:?} was measured; there are {}", observations.workloads.join(", "));
    }
    observations.workloads.retain(|name| asked.is_empty() || asked.contains(name));
    Ok(())
}
