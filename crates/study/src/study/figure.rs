//! The figure that represents a boot's samples.

use serde::{Deserialize, Serialize};
use tollgate_bench::workload::Tasks;

/// The figure by which configurations are compared, on the instruction clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// The minimum, which timer ticks cannot lower; the median if tasks wait for one another, because the scheduler's luck
    /// can lower the minimum. It leaves out work that the kernel defers (RCU callbacks, deferred frees).
    #[default]
    Minimum,
    /// The mean, which contains everything that ran, including deferred work and timer ticks.
    Mean,
}

impl Figure {
    /// Chooses one of the three.
    pub fn choose(self, tasks: Tasks, min: f64, median: f64, mean: f64) -> f64 {
        match (self, tasks) {
            (Self::Minimum, Tasks::One) => min,
            (Self::Minimum, Tasks::Several) => median,
            (Self::Mean, _) => mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_median_where_tasks_wait_for_one_another() {
        let figure = |tasks| Figure::Minimum.choose(tasks, 10.0, 12.0, 13.0);
        assert_eq!((figure(Tasks::One), figure(Tasks::Several)), (10.0, 12.0));
        assert_eq!(Figure::Mean.choose(Tasks::Several, 10.0, 12.0, 13.0), 13.0);
    }
}
