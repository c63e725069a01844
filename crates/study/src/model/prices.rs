//! What each hook costs under a module, estimated from bench workloads alone.
//!
//! A workload's difference to the baseline is the sum of its hooks' prices, none negative. There are more hooks than
//! workloads tell apart, so each price is drawn towards the module's mean price of a call, as far as a misfit of [`MISFIT`]
//! leaves it free: what workloads tell apart they decide, what they do not is shared out evenly.

use std::collections::{BTreeMap, BTreeSet};

use crate::stats::{nonnegative::minimise, random::Random};

/// How far a workload may be from the sum of its prices, as a share of its difference, before that counts as much as a price
/// that is as far from the mean as the mean is from nothing: a hook does not cost the same on each way to it.
const MISFIT: f64 = 0.02;
/// Estimates of all prices that an interval is taken of.
pub const REPLICATES: usize = 400;
/// How far each is followed, and how far the estimate itself: a share of the greatest price.
const SETTLED: [f64; 2] = [1e-5, 1e-10];
/// What they are drawn by.
const SEED: u64 = 1;

/// A workload: what a module adds to it, and the hooks that it passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    /// The workload.
    pub workload: String,
    /// Calls of each hook, per operation.
    pub hooks: BTreeMap<String, f64>,
    /// Its cost under the module less that under the baseline, in the clock's unit.
    pub difference: f64,
}

/// The prices of hooks under one module.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// The hooks that some workload passes.
    pub hooks: Vec<String>,
    /// The estimate of each one's price a call, in the clock's unit.
    pub prices: Vec<f64>,
    /// Other estimates, each as likely, with the misfit of what is predicted by it, as a share.
    pub replicates: Vec<(Vec<f64>, f64)>,
    /// The root mean square of the workloads' misfits, as a share of their differences.
    pub misfit: f64,
}

impl Prices {
    /// Estimates them; `None` without workloads that pass a hook.
    ///
    /// The replicates are a Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981): each workload has a random weight, and
    /// none is left out, for some hooks are priced by one workload alone. What prices are drawn towards is drawn as well, so
    /// that the interval is wide where workloads do not tell.
    #[must_use]
    pub fn estimate(workloads: &[Priced]) -> Option<Self> {
        let workloads: Vec<&Priced> = workloads.iter().filter(|one| one.hooks.values().any(|n| *n > 0.0)).collect();
        let passed = workloads.iter().flat_map(|one| one.hooks.iter().filter(|(_, n)| **n > 0.0).map(|(hook, _)| hook));
        let hooks: Vec<String> = passed.collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let system = System::of(&workloads, &hooks)?;
        let even = vec![1.0; workloads.len()];
        let toward = vec![system.mean; hooks.len()];
        let prices = system.solve(&even, &toward, &toward, SETTLED[1]);
        let misfits = system.misfits(&prices);
        let mut random = Random::new(SEED);
        let replicates = (0..REPLICATES).map(|_| {
            let weights: Vec<f64> = workloads.iter().map(|_| exponential(&mut random)).collect();
            let toward: Vec<f64> = hooks.iter().map(|_| system.mean * exponential(&mut random)).collect();
            let misfit = misfits[random.below(misfits.len())];
            (system.solve(&weights, &toward, &prices, SETTLED[0]), misfit)
        });
        let replicates = replicates.collect();
        let misfit = (misfits.iter().map(|misfit| misfit * misfit).sum::<f64>() / misfits.len() as f64).sqrt();
        Some(Self { hooks, prices, replicates, misfit })
    }

    /// What so many calls of each hook cost by these prices and by each replicate's, with its misfit.
    #[must_use]
    pub fn of(&self, calls: &BTreeMap<String, f64>) -> (f64, Vec<f64>) {
        let calls: Vec<f64> = self.hooks.iter().map(|hook| calls.get(hook).copied().unwrap_or(0.0)).collect();
        let sum = |prices: &[f64]| prices.iter().zip(&calls).map(|(price, calls)| price * calls).sum::<f64>();
        let replicates = self.replicates.iter().map(|(prices, misfit)| sum(prices) * (1.0 + misfit).max(0.0));
        (sum(&self.prices), replicates.collect())
    }
}

/// Hooks that all workloads pass in the same proportion: only what they cost together is priced.
#[must_use]
pub fn inseparable(workloads: &[Priced]) -> Vec<Vec<String>> {
    let mut groups: Vec<(Vec<f64>, Vec<String>)> = Vec::new();
    let passed: BTreeSet<&String> = workloads.iter().flat_map(|one| one.hooks.keys()).collect();
    for hook in passed {
        let column: Vec<f64> = workloads.iter().map(|one| one.hooks.get(hook).copied().unwrap_or(0.0)).collect();
        let Some(first) = column.iter().copied().find(|n| *n > 0.0) else { continue };
        let shape: Vec<f64> = column.iter().map(|n| n / first).collect();
        let same = |other: &[f64]| other.iter().zip(&shape).all(|(one, other)| (one - other).abs() < 1e-9);
        match groups.iter_mut().find(|(other, _)| same(other)) {
            Some((_, group)) => group.push(hook.clone()),
            None => groups.push((shape, vec![hook.clone()])),
        }
    }
    groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect()
}

/// The least-squares problem: rows are workloads, in shares of their size.
struct System {
    rows: Vec<Vec<f64>>,
    differences: Vec<f64>,
    /// Differences over calls, of all workloads together.
    mean: f64,
}

impl System {
    fn of(workloads: &[&Priced], hooks: &[String]) -> Option<Self> {
        if workloads.is_empty() {
            return None;
        }
        let calls = |one: &Priced| one.hooks.values().sum::<f64>();
        // An instruction a call at least, lest what a module leaves alone weighs without end.
        let size = |one: &Priced| one.difference.abs() + calls(one);
        let share =
            |one: &&Priced| hooks.iter().map(|hook| one.hooks.get(hook).copied().unwrap_or(0.0) / size(one)).collect();
        let prices: Vec<f64> = workloads.iter().map(|one| one.difference / calls(one)).collect();
        Some(Self {
            rows: workloads.iter().map(share).collect(),
            differences: workloads.iter().map(|one| one.difference / size(one)).collect(),
            mean: (prices.iter().sum::<f64>() / prices.len() as f64).max(f64::MIN_POSITIVE.sqrt()),
        })
    }

    /// Prices with these weights of the workloads, drawn `toward` these.
    fn solve(&self, weights: &[f64], toward: &[f64], start: &[f64], settled: f64) -> Vec<f64> {
        let width = toward.len();
        let ridge = (MISFIT / self.mean).powi(2);
        let mut gram = vec![vec![0.0; width]; width];
        let mut target: Vec<f64> = toward.iter().map(|price| ridge * price).collect();
        for ((row, difference), weight) in self.rows.iter().zip(&self.differences).zip(weights) {
            for (i, entry) in row.iter().enumerate().filter(|(_, entry)| **entry > 0.0) {
                target[i] += weight * entry * difference;
                gram[i].iter_mut().zip(row).for_each(|(sum, other)| *sum += weight * entry * other);
            }
        }
        (0..width).for_each(|i| gram[i][i] += ridge);
        minimise(&gram, &target, start, settled)
    }

    fn misfits(&self, prices: &[f64]) -> Vec<f64> {
        let sum = |row: &Vec<f64>| row.iter().zip(prices).map(|(entry, price)| entry * price).sum::<f64>();
        self.rows.iter().zip(&self.differences).map(|(row, difference)| difference - sum(row)).collect()
    }
}

/// A number of the exponential distribution with mean 1.
fn exponential(random: &mut Random) -> f64 {
    let uniform = ((random.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn priced(workload: &str, difference: f64, hooks: &[(&str, f64)]) -> Priced {
        let hooks = hooks.iter().map(|(hook, calls)| ((*hook).to_owned(), *calls)).collect();
        Priced { workload: workload.to_owned(), hooks, difference }
    }

    /// Prices of 200, 50 and 80; `inode_alloc` and `inode_free` only together, 30.
    pub(crate) fn workloads() -> Vec<Priced> {
        vec![
            priced("open", 200.0 + 7.0 * 50.0, &[("file_open", 1.0), ("inode_permission", 7.0)]),
            priced("open:d10", 200.0 + 14.0 * 50.0, &[("file_open", 1.0), ("inode_permission", 14.0)]),
            priced("stat", 80.0 + 6.0 * 50.0, &[("inode_getattr", 1.0), ("inode_permission", 6.0)]),
            priced("fstat", 80.0, &[("inode_getattr", 1.0)]),
            priced("creat", 30.0 + 700.0, &[("inode_alloc", 1.0), ("inode_free", 1.0), ("inode_permission", 14.0)]),
        ]
    }

    #[test]
    fn finds_the_prices_that_workloads_tell_apart() {
        let prices = Prices::estimate(&workloads()).unwrap();
        let price = |hook: &str| prices.prices[prices.hooks.iter().position(|own| own == hook).unwrap()];
        for (hook, known) in [("file_open", 200.0), ("inode_permission", 50.0), ("inode_getattr", 80.0)] {
            assert!((price(hook) / known - 1.0).abs() < 0.05, "{hook}: {}", price(hook));
        }
        assert!(prices.misfit < 0.02, "{}", prices.misfit);
        assert!((price("inode_alloc") - price("inode_free")).abs() < 1e-6);
    }

    #[test]
    fn tells_hooks_that_no_workload_tells_apart() {
        assert_eq!(inseparable(&workloads()), [["inode_alloc", "inode_free"]]);
    }

    #[test]
    fn is_sure_of_what_workloads_tell_and_unsure_of_the_rest() {
        let prices = Prices::estimate(&workloads()).unwrap();
        let range = |hook: &str| {
            let (_, mut all) = prices.of(&BTreeMap::from([(hook.to_owned(), 1.0)]));
            all.sort_by(f64::total_cmp);
            (all[REPLICATES * 9 / 10] - all[REPLICATES / 10]) / all[REPLICATES / 2]
        };
        assert!(range("inode_permission") < 0.1, "{}", range("inode_permission"));
        assert!(range("inode_alloc") > 0.3, "{}", range("inode_alloc"));
    }

    #[test]
    fn prices_nothing_where_a_module_adds_nothing() {
        let free: Vec<Priced> = workloads().into_iter().map(|one| Priced { difference: 0.0, ..one }).collect();
        let prices = Prices::estimate(&free).unwrap();
        assert!(prices.prices.iter().all(|price| *price < 0.01), "{:?}", prices.prices);
        assert_eq!(Prices::estimate(&[]), None);
    }
}
