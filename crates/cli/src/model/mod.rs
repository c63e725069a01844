//! `tollgate model`: experiments on hooks, fits and predictions.

mod design;
mod fit;
mod predict;
mod text;

use std::{fs, path::Path, process::ExitCode};

use anyhow::Context;
use clap::Subcommand;
use tollgate_study::model::Counts;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the runs that show how often workloads pass each hook
    Design(design::Arguments),
    /// Fit a line to the cost of workloads under delayed hooks: its slopes are how often they pass each hook; exit status 1
    /// if a slope differs from its count without a known reason
    Fit(fit::Arguments),
    /// Predict what a command would cost under each module of a study, from how often it passes each hook
    Predict(predict::Arguments),
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Design(arguments) => design::run(arguments),
        Command::Fit(arguments) => fit::run(&arguments),
        Command::Predict(arguments) => predict::run(&arguments),
    }
}

fn read_counts(path: &Path) -> anyhow::Result<Vec<Counts>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Counts::read(&text).with_context(|| path.display().to_string())
}

/// Parses a confidence level in percent; returns a share.
fn level(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("give a level in percent above 0 and below 100, such as 95".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_level_in_percent() {
        assert_eq!((level("95"), level("99.5%")), (Ok(0.95), Ok(0.995)));
        for wrong in ["0", "100", "-1", "high", "nan"] {
            assert!(level(wrong).is_err(), "{wrong}");
        }
    }
}
