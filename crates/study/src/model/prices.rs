//! The price of each hook under a module, estimated from bench workloads alone.
//!
//! A workload's difference to the baseline is the sum of its hooks' prices, none of which is negative. There are more hooks
//! than the workloads can separate, so each price is drawn towards the module's usual price of a call, as far as a misfit of
//! [`MISFIT`] leaves it free: where workloads separate hooks they decide, elsewhere the price is shared evenly. A hook costs
//! more on some paths than on others, so workloads are off by a share of their cost. The share is of the sum of the prices,
//! not of the measured difference: otherwise workloads that are cheap by chance weigh most, and all prices come out too low
//! (McCullagh and Nelder, Generalized Linear Models, chapters 8 and 9: constant coefficient of variation, quasi-likelihood).

use std::collections::{BTreeMap, BTreeSet};

use crate::stats::{nonnegative::minimise, quantile::median, random::Random};

/// A workload's misfit, as a share of the sum of its prices, that weighs as much as a price of nothing, or of twice the usual
/// one. Misfits occur because a hook costs more on some paths than on others.
const MISFIT: f64 = 0.02;
/// How often prices are estimated again, each time with the sums of the previous prices.
const ITERATIONS: usize = 8;
/// The number of estimates from which an interval is taken.
pub const REPLICATES: usize = 400;
/// The least usual price, as a share of the mean absolute difference per call, because a module may leave most workloads
/// alone.
const MIN_USUAL_SHARE: f64 = 0.5;
/// The usual price if nothing differs, in the clock's unit.
const FALLBACK_PRICE: f64 = 1e-6;
/// The seed of the replicates.
const SEED: u64 = 1;

/// A workload: what a module adds to it, and the hooks that it passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Priced {
    /// The workload's selection.
    pub workload: String,
    /// Calls of each hook, per operation.
    pub hooks: BTreeMap<String, f64>,
    /// Its cost under the module less its cost under the baseline, in the clock's unit.
    pub difference: f64,
}

/// The prices of hooks under one module.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// The hooks that some workload passes.
    pub hooks: Vec<String>,
    /// The estimated price of one call of each hook, in the clock's unit.
    pub prices: Vec<f64>,
    /// Other estimates, equally likely, each with the misfit, as a share, of a prediction by it.
    pub replicates: Vec<(Vec<f64>, f64)>,
    /// The root mean square of the workloads' misfits, as shares.
    pub misfit: f64,
}

impl Prices {
    /// Estimates the prices; `None` without workloads that pass a hook.
    ///
    /// The replicates are a Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981): each workload has a random weight, and
    /// none is left out, because some hooks are priced by one workload alone. The prices that others are drawn towards are
    /// random as well, so that the interval is wide if the workloads do not determine a price.
    #[must_use]
    pub fn estimate(workloads: &[Priced]) -> Option<Self> {
        let workloads: Vec<&Priced> = workloads.iter().filter(|one| one.hooks.values().any(|n| *n > 0.0)).collect();
        let passed = workloads.iter().flat_map(|one| one.hooks.iter().filter(|(_, n)| **n > 0.0).map(|(hook, _)| hook));
        let hooks: Vec<String> = passed.collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let mut system = System::of(&workloads, &hooks)?;
        let even = vec![1.0; workloads.len()];
        let toward = vec![system.usual; hooks.len()];
        let mut prices = system.solve(&even, &toward, &toward);
        for _ in 0..ITERATIONS {
            system.resize(&prices);
            prices = system.solve(&even, &toward, &prices);
        }
        let misfits = system.misfits(&prices);
        let mut random = Random::new(SEED);
        let replicates = (0..REPLICATES).map(|_| {
            let weights: Vec<f64> = workloads.iter().map(|_| exponential(&mut random)).collect();
            let toward: Vec<f64> = hooks.iter().map(|_| system.usual * exponential(&mut random)).collect();
            let misfit = misfits[random.below(misfits.len())];
            (system.solve(&weights, &toward, &prices), misfit)
        });
        let replicates = replicates.collect();
        let misfit = (misfits.iter().map(|misfit| misfit * misfit).sum::<f64>() / misfits.len() as f64).sqrt();
        Some(Self { hooks, prices, replicates, misfit })
    }

    /// The cost of this many calls of each hook, by these prices and by each replicate's, with its misfit.
    #[must_use]
    pub fn of(&self, calls: &BTreeMap<String, f64>) -> (f64, Vec<f64>) {
        let calls: Vec<f64> = self.hooks.iter().map(|hook| calls.get(hook).copied().unwrap_or(0.0)).collect();
        let replicates = self.replicates.iter().map(|(prices, misfit)| total(&calls, prices) * (1.0 + misfit).max(0.0));
        (total(&calls, &self.prices), replicates.collect())
    }
}

/// Hooks that all workloads pass in the same proportion: only their sum has a price.
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

/// The least-squares problem.
struct System {
    /// One row per workload: its calls of each hook.
    rows: Vec<Vec<f64>>,
    /// What the module adds to each workload.
    differences: Vec<f64>,
    /// The size of each workload, of which its misfit is a share.
    sizes: Vec<f64>,
    /// The usual price of a call: the median over workloads, so that one cheap workload does not draw all prices down.
    usual: f64,
}

impl System {
    fn of(workloads: &[&Priced], hooks: &[String]) -> Option<Self> {
        if workloads.is_empty() {
            return None;
        }
        let calls = |one: &Priced| one.hooks.values().sum::<f64>();
        let row = |one: &&Priced| hooks.iter().map(|hook| one.hooks.get(hook).copied().unwrap_or(0.0)).collect();
        let prices: Vec<f64> = workloads.iter().map(|one| one.difference / calls(one)).collect();
        let sum = |of: &dyn Fn(&Priced) -> f64| workloads.iter().map(|one| of(one)).sum::<f64>();
        let least = MIN_USUAL_SHARE * sum(&|one| one.difference.abs()) / sum(&calls);
        let usual = median(&prices)?.max(least).max(FALLBACK_PRICE);
        Some(Self {
            rows: workloads.iter().map(row).collect(),
            differences: workloads.iter().map(|one| one.difference).collect(),
            sizes: workloads.iter().map(|one| one.difference.abs() + calls(one)).collect(),
            usual,
        })
    }

    /// Sets sizes to the sums of the prices. A size is at least one instruction per call; otherwise workloads that a module
    /// leaves alone would weigh infinitely.
    fn resize(&mut self, prices: &[f64]) {
        self.sizes = self.rows.iter().map(|row| total(row, prices) + row.iter().sum::<f64>()).collect();
    }

    /// Prices with these weights of the workloads, drawn `toward` these. It is faster if the same prices are above 0 in
    /// `start`.
    fn solve(&self, weights: &[f64], toward: &[f64], start: &[f64]) -> Vec<f64> {
        let width = toward.len();
        let ridge = (MISFIT / self.usual).powi(2);
        let mut gram = vec![vec![0.0; width]; width];
        let mut target: Vec<f64> = toward.iter().map(|price| ridge * price).collect();
        for (((row, difference), size), weight) in self.rows.iter().zip(&self.differences).zip(&self.sizes).zip(weights)
        {
            let weight = weight / (size * size);
            for (i, entry) in row.iter().enumerate().filter(|(_, entry)| **entry > 0.0) {
                target[i] += weight * entry * difference;
                gram[i].iter_mut().zip(row).for_each(|(sum, other)| *sum += weight * entry * other);
            }
        }
        (0..width).for_each(|i| gram[i][i] += ridge);
        minimise(&gram, &target, start)
    }

    /// Misfits as shares of the workloads' sizes, or of their differences if those are greater, because a small size would
    /// give a huge share.
    fn misfits(&self, prices: &[f64]) -> Vec<f64> {
        let workloads = self.rows.iter().zip(&self.differences).zip(&self.sizes);
        workloads
            .map(|((row, difference), size)| (difference - total(row, prices)) / size.max(difference.abs()))
            .collect()
    }
}

/// The cost of this many calls of each hook at these prices.
fn total(calls: &[f64], prices: &[f64]) -> f64 {
    calls.iter().zip(prices).map(|(calls, price)| calls * price).sum()
}

/// A random number of the exponential distribution with mean 1.
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

    /// A hook costs 1000, 2000 or 3000, by its path: its price is not the cheapest.
    #[test]
    fn prices_a_hook_at_its_mean_where_it_costs_more_on_some_ways() {
        let one = |(number, cost): (usize, f64)| priced(&number.to_string(), cost, &[("path_chmod", 1.0)]);
        let workloads: Vec<Priced> = [1000.0, 2000.0, 3000.0].into_iter().enumerate().map(one).collect();
        let prices = Prices::estimate(&workloads).unwrap();
        assert!((prices.prices[0] / 2000.0 - 1.0).abs() < 0.01, "{:?}", prices.prices);
        assert!((0.3..0.5).contains(&prices.misfit), "{}", prices.misfit);
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

    /// The 10th and the 90th percentile of what a call of the hook costs.
    fn range(workloads: &[Priced], hook: &str) -> (f64, f64) {
        let (_, mut all) = Prices::estimate(workloads).unwrap().of(&BTreeMap::from([(hook.to_owned(), 1.0)]));
        all.sort_by(f64::total_cmp);
        (all[REPLICATES / 10], all[REPLICATES * 9 / 10])
    }

    /// Forty workloads determine the sum of two hooks' prices, and none determines each price.
    #[test]
    fn is_unsure_of_one_of_two_hooks_that_many_workloads_pass_together() {
        let pair = [("file_alloc", 1.0), ("file_free", 1.0)];
        let mut together: Vec<Priced> = (0..40).map(|n| priced(&n.to_string(), 20.0, &pair)).collect();
        together.push(priced("exec", 600.0, &[("bprm_check", 1.0)]));
        let (low, high) = range(&together, "file_free");
        assert!(low < 4.0 && 16.0 < high, "{low} to {high}");
    }

    #[test]
    fn prices_hooks_though_one_workload_is_cheaper_by_chance() {
        let known = Prices::estimate(&workloads()).unwrap();
        for (calls, difference) in [(0.001, -500.0), (1.0, -5000.0)] {
            let mut all = workloads();
            all.push(priced("null", difference, &[("task_alloc", calls)]));
            let prices = Prices::estimate(&all).unwrap();
            let price = |prices: &Prices, hook| prices.of(&BTreeMap::from([(String::from(hook), 1.0)])).0;
            for hook in ["file_open", "inode_permission", "inode_getattr"] {
                let (price, known) = (price(&prices, hook), price(&known, hook));
                assert!((price / known - 1.0).abs() < 0.1, "{hook}: {price}, {known} without");
            }
        }
    }

    /// As many workloads and hooks as the bench has: it takes a second of processor time, not minutes.
    #[test]
    fn prices_a_hundred_hooks_at_once() {
        let mut random = Random::new(3);
        let names: Vec<String> = (0..110).map(|n| format!("hook_{n}")).collect();
        let workloads: Vec<Priced> = (0..75)
            .map(|n| {
                let hooks: Vec<(&str, f64)> = (0..12)
                    .map(|_| (names[random.below(names.len())].as_str(), 1.0 + random.below(9) as f64))
                    .collect();
                priced(&n.to_string(), 100.0 + random.below(5000) as f64, &hooks)
            })
            .collect();
        let began = std::time::Instant::now();
        let prices = Prices::estimate(&workloads).unwrap();
        println!("{} hooks, {:?}", prices.hooks.len(), began.elapsed());
        assert!(prices.prices.iter().all(|price| price.is_finite() && *price >= 0.0));
    }

    #[test]
    fn prices_nothing_where_a_module_adds_nothing() {
        let free: Vec<Priced> = workloads().into_iter().map(|one| Priced { difference: 0.0, ..one }).collect();
        let prices = Prices::estimate(&free).unwrap();
        assert!(prices.prices.iter().all(|price| *price < 0.01), "{:?}", prices.prices);
        assert_eq!(Prices::estimate(&[]), None);
    }
}
