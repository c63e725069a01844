//! Hodges-Lehmann estimators of location and shift.

use super::quantile::median;

/// The Hodges-Lehmann pseudomedian: the median of the means of all pairs, where each value is also paired with itself (Annals
/// of Mathematical Statistics 34, 1963). For paired differences it is the shift of Wilcoxon's signed-rank test. `None`
/// without values.
pub fn pseudomedian(values: &[f64]) -> Option<f64> {
    let walsh: Vec<f64> =
        values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| f64::midpoint(*a, *b))).collect();
    median(&walsh)
}

/// The Hodges-Lehmann shift of `after` against `before`, two independent samples: the median of all differences. `None` if
/// either is empty.
pub fn shift(before: &[f64], after: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = after.iter().flat_map(|a| before.iter().map(move |b| a - b)).collect();
    median(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hollander and Wolfe, Nonparametric Statistical Methods (1973), table 3.1: depression scale of nine patients
    /// before and after a tranquilliser; R's `wilcox.test` example. The book's estimate is 0.46.
    #[test]
    #[expect(clippy::approx_constant, reason = "3.14 is a patient's score")]
    fn agrees_with_hollander_and_wolfe_on_the_depression_data() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let drop: Vec<f64> = before.iter().zip(after).map(|(b, a)| b - a).collect();
        assert!((pseudomedian(&drop).unwrap() - 0.46).abs() < 1e-9);
    }

    /// Hollander and Wolfe, table 4.1: permeability of the chorioamnion at term and at 12 to 26 weeks; R's
    /// `wilcox.test` example. The book's estimate of the shift is 0.305.
    #[test]
    fn agrees_with_hollander_and_wolfe_on_the_permeability_data() {
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let weeks = [1.15, 0.88, 0.90, 0.74, 1.21];
        assert!((shift(&weeks, &term).unwrap() - 0.305).abs() < 1e-9);
    }

    #[test]
    fn gives_none_for_no_values() {
        assert_eq!(pseudomedian(&[]), None);
        assert_eq!(shift(&[], &[1.0]), None);
    }
}
