//! Statistics of instruction counts. They repeat to the instruction, so the minimum is a fact and not an estimate. A mean
//! repeats too, but depends on how much of the kernel's own work fell into the samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    moments::{error_of_mean, mean},
    quantile::{ascending, median, quantile},
};

/// Statistics of the samples of one boot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The smallest sample.
    pub min: f64,
    /// The median of the samples.
    pub median: f64,
    /// The mean of the samples.
    pub mean: f64,
    /// The standard error of the mean; absent for a single sample.
    pub mean_error: Option<f64>,
    /// The range between the 10th and the 90th percentile, in percent of the median.
    pub spread: f64,
    /// How many samples equal the smallest.
    pub at_min: usize,
}

impl Summary {
    /// For samples in the order taken; `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let sorted = ascending(samples);
        let min = *sorted.first()?;
        let middle = quantile(&sorted, 0.5)?;
        let width = quantile(&sorted, 0.9)? - quantile(&sorted, 0.1)?;
        Some(Self {
            min,
            median: middle,
            mean: mean(samples)?,
            mean_error: error_of_mean(samples),
            spread: if middle == 0.0 { 0.0 } else { 100.0 * width / middle },
            at_min: sorted.iter().take_while(|&&s| s == min).count(),
        })
    }
}

/// One figure over boots that differ in layout or round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Over {
    /// The median over the boots' figures.
    pub figure: f64,
    /// The smallest boot's figure.
    pub low: f64,
    /// The largest boot's figure.
    pub high: f64,
}

impl Over {
    /// `None` without boots.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let sorted = ascending(figures);
        Some(Self { figure: median(&sorted)?, low: *sorted.first()?, high: *sorted.last()? })
    }
}

/// Instruction counts of one workload, by memory layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Layouts {
    /// The figure of each padding.
    pub figures: BTreeMap<u32, f64>,
    /// The standard error of the figure; 0 for a minimum, which does not depend on chance.
    pub error: f64,
}

/// Two or three paddings seldom include the extremes, so the margin is this many times the range of the differences.
const RANGE_FACTOR: f64 = 2.0;

/// A difference counts if it exceeds this many of its standard errors; about 95 % of chance differences are smaller.
const STANDARD_ERRORS: f64 = 2.0;

/// A configuration's difference to the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// In the workload's unit, per operation.
    #[serde(serialize_with = "crate::number::one")]
    pub absolute: f64,
    /// In percent of the baseline.
    #[serde(serialize_with = "crate::number::one")]
    pub percent: f64,
    /// Lower end of the percentage: by layout and chance (instructions), or of the 95 % confidence interval (wall).
    #[serde(serialize_with = "crate::number::one")]
    pub low: f64,
    /// Upper end of the percentage.
    #[serde(serialize_with = "crate::number::one")]
    pub high: f64,
}

impl Difference {
    /// The difference of two instruction counts: the median over common paddings, each against the same padding of the
    /// baseline, because most of what a padding moves, it moves under every configuration. The margin of the percentage is
    /// twice the range of these differences, or twice the standard error of the difference if that is more. `None` without a
    /// common padding, and for a baseline of 0.
    pub fn of_layouts(baseline: &Layouts, own: &Layouts) -> Option<Self> {
        let pairs = own.figures.iter().filter_map(|(padding, own)| Some((*baseline.figures.get(padding)?, own)));
        let (reference, differences): (Vec<f64>, Vec<f64>) = pairs.map(|(base, own)| (base, own - base)).unzip();
        let in_percent = 100.0 / Some(median(&reference)?).filter(|figure| *figure != 0.0)?;
        let over = Over::of(&differences)?;
        let by_layout = RANGE_FACTOR * (over.high - over.low);
        let by_chance = STANDARD_ERRORS * baseline.error.hypot(own.error);
        let (percent, margin) = (over.figure * in_percent, by_layout.max(by_chance) * in_percent);
        Some(Self { absolute: over.figure, percent, low: percent - margin, high: percent + margin })
    }

    /// Whether the interval includes no difference.
    pub fn is_nothing(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }

    /// Whether both figures are equal, and no padding makes them differ.
    pub fn is_none_at_all(&self) -> bool {
        self.low == 0.0 && self.high == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_minimum_median_spread_and_how_many_are_at_the_minimum() {
        // R: x <- c(337,337,337,340,337,352,337,337,341,337); quantile(x, c(.1,.5,.9)) is 337, 337 and 342.1
        let samples = [337., 337., 337., 340., 337., 352., 337., 337., 341., 337.];
        let summary = Summary::of(&samples).unwrap();
        assert_eq!((summary.min, summary.median, summary.at_min), (337.0, 337.0, 7));
        assert!((summary.spread - 100.0 * 5.1 / 337.0).abs() < 1e-9, "{}", summary.spread);
    }

    #[test]
    fn holds_what_is_put_off_in_the_mean_alone() {
        // Every fourth operation does the work that the other three have deferred.
        let summary = Summary::of(&[100.0, 100.0, 100.0, 180.0].repeat(10)).unwrap();
        assert_eq!((summary.min, summary.median, summary.mean), (100.0, 100.0, 120.0));
        assert_eq!(summary.mean_error, Some(0.0));
    }

    /// Figures without chance, paddings 0 and on.
    fn layouts(figures: &[f64]) -> Layouts {
        Layouts { figures: (0..).zip(figures.iter().copied()).collect(), error: 0.0 }
    }

    #[test]
    fn holds_a_difference_of_means_within_two_standard_errors_for_nothing() {
        let mean = |figure| Layouts { error: 3.0, ..layouts(&[figure]) };
        // The error of the difference is the root of 3 * 3 + 3 * 3, 4.24.
        let within = Difference::of_layouts(&mean(1000.0), &mean(1008.0)).unwrap();
        assert!(within.is_nothing() && !within.is_none_at_all(), "{within:?}");
        let beyond = Difference::of_layouts(&mean(1000.0), &mean(1009.0)).unwrap();
        assert!(!beyond.is_nothing(), "{beyond:?}");
        assert!((beyond.high - beyond.low - 4.0 * 0.4243).abs() < 1e-3, "{beyond:?}");
    }

    #[test]
    fn gives_none_for_no_samples() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Over::of(&[]), None);
    }

    #[test]
    fn reports_the_facts_difference_of_open_and_close_under_selinux() {
        // 6252 and 7979 instructions: +27.6 %
        let difference = Difference::of_layouts(&layouts(&[6252.0]), &layouts(&[7979.0])).unwrap();
        assert_eq!(difference.absolute, 1727.0);
        assert_eq!(format!("{:+.1}", difference.percent), "+27.6");
        assert!(!difference.is_nothing());
    }

    #[test]
    fn holds_a_difference_within_twice_its_range_over_layouts_for_nothing() {
        let baseline = layouts(&[1000.0, 1010.0, 1004.0]);
        let within = Difference::of_layouts(&baseline, &layouts(&[1008.0, 1014.0, 1010.0])).unwrap();
        assert_eq!(within.absolute, 6.0); // of 8, 4 and 6: the range is 4
        assert!(within.is_nothing() && !within.is_none_at_all());
        let beyond = Difference::of_layouts(&baseline, &layouts(&[1011.0, 1017.0, 1013.0])).unwrap();
        assert!(!beyond.is_nothing());
    }

    /// fork+exit: one padding makes the process's page tables a page larger, under SELinux too.
    #[test]
    fn finds_a_difference_that_every_layout_agrees_on_however_far_layouts_are_apart() {
        let baseline = layouts(&[197_433.0, 203_914.0, 197_441.0]);
        let selinux = Difference::of_layouts(&baseline, &layouts(&[199_331.0, 205_810.0, 199_336.0])).unwrap();
        assert_eq!((selinux.absolute, format!("{:+.1}", selinux.percent).as_str()), (1896.0, "+1.0"));
        assert!(!selinux.is_nothing(), "{selinux:?}");
    }

    #[test]
    fn compares_only_paddings_that_both_have() {
        let baseline = layouts(&[1000.0, 2000.0]);
        let second = Layouts { figures: BTreeMap::from([(1, 2100.0)]), error: 0.0 };
        let difference = Difference::of_layouts(&baseline, &second).unwrap();
        assert_eq!((difference.absolute, difference.percent), (100.0, 5.0));
        let third = Layouts { figures: BTreeMap::from([(2, 2100.0)]), error: 0.0 };
        assert_eq!(Difference::of_layouts(&baseline, &third), None);
    }

    #[test]
    fn tells_the_same_figure_from_one_within_the_range() {
        let one = layouts(&[337.0]);
        assert!(Difference::of_layouts(&one, &one).unwrap().is_none_at_all());
        assert_eq!(Difference::of_layouts(&layouts(&[0.0]), &one), None);
    }
}
