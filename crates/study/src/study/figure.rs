//! Which figure of a boot's samples stands for them.

use serde::{Deserialize, Serialize};
use tollgate_bench::workload::Tasks;

/// Which figure of a boot's samples configurations are compared by, on the instruction clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// The minimum, which timer ticks cannot lower; the median where tasks wait for one another, because the scheduler's
    /// luck can lower the minimum. It leaves out what the kernel puts off (RCU callbacks, deferred frees).
    #[default]
    Minimum,
    /// The mean, which holds all that ran: what was put off, and the timer's ticks.
    Mean,
}

impl Figure {
    /// Takes one of the three.
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
