//! T(L) = a + sum of n_h L_h: the cost of a workload as a line in the delays of the hooks. The slope n_h is how often one
//! operation passes hook h.

use serde::{Deserialize, Serialize};
use tollgate_bench::counter::Counter;

use super::observations::{Observations, Run};
use crate::stats::regression::{LackOfFit, Regression, RegressionError};

/// The fits of one kernel and configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fits {
    /// `uname -r` of the kernel.
    pub kernel: String,
    /// The unit of costs.
    pub clock: Counter,
    /// The confidence level of the intervals, such as 0.95.
    pub level: f64,
    /// The delayed hooks, in the order of each fit's slopes.
    pub hooks: Vec<String>,
    /// One entry per workload.
    pub workloads: Vec<Fit>,
}

/// The line of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The workload's selection.
    pub workload: String,
    /// The number of runs.
    pub runs: usize,
    /// The cost without delays.
    pub intercept: Slope,
    /// How often an operation passes each hook.
    pub slopes: Vec<Slope>,
    /// The residual standard deviation, in the clock's unit; absent without a degree of freedom.
    pub deviation: Option<f64>,
    /// The share of the variation that the line explains; absent if no delay changed anything.
    pub r_squared: Option<f64>,
    /// Whether the line fits; absent if no settings were run twice, or there are as many settings as coefficients.
    pub lack_of_fit: Option<LackOfFit>,
    /// Observed cost less fitted cost, per run, in the order of the observations.
    pub residuals: Vec<f64>,
}

/// A coefficient with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slope {
    /// The hook; empty for the intercept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hook: String,
    /// The estimate, in calls per operation, or in the clock's unit for the intercept.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// The interval's lower end; absent without a degree of freedom.
    pub low: Option<f64>,
    /// The interval's upper end; absent without a degree of freedom.
    pub high: Option<f64>,
}

/// Observations to which no line can be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The settings do not separate the hooks.
    #[error("{kernel}: the runs do not separate the hook {hook} from others: run a design (`tollgate model design`)")]
    Confounded {
        /// The kernel of the observations.
        kernel: String,
        /// The hook's name.
        hook: String,
    },
    /// There are too few runs, or a cost is no number.
    #[error("{kernel}: {workload}: {cause}")]
    Workload {
        /// The kernel of the observations.
        kernel: String,
        /// The workload's selection.
        workload: String,
        /// What is wrong with the data.
        cause: RegressionError,
    },
    /// No hook was delayed.
    #[error("{kernel}: in no run did a hook take longer: give the study a [latency] table")]
    NoDelays {
        /// The kernel of the observations.
        kernel: String,
    },
}

/// Fits each workload that was measured in at least one run.
pub fn fit(observations: &Observations, level: f64) -> Result<Fits, FitError> {
    let hooks = observations.hooks();
    let kernel = observations.kernel.clone();
    if hooks.is_empty() {
        return Err(FitError::NoDelays { kernel });
    }
    let row = |run: &Run| {
        let injected = hooks.iter().map(|hook| observations.injected(run, hook));
        std::iter::once(1.0).chain(injected).collect::<Vec<f64>>()
    };
    let mut workloads = Vec::new();
    for workload in &observations.workloads {
        let measured = observations.runs.iter().filter_map(|run| Some((row(run), *run.costs.get(workload)?)));
        let (rows, costs): (Vec<_>, Vec<_>) = measured.unzip();
        if rows.is_empty() {
            continue;
        }
        let fitted = Regression::fit(&rows, &costs).map_err(|cause| match cause {
            RegressionError::Dependent { column } if column > 0 => {
                FitError::Confounded { kernel: kernel.clone(), hook: hooks[column - 1].to_owned() }
            }
            cause => FitError::Workload { kernel: kernel.clone(), workload: workload.clone(), cause },
        })?;
        workloads.push(describe(workload, &hooks, &fitted, (&rows, &costs), level));
    }
    let hooks = hooks.into_iter().map(str::to_owned).collect();
    Ok(Fits { kernel, clock: observations.clock, level, hooks, workloads })
}

fn describe(
    workload: &str,
    hooks: &[&str],
    fitted: &Regression,
    (rows, costs): (&[Vec<f64>], &[f64]),
    level: f64,
) -> Fit {
    let slope = |column: usize, hook: &str| {
        let interval = fitted.interval(column, level);
        Slope {
            hook: hook.to_owned(),
            value: fitted.coefficients[column],
            error: fitted.errors[column],
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
        }
    };
    Fit {
        workload: workload.to_owned(),
        runs: rows.len(),
        intercept: slope(0, ""),
        slopes: hooks.iter().zip(1..).map(|(hook, column)| slope(column, hook)).collect(),
        deviation: fitted.deviation(),
        r_squared: fitted.r_squared(costs),
        lack_of_fit: fitted.lack_of_fit(rows, costs),
        residuals: fitted.residuals.clone(),
    }
}

impl Fit {
    /// The greatest absolute residual.
    #[must_use]
    pub fn worst_residual(&self) -> f64 {
        self.residuals.iter().fold(0.0, |worst: f64, residual| worst.max(residual.abs()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{design::Plan, model::observations::UnitCost};

    /// The hooks of the examples.
    pub(crate) const HOOKS: [&str; 3] = ["file_open", "inode_getattr", "inode_permission"];

    /// Runs of a design in which workloads pass the hooks this often; `noise` is added to the cost by the run's number.
    pub(crate) fn observed(workloads: &[(&str, f64, [f64; 3])], noise: impl Fn(usize) -> f64) -> Observations {
        let hooks = HOOKS.map(str::to_owned).to_vec();
        let design = Plan { hooks, units: 100, centres: 3, folded: true, seed: 7 }.design();
        let calibration = UnitCost { first: 40.0, unit: 15.0 };
        let runs = design.runs.iter().enumerate().map(|(number, units)| {
            let cost = |base: f64, passes: &[f64; 3]| {
                let injected = units.iter().zip(passes).map(|(units, passes)| calibration.of(*units) * passes);
                base + injected.sum::<f64>() + noise(number)
            };
            Run {
                units: HOOKS.iter().zip(units).map(|(hook, units)| ((*hook).to_owned(), *units)).collect(),
                costs: workloads.iter().map(|(name, base, passes)| ((*name).to_owned(), cost(*base, passes))).collect(),
                calibration: None,
            }
        });
        Observations {
            schema: 1,
            clock: Counter::Instructions,
            kernel: "6.1.0-56-cloud-amd64".into(),
            configuration: "bpf-latency".into(),
            calibration,
            workloads: workloads.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            runs: runs.collect(),
        }
    }

    #[test]
    fn finds_how_often_each_hook_is_passed() {
        let fits = fit(&observed(&[("open+close", 6000.0, [1.0, 0.0, 7.0]), ("null", 250.0, [0.0; 3])], |_| 0.0), 0.95);
        let fits = fits.unwrap();
        assert_eq!(fits.hooks, HOOKS);
        let open = &fits.workloads[0];
        let slopes: Vec<f64> = open.slopes.iter().map(|slope| (slope.value * 1e9).round() / 1e9).collect();
        assert_eq!(slopes, [1.0, 0.0, 7.0]);
        assert!((open.intercept.value - 6000.0).abs() < 1e-6 && open.worst_residual() < 1e-6);
        assert!((open.r_squared.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(open.lack_of_fit.map(|lack| lack.pure), Some(0.0));
        assert_eq!(fits.workloads[1].r_squared, None);
    }

    /// In the second boot a unit costs twice as much, and what delays add with it.
    #[test]
    fn finds_one_slope_in_boots_whose_units_cost_differently() {
        let mut two = observed(&[("stat", 4000.0, [0.0, 1.0, 6.0])], |_| 0.0);
        let mut second = two.runs.clone();
        for run in &mut second {
            run.calibration = Some(UnitCost { first: 80.0, unit: 30.0 });
            run.costs.values_mut().for_each(|cost| *cost = 2.0 * *cost - 4000.0);
        }
        two.runs.extend(second);
        let fits = fit(&two, 0.95).unwrap();
        let slopes: Vec<f64> = fits.workloads[0].slopes.iter().map(|slope| slope.value.round()).collect();
        assert_eq!(slopes, [0.0, 1.0, 6.0]);
        assert!(fits.workloads[0].worst_residual() < 1e-6);
    }

    #[test]
    fn tells_a_cost_that_is_no_line() {
        let mut bent = observed(&[("stat", 4000.0, [0.0, 1.0, 6.0])], |number| f64::from((number % 3) as u8));
        let straight = fit(&bent, 0.95).unwrap().workloads[0].lack_of_fit.unwrap();
        assert!(straight.p.unwrap() > 0.01, "{straight:?}");
        for run in &mut bent.runs {
            // Two hooks that take longer together than the sum of both.
            if run.units["file_open"] > 0 && run.units["inode_getattr"] > 0 {
                *run.costs.get_mut("stat").unwrap() += 700.0;
            }
        }
        let crooked = fit(&bent, 0.95).unwrap().workloads[0].lack_of_fit.unwrap();
        assert!(crooked.p.unwrap() < 0.001, "{crooked:?}");
    }

    #[test]
    fn holds_the_truth_in_its_interval_when_runs_differ() {
        let noisy = observed(&[("stat", 4000.0, [0.0, 1.0, 6.0])], |number| f64::from((number * 7 % 11) as u8) - 5.0);
        let fits = fit(&noisy, 0.99).unwrap();
        for (slope, passes) in fits.workloads[0].slopes.iter().zip([0.0, 1.0, 6.0]) {
            assert!(slope.low.unwrap() <= passes && passes <= slope.high.unwrap(), "{slope:?}");
            assert!(slope.error > 0.0);
        }
    }

    #[test]
    fn refuses_runs_that_do_not_tell_hooks_apart() {
        let mut both = observed(&[("stat", 4000.0, [0.0, 1.0, 6.0])], |_| 0.0);
        for run in &mut both.runs {
            run.units.insert("inode_getattr".into(), run.units["file_open"]);
        }
        let refusal = fit(&both, 0.95).unwrap_err().to_string();
        assert!(refusal.contains("separate the hook inode_getattr from others"), "{refusal}");
        both.runs.iter_mut().for_each(|run| run.units.clear());
        assert!(fit(&both, 0.95).unwrap_err().to_string().contains("[latency] table"));
    }
}
