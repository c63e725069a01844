//! Statistics of wall time. Every round runs each configuration once, so rounds pair configurations.
//!
//! A disturbance affects neighbours in a round alike, and ratios within a round cancel it. Rank statistics over rounds are
//! robust against the rest.

use std::collections::BTreeMap;

use super::{bootstrap::Bootstrap, exact::Difference, location, quantile::median};

/// Fewer pairs give no interval: resampling five or fewer cannot reach 95 % coverage.
pub const MIN_PAIRS: usize = 6;

/// Coverage of the confidence intervals.
pub const LEVEL: f64 = 0.95;

const RESAMPLES: u32 = 2000;

/// Fixed, so that the same samples always give the same interval.
const SEED: u64 = 0x746f_6c6c_6761_7465;

/// One figure per round, by the round's number.
pub type Rounds = BTreeMap<u32, f64>;

/// The difference between two configurations that the same rounds ran: the Hodges-Lehmann shift of the paired log ratios as a
/// percentage, with its bootstrap percentile interval. `None` with fewer than [`MIN_PAIRS`] common rounds.
pub fn paired(baseline: &Rounds, own: &Rounds) -> Option<Difference> {
    let pairs: Vec<(f64, f64)> = own
        .iter()
        .filter_map(|(round, o)| Some((*baseline.get(round)?, *o)))
        .filter(|p| p.0 > 0.0 && p.1 > 0.0)
        .collect();
    if pairs.len() < MIN_PAIRS {
        return None;
    }
    let ratios: Vec<f64> = pairs.iter().map(|(b, o)| (o / b).ln()).collect();
    let differences: Vec<f64> = pairs.iter().map(|(b, o)| o - b).collect();
    let (low, high) = Bootstrap::of(&ratios, RESAMPLES, SEED, location::pseudomedian)?.interval(LEVEL)?;
    Some(Difference {
        absolute: location::pseudomedian(&differences)?,
        percent: in_percent(location::pseudomedian(&ratios)?),
        low: in_percent(low),
        high: in_percent(high),
    })
}

/// The difference in percent between two separate runs, which share no rounds: the two-sample Hodges-Lehmann shift of
/// the logarithms. `None` if either has no rounds.
pub fn unpaired(before: &Rounds, after: &Rounds) -> Option<f64> {
    let logs = |rounds: &Rounds| rounds.values().filter(|v| **v > 0.0).map(|v| v.ln()).collect::<Vec<f64>>();
    location::shift(&logs(before), &logs(after)).map(in_percent)
}

/// The apparent differences of an A/A pair, the same machine under two names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FalseDifference {
    /// Median over workloads of the difference without its sign, in percent.
    pub median: f64,
    /// The largest difference without its sign, in percent.
    pub largest: f64,
    /// The number of workloads whose interval includes 0, as it should.
    pub nothing: usize,
    /// The number of compared workloads.
    pub workloads: usize,
}

impl FalseDifference {
    /// `None` without workloads.
    pub fn of(differences: &[Difference]) -> Option<Self> {
        let sizes: Vec<f64> = differences.iter().map(|d| d.percent.abs()).collect();
        Some(Self {
            median: median(&sizes)?,
            largest: sizes.iter().copied().fold(0.0, f64::max),
            nothing: differences.iter().filter(|d| d.is_nothing()).count(),
            workloads: differences.len(),
        })
    }
}

fn in_percent(log_ratio: f64) -> f64 {
    100.0 * log_ratio.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(figures: &[f64]) -> Rounds {
        (0..).zip(figures.iter().copied()).collect()
    }

    /// A machine whose speed varies by a factor of three, but little between neighbours in a round.
    const WANDERING: [f64; 10] = [100., 300., 150., 120., 250., 110., 180., 290., 105., 140.];

    #[test]
    fn finds_a_known_slowdown_on_a_machine_that_wanders() {
        let slower: Vec<f64> = WANDERING
            .iter()
            .zip([1.0, -0.5, 0.3, -1.0, 0.5].iter().cycle())
            .map(|(t, e)| t * (1.10 + e / 100.0))
            .collect();
        let difference = paired(&rounds(&WANDERING), &rounds(&slower)).unwrap();
        assert!((difference.percent - 10.0).abs() < 0.3, "{difference:?}");
        assert!(difference.low > 9.0 && difference.high < 11.0 && difference.low < difference.high, "{difference:?}");
        assert!(!difference.is_nothing());
    }

    #[test]
    fn finds_nothing_between_a_machine_and_itself() {
        let again: Vec<f64> =
            WANDERING.iter().zip([1.0, -1.0].iter().cycle()).map(|(t, e)| t * (1.0 + e / 100.0)).collect();
        assert!(paired(&rounds(&WANDERING), &rounds(&again)).unwrap().is_nothing());
    }

    #[test]
    fn pairs_by_round_and_not_by_position() {
        let (mut baseline, mut own) = (rounds(&WANDERING), rounds(&WANDERING));
        baseline.remove(&0);
        own.remove(&3);
        let difference = paired(&baseline, &own).unwrap();
        assert_eq!((difference.percent, difference.low, difference.high), (0.0, 0.0, 0.0));
    }

    #[test]
    fn refuses_an_interval_from_too_few_rounds() {
        let few = rounds(&WANDERING[..MIN_PAIRS - 1]);
        assert_eq!(paired(&few, &few), None);
        let enough = rounds(&WANDERING[..MIN_PAIRS]);
        assert!(paired(&enough, &enough).is_some());
    }

    #[test]
    fn finds_the_shift_between_separate_runs() {
        let percent = unpaired(&rounds(&[100.0, 101.0, 99.0]), &rounds(&[120.0, 121.2, 118.8])).unwrap();
        assert!((percent - 20.0).abs() < 1e-9, "{percent}");
    }

    #[test]
    fn reports_the_aa_pair_s_false_difference() {
        let one =
            |percent: f64, half: f64| Difference { absolute: 0.0, percent, low: percent - half, high: percent + half };
        let aa = FalseDifference::of(&[one(0.2, 0.5), one(-0.4, 0.5), one(3.0, 1.0)]).unwrap();
        assert_eq!(aa, FalseDifference { median: 0.4, largest: 3.0, nothing: 2, workloads: 3 });
    }
}
