//! Whether a difference is proven to be small: two one-sided t tests (Schuirmann 1987) of paired log ratios.

use super::{distribution::student, moments};

/// The coverage of the interval that must lie within the margin, for tests at 5 % each.
const LEVEL: f64 = 0.90;
/// The coverage of the interval that is shown.
const SHOWN: f64 = 0.95;

/// A mean difference in percent, of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equivalence {
    /// The difference of the geometric means, in percent of the first.
    pub percent: f64,
    /// Its confidence interval of 95 %.
    pub interval: (f64, f64),
    /// The interval of 90 % that decides.
    pub deciding: (f64, f64),
}

impl Equivalence {
    /// `None` with fewer than two pairs, or with figures that are not positive.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.iter().any(|(before, after)| *before <= 0.0 || *after <= 0.0) {
            return None;
        }
        let ratios: Vec<f64> = pairs.iter().map(|(before, after)| (after / before).ln()).collect();
        let mean = moments::mean(&ratios)?;
        let error = moments::standard_deviation(&ratios)? / (ratios.len() as f64).sqrt();
        let around = |level: f64| {
            let half = student(level, ratios.len() - 1)? * error;
            Some((in_percent(mean - half), in_percent(mean + half)))
        };
        Some(Self { percent: in_percent(mean), interval: around(SHOWN)?, deciding: around(LEVEL)? })
    }

    /// Whether the difference is proven to be less than this percentage, whatever its sign.
    #[must_use]
    pub fn is_within(&self, margin: f64) -> bool {
        self.deciding.0 > -margin && self.deciding.1 < margin
    }

    /// Whether it is proven that the second is at most so much more.
    #[must_use]
    pub fn is_less_than(&self, margin: f64) -> bool {
        self.deciding.1 < margin
    }
}

fn in_percent(ratio: f64) -> f64 {
    100.0 * ratio.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST/SEMATECH e-Handbook, 1.3.6.7.2: t of 9 degrees of freedom is 1.833 one-sided at 0.95, and 2.262 at 0.975.
    #[test]
    fn bounds_a_mean_by_the_handbooks_t() {
        let ratios = [0.01, -0.01, 0.02, 0.0, 0.01, 0.0, -0.02, 0.01, 0.0, -0.02_f64];
        let pairs: Vec<(f64, f64)> = ratios.iter().map(|ratio| (2.0, 2.0 * ratio.exp())).collect();
        let found = Equivalence::of(&pairs).unwrap();
        // The standard error of the mean 0 is sqrt(0.0016 / 9 / 10).
        let error = 100.0 * (0.0016_f64 / 90.0).sqrt();
        assert!(found.percent.abs() < 1e-9, "{found:?}");
        assert!((found.deciding.1 - 1.833 * error).abs() < 0.01, "{found:?}");
        assert!((found.interval.1 - 2.262 * error).abs() < 0.01, "{found:?}");
        assert!(found.is_within(1.0) && !found.is_within(0.7));
    }

    #[test]
    fn proves_nothing_by_few_or_scattered_pairs() {
        assert_eq!(Equivalence::of(&[(1.0, 1.0)]), None);
        assert_eq!(Equivalence::of(&[(1.0, 1.0), (0.0, 1.0)]), None);
        let scattered = Equivalence::of(&[(1.0, 1.2), (1.0, 0.8), (1.0, 1.0)]).unwrap();
        assert!(!scattered.is_within(1.0) && !scattered.is_less_than(1.0));
        let faster = Equivalence::of(&[(1.0, 0.80), (1.0, 0.81), (1.0, 0.80)]).unwrap();
        assert!(faster.is_less_than(1.0) && !faster.is_within(1.0));
    }
}
