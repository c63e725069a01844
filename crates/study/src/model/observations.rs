//! Costs observed while hooks were delayed: `observations.json`, built from raw records.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tollgate_bench::{
    confine::latency::Calibration,
    counter::Counter,
    job::{Measured, Report},
};

use super::entries::{self, Wrong};
use crate::{record::BootRecord, stats::exact::Summary, study::Figure};

/// The version of the format that this program writes and reads.
pub const SCHEMA: u32 = 1;

/// The runs of one configuration on one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observations {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// The unit of costs.
    pub clock: Counter,
    /// `uname -r` of the kernel.
    pub kernel: String,
    /// The configuration whose hooks were delayed.
    #[serde(default)]
    pub configuration: String,
    /// The cost of a delay, calibrated in the first boot.
    pub calibration: UnitCost,
    /// The workloads, in the study's order.
    pub workloads: Vec<String>,
    /// One entry per run; in each boot, the run without delays comes first.
    pub runs: Vec<Run>,
}

/// The cost of a delay, in the clock's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnitCost {
    /// The cost of the first unit, with the start of the loop.
    pub first: f64,
    /// The cost of each further unit.
    pub unit: f64,
}

/// One setting of all hooks, and the costs under it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Units of delay; hooks that are not named have none.
    pub units: BTreeMap<String, u64>,
    /// The cost of an operation by workload; workloads that could not be measured are left out.
    pub costs: BTreeMap<String, f64>,
    /// The cost of a delay in this run's boot, if it differs from that in the first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<UnitCost>,
}

/// Observations that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObservationsError {
    /// The text is not of this format.
    #[error("no observations: {0}; they are the file observations.json of a study with a [latency] table")]
    Malformed(String),
    /// The file has another schema.
    #[error("observations of schema {found}, of which this tollgate reads {SCHEMA}: use the version that wrote them")]
    Schema {
        /// The schema's number.
        found: u64,
    },
}

impl From<Wrong> for ObservationsError {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Malformed(why) => Self::Malformed(why),
            Wrong::Schema(found) => Self::Schema { found },
        }
    }
}

impl UnitCost {
    /// The cost of this many units.
    #[must_use]
    pub fn of(self, units: u64) -> f64 {
        units.checked_sub(1).map_or(0.0, |further| self.first + further as f64 * self.unit)
    }
}

impl Observations {
    /// Reads a file's text: one object, or an array of them, one per kernel and configuration.
    pub fn read(text: &str) -> Result<Vec<Self>, ObservationsError> {
        Ok(entries::read(text, SCHEMA)?)
    }

    /// The observations in a study's records, by kernel and configuration in the order of the records; boots without delayed
    /// hooks have none. `figure` is the study's.
    #[must_use]
    pub fn of_records(records: &[BootRecord], figure: Figure) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for record in records {
            let Some((report, calibration)) = record.report().and_then(|r| Some((r, r.calibration.as_ref()?))) else {
                continue;
            };
            let runs = runs(report, record.clock, figure);
            if report.delayed.is_empty() || runs.is_empty() {
                continue;
            }
            let known = |one: &Self| one.kernel == report.release && one.configuration == record.configuration;
            let own = unit_cost(calibration);
            match all.iter_mut().find(|one| known(one)) {
                Some(one) => {
                    let calibration = Some(own).filter(|own| *own != one.calibration);
                    one.runs.extend(runs.into_iter().map(|run| Run { calibration, ..run }));
                }
                None => all.push(Self {
                    schema: SCHEMA,
                    clock: record.clock,
                    kernel: report.release.clone(),
                    configuration: record.configuration.clone(),
                    calibration: own,
                    workloads: report.workloads.iter().map(|measured| measured.name.clone()).collect(),
                    runs,
                }),
            }
        }
        all
    }

    /// The delay of a hook in a run, in the clock's unit.
    #[must_use]
    pub fn injected(&self, run: &Run, hook: &str) -> f64 {
        let units = run.units.get(hook).copied().unwrap_or(0);
        run.calibration.unwrap_or(self.calibration).of(units)
    }

    /// The hooks that were delayed in some run, in the order of their names.
    #[must_use]
    pub fn hooks(&self) -> Vec<&str> {
        let units = self.runs.iter().flat_map(|run| &run.units);
        let hooks: BTreeSet<&str> = units.filter(|(_, units)| **units > 0).map(|(hook, _)| hook.as_str()).collect();
        hooks.into_iter().collect()
    }
}

fn unit_cost(calibration: &Calibration) -> UnitCost {
    UnitCost { first: calibration.first(), unit: calibration.further() }
}

/// The run without delays, which the report holds separately, then the others.
fn runs(report: &Report, clock: Counter, figure: Figure) -> Vec<Run> {
    let costs = |measured: &[Measured]| measured.iter().filter_map(|one| cost(one, clock, figure)).collect();
    let plain = Run { costs: costs(&report.workloads), ..Run::default() };
    let delayed = report.delayed.iter().map(|delayed| Run {
        units: delayed.delays.iter().map(|(hook, delay)| (hook.clone(), delay.units)).collect(),
        costs: costs(&delayed.workloads),
        calibration: None,
    });
    std::iter::once(plain).chain(delayed).collect()
}

fn cost(measured: &Measured, clock: Counter, figure: Figure) -> Option<(String, f64)> {
    let summary = Summary::of(&measured.samples).filter(|_| measured.error.is_none())?;
    let cost = match clock {
        Counter::Instructions => figure.choose(measured.tasks, summary.min, summary.median, summary.mean),
        Counter::Wall => summary.median,
    };
    Some((measured.name.clone(), cost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::Outcome, results::examples::boot};
    use tollgate_bench::{
        confine::latency::{Delay, Delays},
        job::Delayed,
    };

    fn delayed(units: u64, cost: f64) -> Delayed {
        let measured = boot("x", 0).measured("stat", &[cost + 9.0, cost]).0;
        Delayed {
            delays: Delays::from([("file_open".to_owned(), Delay { units, nanoseconds: 0 })]),
            workloads: measured.report().unwrap().workloads.clone(),
        }
    }

    fn record(number: u32) -> BootRecord {
        let mut record = boot("bpf-latency", number).measured("stat", &[4000.0, 4007.0]).0;
        if let Outcome::Report(report) = &mut record.outcome {
            report.calibration = Some(Calibration {
                unit: "instructions".into(),
                detached: 300.0,
                attached: vec![(0, 500.0), (1, 540.0), (100, 2025.0), (1000, 15525.0)],
            });
            report.delayed = vec![delayed(100, 5525.0), delayed(200, 7025.0)];
        }
        record
    }

    #[test]
    fn builds_the_runs_of_all_boots_with_the_one_without_delays_first() {
        let all = Observations::of_records(&[boot("none", 0).0, record(0), record(1)], Figure::Minimum);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(one.calibration, UnitCost { first: 40.0, unit: 15.0 });
        assert_eq!((one.runs.len(), one.hooks(), one.workloads.len()), (6, vec!["file_open"], 1));
        assert_eq!(one.runs[0], Run { costs: [("stat".to_owned(), 4000.0)].into(), ..Run::default() });
        assert_eq!((one.runs[1].units["file_open"], one.runs[1].costs["stat"]), (100, 5525.0));
        assert_eq!(one.kernel, "6.1.0-56-cloud-amd64");
    }

    /// Two boots in which a unit does not cost the same.
    #[test]
    fn takes_for_each_run_what_a_delay_costs_in_its_own_boot() {
        let mut second = record(1);
        if let Outcome::Report(report) = &mut second.outcome {
            let calibration = report.calibration.as_mut().unwrap();
            calibration.attached = vec![(0, 500.0), (1, 550.0), (100, 2530.0), (1000, 20530.0)];
        }
        let all = Observations::of_records(&[record(0), second], Figure::Minimum);
        let [one] = &all[..] else { panic!("{all:?}") };
        let injected: Vec<f64> = one.runs.iter().map(|run| one.injected(run, "file_open")).collect();
        assert_eq!(injected, [0.0, 1525.0, 3025.0, 0.0, 2030.0, 4030.0]);
        assert_eq!(Observations::read(&serde_json::to_string(&all).unwrap()).unwrap(), all);
    }

    #[test]
    fn reads_what_it_wrote_alone_or_among_others_and_refuses_the_rest() {
        let all = Observations::of_records(&[record(0)], Figure::Minimum);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(Observations::read(&text).unwrap(), all);
        assert_eq!(Observations::read(&serde_json::to_string(&all[0]).unwrap()).unwrap(), all);
        let newer = Observations::read(&text.replace("\"schema\":1", "\"schema\":2")).unwrap_err().to_string();
        assert!(newer.contains("schema 2"), "{newer}");
        assert!(Observations::read("{}").unwrap_err().to_string().contains("[latency] table"));
    }

    #[test]
    fn knows_what_units_cost() {
        let cost = UnitCost { first: 40.0, unit: 15.0 };
        assert_eq!([0, 1, 2, 100].map(|units| cost.of(units)), [0.0, 40.0, 55.0, 1525.0]);
    }
}
