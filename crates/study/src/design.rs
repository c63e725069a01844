//! A designed experiment: which hooks are delayed in which run.
//!
//! All slopes are found at once, each as exactly as if its hook alone had been varied in every run (Plackett and Burman,
//! Biometrika 33, 1946).

mod hadamard;

use serde::{Deserialize, Serialize};

use crate::stats::random::Random;

/// Whether a program that takes time can be attached to a hook of this name.
#[must_use]
pub fn is_hook(name: &str) -> bool {
    tollgate_abi::hook(name).is_some()
}

/// The parameters of a design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The hooks, each once.
    pub hooks: Vec<String>,
    /// The delay of the higher level, in units; the lower level is no delay.
    pub units: u64,
    /// Runs with every hook at half the units. They show how much equal runs differ, and whether the cost is a line.
    pub centres: u32,
    /// Whether each run has its opposite. Interactions of two hooks then stay out of the slopes.
    pub folded: bool,
    /// The seed of the order of the runs.
    pub seed: u64,
}

/// The runs, in the order in which they are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Design {
    /// The plan that it follows.
    pub plan: Plan,
    /// The order of the Hadamard matrix.
    pub order: usize,
    /// Units of delay by hook, in the order of the plan's hooks.
    pub runs: Vec<Vec<u64>>,
}

impl Plan {
    /// Makes the design.
    #[must_use]
    pub fn design(self) -> Design {
        // The first column belongs to the constant.
        let matrix = hadamard::at_least(self.hooks.len() + 1);
        let level = |high: bool| if high { self.units } else { 0 };
        let mut runs = Vec::new();
        for row in &matrix {
            runs.push(row[1..=self.hooks.len()].iter().map(|high| level(*high)).collect());
            if self.folded {
                runs.push(row[1..=self.hooks.len()].iter().map(|high| level(!high)).collect());
            }
        }
        runs.extend((0..self.centres).map(|_| vec![self.units / 2; self.hooks.len()]));
        Random::new(self.seed).shuffle(&mut runs);
        Design { order: matrix.len(), plan: self, runs }
    }
}

impl Design {
    /// Each run as hooks with their units, those without delay left out.
    pub fn delays(&self) -> impl Iterator<Item = Vec<(&str, u64)>> {
        self.runs.iter().map(|run| {
            let named = self.plan.hooks.iter().map(String::as_str).zip(run.iter().copied());
            named.filter(|(_, units)| *units > 0).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(hooks: usize, folded: bool) -> Plan {
        Plan { hooks: (0..hooks).map(|n| format!("h{n}")).collect(), units: 100, centres: 3, folded, seed: 1 }
    }

    #[test]
    fn varies_each_hook_in_half_the_runs_and_any_two_apart_from_one_another() {
        for (hooks, folded) in [(1, true), (7, true), (10, false), (23, true), (120, true)] {
            let design = plan(hooks, folded).design();
            let runs: Vec<_> = design.runs.iter().filter(|run| run[0] != 50).collect();
            assert_eq!(runs.len(), design.order * if folded { 2 } else { 1 });
            for one in 0..hooks {
                assert_eq!(2 * runs.iter().filter(|run| run[one] == 100).count(), runs.len());
                for other in one + 1..hooks {
                    assert_eq!(2 * runs.iter().filter(|run| run[one] == run[other]).count(), runs.len());
                }
            }
        }
    }

    #[test]
    fn holds_the_opposite_of_each_run_when_folded() {
        let design = plan(7, true).design();
        for run in &design.runs {
            let opposite: Vec<u64> = run.iter().map(|units| 100 - units).collect();
            assert!(design.runs.contains(&opposite), "{run:?}");
        }
    }

    #[test]
    fn repeats_the_centre_and_keeps_the_order_of_a_seed() {
        let design = plan(5, true).design();
        assert_eq!(design.runs.iter().filter(|run| **run == [50; 5]).count(), 3);
        assert_eq!(design, plan(5, true).design());
        let other = Plan { seed: 2, ..plan(5, true) }.design();
        assert_ne!(design.runs, other.runs);
        let sorted = |design: &Design| {
            let mut runs = design.runs.clone();
            runs.sort();
            runs
        };
        assert_eq!(sorted(&design), sorted(&other));
    }

    #[test]
    fn names_the_hooks_that_take_longer_in_a_run() {
        let design = Plan { centres: 0, ..plan(1, false) }.design();
        let delays: Vec<_> = design.delays().collect();
        assert_eq!(design.order, 2);
        assert!(delays.contains(&vec![("h0", 100)]) && delays.contains(&Vec::new()), "{delays:?}");
    }
}
