//! `tollgate model design`: prints the runs of an experiment.

use std::{collections::BTreeSet, process::ExitCode};

use clap::Args;
use tollgate_bench::confine::REACHED_HOOKS;
use tollgate_study::design::Plan;

use super::text;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The hooks; by default those that the workloads of the bench reach
    #[arg(value_name = "HOOK", value_parser = hook)]
    hooks: Vec<String>,
    /// The delay of the higher level, in units; the lower level is no delay
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..=1 << 23))]
    units: u64,
    /// Runs with all hooks at half of it, which test the fit
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    centre_points: u32,
    /// Leave out each run's opposite: half the runs, but interactions of hooks are then in the slopes
    #[arg(long)]
    not_folded: bool,
    /// The seed of the order of the runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a hook that can be delayed.
fn hook(name: &str) -> Result<String, String> {
    let known = tollgate_study::design::is_hook(name);
    known.then(|| name.to_owned()).ok_or_else(|| format!("{name:?} is no LSM hook that programs can be attached to"))
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { hooks, units, centre_points: centres, not_folded, seed, json } = arguments;
    let mut seen = BTreeSet::new();
    if let Some(twice) = hooks.iter().find(|hook| !seen.insert(hook.as_str())) {
        anyhow::bail!("the hook {twice} is named twice; name it once");
    }
    let hooks = if hooks.is_empty() { REACHED_HOOKS.iter().map(|hook| (*hook).to_owned()).collect() } else { hooks };
    let design = Plan { hooks, units, centres, folded: !not_folded, seed }.design();
    if json {
        output::json(&design)?;
    } else {
        output::write(&text::design(&design))?;
    }
    Ok(ExitCode::SUCCESS)
}
