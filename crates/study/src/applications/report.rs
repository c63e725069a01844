//! What was measured, and the table of it.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Serialize;

use super::{Applications, Error, Spread};
use crate::stats::{equivalence::Equivalence, moments};

/// Microseconds of each run, by application: without the guard, and with it.
pub type Samples = BTreeMap<String, [Vec<u64>; 2]>;

/// A study's results.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// By application, in the study's order.
    pub rows: Vec<Row>,
    /// What the guard says of its counts at the end of each block.
    pub counts: Vec<String>,
    /// Calls that were denied while it enforced what it had learnt.
    pub denied: Vec<String>,
    /// The database that was enforced.
    pub database: Vec<String>,
}

/// An application's results.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The application.
    pub name: String,
    /// Means and standard deviations.
    pub seconds: Spread,
    /// The difference in percent, with its intervals of 95 % and 90 %.
    pub percent: f64,
    /// The confidence interval of 95 %.
    pub interval: (f64, f64),
    /// The interval of 90 %, which decides on equivalence at 5 %.
    pub deciding: (f64, f64),
    /// What is proven of the study's margin.
    pub proven: &'static str,
    /// Microseconds of each run, without and with the guard.
    pub samples: [Vec<u64>; 2],
}

impl Report {
    /// Reads what the guest has printed.
    ///
    /// # Errors
    ///
    /// [`Error::Guest`] if samples are missing.
    pub fn of(study: &Applications, output: &str) -> Result<Self, Error> {
        let mut samples = Samples::new();
        let rest = |begin: &str| -> Vec<String> {
            output.lines().filter_map(|line| line.strip_prefix(begin)).map(str::to_owned).collect()
        };
        let denied: Vec<String> = output.lines().filter(|line| line.contains(" denied: ")).map(str::to_owned).collect();
        if let Some(failed) = rest("failed ").first() {
            let first = denied.first().map(|first| format!("; {} calls were denied, the first: {first}", denied.len()));
            return Err(Error::Guest(format!("{failed}{}", first.unwrap_or_default())));
        }
        for sample in rest("sample ") {
            let [word, name, time] = sample.split(' ').collect::<Vec<_>>()[..] else { continue };
            let time: u64 = time.parse().map_err(|_| Error::Guest(sample.clone()))?;
            samples.entry(name.to_owned()).or_default()[usize::from(word == "with")].push(time);
        }
        let rows = study.applications.iter().map(|application| row(study, &application.name, &mut samples));
        Ok(Self { rows: rows.collect::<Result<_, _>>()?, counts: rest("status "), denied, database: rest("database ") })
    }

    /// The table, as Markdown.
    #[must_use]
    pub fn table(&self, study: &Applications) -> String {
        let mut text = format!(
            "| application | without, s | with the guard, s | difference (95 %) | less than {} % | published, s |\n\
             |---|---|---|---|---|---|\n",
            study.margin
        );
        let two = |(mean, deviation): (f64, f64)| format!("{mean:.4} ± {deviation:.4}");
        for row in &self.rows {
            let published: Vec<String> = study
                .published
                .iter()
                .filter_map(|published| published.seconds.get(&row.name))
                .map(|then| {
                    let change = 100.0 * (then.with.0 / then.without.0 - 1.0);
                    format!(
                        "{} ± {}, {} ± {} ({change:+.1} %)",
                        then.without.0, then.without.1, then.with.0, then.with.1
                    )
                })
                .collect();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:+.2} % ({:+.2} to {:+.2}) | {} | {} |",
                row.name,
                two(row.seconds.without),
                two(row.seconds.with),
                row.percent,
                row.interval.0,
                row.interval.1,
                row.proven,
                published.join("; ")
            );
        }
        text
    }
}

fn row(study: &Applications, name: &str, samples: &mut Samples) -> Result<Row, Error> {
    let samples = samples.remove(name).unwrap_or_default();
    let seconds = samples.each_ref().map(|of| of.iter().map(|time| *time as f64 / 1e6).collect::<Vec<f64>>());
    let missing = || Error::Guest(format!("{} and {} runs of {name}", seconds[0].len(), seconds[1].len()));
    if seconds.iter().any(|of| of.len() != study.runs as usize) {
        return Err(missing());
    }
    let pairs: Vec<(f64, f64)> = seconds[0].iter().copied().zip(seconds[1].iter().copied()).collect();
    let spread = |of: &[f64]| Some((moments::mean(of)?, moments::standard_deviation(of)?));
    let found = Equivalence::of(&pairs).ok_or_else(missing)?;
    let proven = match (found.is_within(study.margin), found.is_less_than(study.margin)) {
        (true, _) => "proven",
        (false, true) => "proven (it is faster)",
        (false, false) => "not proven",
    };
    let [Some(without), Some(with)] = seconds.each_ref().map(|of| spread(of)) else { return Err(missing()) };
    let Equivalence { percent, interval, deciding } = found;
    let seconds = Spread { without, with };
    Ok(Row { name: name.to_owned(), seconds, percent, interval, deciding, proven, samples })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = "name = 'a'\ntitle = 'A'\nclock = 'wall'\nkernel = '6.1'\nruns = 3\nmargin = 1.0\ntimeout = 9\n\
                         [system]\nrelease = 'bookworm'\npackages = []\n\
                         [[application]]\nname = 'copy'\nabout = 'copies'\nrun = 'true'\n";

    fn output(with: [u32; 3]) -> String {
        let sample = |word: &str, time: u32| format!("sample {word} copy {time}\n");
        let without = [1_000_000, 1_010_000, 990_000].map(|time| sample("without", time));
        format!(
            "database program /a learn\n{}{}end\n",
            without.concat(),
            with.map(|time| sample("with", time)).concat()
        )
    }

    #[test]
    fn pairs_the_runs_and_says_what_is_proven() {
        let study = Applications::parse("a", STUDY).unwrap();
        let report = Report::of(&study, &output([1_001_000, 1_011_000, 991_000])).unwrap();
        assert_eq!(report.rows[0].proven, "proven");
        assert!((report.rows[0].percent - 0.1).abs() < 0.01, "{:?}", report.rows[0]);
        assert!(report.table(&study).contains("| copy | 1.0000 ± 0.0100 | 1.0010 ± 0.0100 | +0.10 % "));
        let scattered = Report::of(&study, &output([1_200_000, 1_000_000, 1_100_000])).unwrap();
        assert_eq!(scattered.rows[0].proven, "not proven");
    }

    #[test]
    fn refuses_output_without_all_samples() {
        let study = Applications::parse("a", STUDY).unwrap();
        let cut = output([1, 2, 3]).replacen("sample with copy", "sample copy", 1);
        assert!(Report::of(&study, &cut).unwrap_err().to_string().contains("3 and 2 runs of copy"));
        let failed = "GUARD denied: no rule `a`\nGUARD denied: no rule `b`\nfailed with copy: 1, no space\n";
        let failed = Report::of(&study, failed).unwrap_err().to_string();
        assert!(failed.ends_with("with copy: 1, no space; 2 calls were denied, the first: GUARD denied: no rule `a`"));
    }
}
