//! Predicts what a command costs under each module of a study: the counts of its hooks times their prices.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_bench::counter::Counter;

use super::{
    counts::Counts,
    fit::Fits,
    prices::{Priced, Prices, inseparable},
};
use crate::{
    results::{ConfigurationResult, Oracle, Results},
    stats::quantile::{ascending, quantile},
};

/// A prediction for one command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The command, or the workload.
    pub command: String,
    /// The kernel of the prices.
    pub kernel: String,
    /// The unit of costs.
    pub clock: Counter,
    /// The confidence level of the intervals.
    pub level: f64,
    /// The command's cost under the baseline, if it is known.
    pub cost: Option<f64>,
    /// Calls of all hooks per run.
    pub calls: f64,
    /// One entry per module.
    pub modules: Vec<Overhead>,
}

/// A hook of the command that has no price.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unpriced {
    /// The hook's name.
    pub hook: String,
    /// How often the command passes it.
    pub calls: f64,
    /// Its share of all calls, in percent.
    pub percent: f64,
}

/// What a module adds to one run of the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overhead {
    /// The configuration's name.
    pub module: String,
    /// The overhead in the clock's unit.
    pub overhead: Range,
    /// The overhead in percent of the command's cost, if that is known.
    pub percent: Option<Range>,
    /// The number of priced workloads.
    pub workloads: usize,
    /// The misfit of these workloads: root mean square, in percent of their differences.
    pub misfit: f64,
    /// Hooks of the command that none of these workloads passes: no figure contains them.
    pub unpriced: Vec<Unpriced>,
    /// Hooks that all of these workloads pass in the same proportion: they are priced only together.
    pub inseparable: Vec<Vec<String>>,
    /// The price of one call of each hook that the command passes, in the clock's unit.
    pub prices: BTreeMap<String, f64>,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The estimate itself.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// Why nothing can be predicted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionError {
    /// The study has results for several kernels, none of them the command's.
    #[error(
        "the study has prices on {known}, and the counts are of {counted:?}: name one of those kernels with --kernel"
    )]
    Kernel {
        /// The study's kernels.
        known: String,
        /// The kernel of the command's counts.
        counted: String,
    },
    /// No workload of the study has counts.
    #[error(
        "no workload of the study on {kernel} has counts of its hooks, of that kernel or of one alone: give --counts a file of `tollgate hooks count --json`, or the study a [latency] table"
    )]
    NoCounts {
        /// The kernel of the study's results.
        kernel: String,
    },
    /// Counts with lost events, which are too low.
    #[error("{workload}: {lost} events were lost while counting: count it again with a larger buffer")]
    Lost {
        /// The workload's selection.
        workload: String,
        /// How many events were lost.
        lost: u64,
    },
}

/// The kernel whose prices are used: the named one, else that of the counts, else the only one.
pub fn kernel<'a>(results: &'a Results, named: Option<&str>, counted: &str) -> Result<&'a str, PredictionError> {
    let kernels = results.kernels();
    let release = |kernel: &&str| results.on(kernel).any(|one| one.release == counted);
    let found = match named {
        Some(named) => kernels.iter().find(|kernel| **kernel == named),
        None if kernels.len() == 1 => kernels.first(),
        None => kernels.iter().find(|kernel| **kernel == counted || release(kernel)),
    };
    found.copied().ok_or_else(|| PredictionError::Kernel {
        known: kernels.join(", "),
        counted: named.unwrap_or(counted).to_owned(),
    })
}

/// How often each workload of the study on the kernel passes each hook, for counted workloads.
pub fn counts_of_workloads(
    results: &Results,
    kernel: &str,
    counts: &[Counts],
) -> Result<BTreeMap<String, BTreeMap<String, f64>>, PredictionError> {
    let is_kernel = |counted: &str| counted == kernel || results.on(kernel).any(|one| one.release == counted);
    let mut workloads = BTreeMap::new();
    for name in results.on(kernel).flat_map(|one| &one.workloads).map(|one| &one.name) {
        match Counts::of(counts, name, is_kernel) {
            Some(one) if one.lost > 0 => {
                return Err(PredictionError::Lost { workload: name.clone(), lost: one.lost });
            }
            Some(one) => drop(workloads.insert(name.clone(), one.hooks.clone())),
            None => {}
        }
    }
    Ok(workloads)
}

/// Slopes as counts; a slope near a whole number is rounded.
#[must_use]
pub fn counts_of_fits(fits: &Fits) -> BTreeMap<String, BTreeMap<String, f64>> {
    let whole = |value: f64| if (value - value.round()).abs() < 0.02 { value.round() } else { value };
    let counts = |slopes: &[super::Slope]| {
        let counts = slopes.iter().map(|slope| (slope.hook.clone(), whole(slope.value)));
        counts.filter(|(_, count)| *count > 0.0).collect()
    };
    fits.workloads.iter().map(|fit| (fit.workload.clone(), counts(&fit.slopes))).collect()
}

/// Predicts the command's cost under each configuration except the baseline. `workloads` is how often each workload passes
/// each hook.
pub fn predict(
    results: &Results,
    kernel: &str,
    workloads: &BTreeMap<String, BTreeMap<String, f64>>,
    command: &Counts,
    (cost, level): (Option<f64>, f64),
) -> Result<Prediction, PredictionError> {
    let priced = |configuration: &ConfigurationResult| priced(results, kernel, configuration, workloads);
    let modules: Vec<(&ConfigurationResult, Vec<Priced>)> =
        results.on(kernel).filter(|one| is_module(results, one)).map(|one| (one, priced(one))).collect();
    if modules.iter().all(|(_, priced)| priced.is_empty()) {
        return Err(PredictionError::NoCounts { kernel: kernel.to_owned() });
    }
    // Counts have their cost in instructions, which is of no use for a study on the wall clock.
    let counted = command.cost.filter(|_| results.clock == Counter::Instructions);
    let cost = cost.or(counted).filter(|cost| *cost > 0.0);
    let overheads = modules.iter().filter_map(|(configuration, priced)| {
        let prices = Prices::estimate(priced)?;
        Some(overhead(&configuration.name, priced, &prices, command, (cost, level)))
    });
    Ok(Prediction {
        command: command.name(),
        kernel: kernel.to_owned(),
        clock: results.clock,
        level,
        cost,
        calls: command.total(),
        modules: overheads.collect(),
    })
}

/// Whether a configuration has prices: a void one does not price its policy, and one with delays is no module.
fn is_module(results: &Results, one: &ConfigurationResult) -> bool {
    one.name != results.study.baseline && one.oracle != Oracle::Void && !results.study.takes_delays(&one.name)
}

fn priced(
    results: &Results,
    kernel: &str,
    configuration: &ConfigurationResult,
    counts: &BTreeMap<String, BTreeMap<String, f64>>,
) -> Vec<Priced> {
    let Some(baseline) = results.find(kernel, &results.study.baseline) else { return Vec::new() };
    let one = |workload: &String| {
        let difference = configuration.workload(workload)?.figure - baseline.workload(workload)?.figure;
        Some(Priced { workload: workload.clone(), hooks: counts[workload].clone(), difference })
    };
    counts.keys().filter_map(one).filter(|one| one.hooks.values().any(|calls| *calls > 0.0)).collect()
}

fn overhead(
    module: &str,
    priced: &[Priced],
    prices: &Prices,
    command: &Counts,
    (cost, level): (Option<f64>, f64),
) -> Overhead {
    let (value, replicates) = prices.of(&command.hooks);
    let replicates = ascending(&replicates);
    let outside = (1.0 - level) / 2.0;
    let at = |share| quantile(&replicates, share).unwrap_or(value);
    let overhead = Range { value, low: at(outside).min(value), high: at(1.0 - outside).max(value) };
    let in_percent = |value: f64, cost: f64| 100.0 * value / cost;
    let passed = prices.hooks.iter().zip(&prices.prices).filter(|(hook, _)| command.hooks.contains_key(*hook));
    Overhead {
        module: module.to_owned(),
        overhead,
        percent: cost.map(|cost| Range {
            value: in_percent(overhead.value, cost),
            low: in_percent(overhead.low, cost),
            high: in_percent(overhead.high, cost),
        }),
        workloads: priced.len(),
        misfit: 100.0 * prices.misfit,
        unpriced: unpriced(prices, command),
        inseparable: inseparable(priced),
        prices: passed.map(|(hook, price)| (hook.clone(), *price)).collect(),
    }
}

/// The hooks of the command that have no price.
fn unpriced(prices: &Prices, command: &Counts) -> Vec<Unpriced> {
    let without = command.hooks.iter().filter(|(hook, calls)| **calls > 0.0 && !prices.hooks.contains(hook));
    let total = command.total();
    let one =
        |(hook, calls): (&String, &f64)| Unpriced { hook: hook.clone(), calls: *calls, percent: 100.0 * calls / total };
    without.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::prices::tests::workloads,
        results::examples::{Boot, boot, results, wall_results},
    };

    /// A study of the priced workloads under one module, which names none of the bench.
    fn study() -> Results {
        results(&study_boots())
    }

    fn study_boots() -> [Boot; 2] {
        let mut none = boot("none", 0);
        let mut module = boot("tomoyo", 0);
        for one in workloads() {
            none = none.measured(&one.workload, &[5000.0]);
            module = module.measured(&one.workload, &[5000.0 + one.difference]);
        }
        [none, module]
    }

    fn counts() -> BTreeMap<String, BTreeMap<String, f64>> {
        workloads().into_iter().map(|one| (one.workload, one.hooks)).collect()
    }

    fn command(hooks: &str) -> Counts {
        let text = format!(r#"{{"schema":1,"kernel":"6.1.0-56-cloud-amd64","command":["make"],"hooks":{hooks}}}"#);
        Counts::read(&text).unwrap().remove(0)
    }

    #[test]
    fn adds_up_what_each_hook_costs() {
        let command = command(r#"{"file_open": 100, "inode_permission": 1000, "socket_bind": 110}"#);
        let found = predict(&study(), "6.1", &counts(), &command, (Some(1_000_000.0), 0.95)).unwrap();
        let [tomoyo] = &found.modules[..] else { panic!("{found:?}") };
        let Range { value, low, high } = tomoyo.overhead;
        assert!((value / 70_000.0 - 1.0).abs() < 0.05, "{value}");
        assert!(low <= 70_000.0 && 70_000.0 <= high && high < 1.3 * low, "{low} {high}");
        assert!((tomoyo.percent.unwrap().value - value / 10_000.0).abs() < 1e-9);
        assert_eq!(tomoyo.unpriced.len(), 1);
        assert_eq!((tomoyo.unpriced[0].hook.as_str(), tomoyo.unpriced[0].percent.round()), ("socket_bind", 9.0));
        assert_eq!(tomoyo.inseparable, [["inode_alloc", "inode_free"]]);
    }

    #[test]
    fn lists_what_each_module_has_no_price_of() {
        let [none, tomoyo] = study_boots();
        let yama = boot("yama", 0).measured("fstat", &[5000.0]).measured("stat", &[5010.0]);
        let command = command(r#"{"file_open": 1, "inode_getattr": 1}"#);
        let found = predict(&results(&[none, tomoyo, yama]), "6.1", &counts(), &command, (None, 0.95)).unwrap();
        let unpriced = |module: &Overhead| module.unpriced.iter().map(|one| one.hook.clone()).collect::<Vec<_>>();
        assert_eq!(found.modules.iter().map(unpriced).collect::<Vec<_>>(), [vec![], vec!["file_open".to_owned()]]);
    }

    /// Counts have a cost in instructions.
    #[test]
    fn takes_no_instructions_for_nanoseconds() {
        let command = Counts { cost: Some(1_000_000.0), ..command(r#"{"file_open": 100}"#) };
        let percent = |results: &Results, cost| {
            let found = predict(results, "6.1", &counts(), &command, (cost, 0.95)).unwrap();
            (found.cost, found.modules[0].percent.is_some())
        };
        let boots: Vec<_> = study_boots().into_iter().map(Boot::wall).collect();
        assert_eq!(percent(&wall_results(&boots), None), (None, false));
        assert_eq!(percent(&wall_results(&boots), Some(5e5)), (Some(5e5), true));
        assert_eq!(percent(&study(), None), (Some(1e6), true));
    }

    #[test]
    fn takes_a_configuration_with_delays_for_no_module_by_its_base() {
        let mut boots = study_boots().to_vec();
        boots.push({
            let mut slow = boots[1].clone();
            slow.0.configuration = "slow".to_owned();
            slow
        });
        let mut study = results(&boots);
        let modules = |study: &Results| {
            let found = predict(study, "6.1", &counts(), &command(r#"{"file_open": 1}"#), (None, 0.95)).unwrap();
            found.modules.into_iter().map(|one| one.module).collect::<Vec<_>>()
        };
        study.study.text = "name = \"s\"\ntitle = \"S\"\nkernels = [\"6.1\"]\nworkloads = [\"stat\"]\n\
            configurations = [\"none\", \"tomoyo\", \"slow\"]\n\
            [[configuration]]\nname = \"slow\"\nbase = \"bpf-empty\"\n"
            .to_owned();
        assert_eq!(modules(&study), ["tomoyo", "slow"]);
        study.study.text = study.study.text.replace("bpf-empty", "bpf-latency");
        assert_eq!(modules(&study), ["tomoyo"]);
    }

    #[test]
    fn refuses_counts_of_workloads_of_which_events_were_lost() {
        let counted = |lost: u64, workload: &str| {
            let text = format!(r#"{{"schema":1,"kernel":"6.1","workload":"{workload}","lost":{lost},"hooks":{{}}}}"#);
            counts_of_workloads(&study(), "6.1", &Counts::read(&text).unwrap())
        };
        assert_eq!(counted(0, "stat").unwrap().len(), 1);
        assert!(counted(3, "stat").unwrap_err().to_string().contains("stat: 3 events were lost"));
        assert!(counted(3, "not of the study").unwrap().is_empty());
    }

    #[test]
    fn chooses_the_kernel_that_counts_are_of() {
        let one = study();
        assert_eq!(kernel(&one, None, "elsewhere").unwrap(), "6.1");
        let two =
            results(&[boot("none", 0).measured("stat", &[1.0]), boot("none", 0).on("6.12").measured("stat", &[1.0])]);
        assert_eq!(kernel(&two, Some("6.12"), "").unwrap(), "6.12");
        assert!(kernel(&two, None, "5.10").unwrap_err().to_string().contains("prices on 6.1, 6.12"));
    }

    #[test]
    fn refuses_a_study_whose_hooks_nobody_counted() {
        let refusal = predict(&study(), "6.1", &BTreeMap::new(), &command("{}"), (None, 0.95)).unwrap_err();
        assert!(refusal.to_string().contains("--counts"), "{refusal}");
    }
}
