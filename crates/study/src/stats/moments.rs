//! Mean and standard deviation.

/// The arithmetic mean; `None` of no values.
///
/// The second pass takes up what rounding lost in the first (Chan, Golub and LeVeque, The American Statistician 37, 1983).
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let rough = values.iter().sum::<f64>() / n;
    Some(rough + values.iter().map(|v| v - rough).sum::<f64>() / n)
}

/// The sample standard deviation (divisor n - 1), by the corrected two-pass algorithm; `None` of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    let drift: f64 = values.iter().map(|v| v - centre).sum();
    Some(((squares - drift * drift / n) / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A first value, then 500 times the pair: how NIST's NumAcc2, 3 and 4 are made.
    fn alternating(first: f64, low: f64, high: f64) -> Vec<f64> {
        std::iter::once(first).chain((0..500).flat_map(|_| [low, high])).collect()
    }

    /// Decimal digits that agree, as NIST counts them: -log10 of the relative error.
    fn digits(ours: f64, certified: f64) -> f64 {
        let error = ((ours - certified) / certified).abs();
        if error == 0.0 { 15.0 } else { -error.log10() }
    }

    /// NIST Statistical Reference Datasets, univariate summary statistics: certified mean and standard deviation.
    /// A double holds `NumAcc3`'s and `NumAcc4`'s data to 9 and 8 digits of their deviation.
    #[test]
    fn agrees_with_nist_on_numacc_1_to_4() {
        let sets = [
            (vec![10_000_001.0, 10_000_003.0, 10_000_002.0], 10_000_002.0, 1.0, 15.0),
            (alternating(1.2, 1.1, 1.3), 1.2, 0.1, 14.0),
            (alternating(1_000_000.2, 1_000_000.1, 1_000_000.3), 1_000_000.2, 0.1, 9.0),
            (alternating(10_000_000.2, 10_000_000.1, 10_000_000.3), 10_000_000.2, 0.1, 8.0),
        ];
        for (number, (data, certified_mean, certified_sd, sd_digits)) in sets.iter().enumerate() {
            let (m, s) = (mean(data).unwrap(), standard_deviation(data).unwrap());
            assert!(digits(m, *certified_mean) >= 14.0, "NumAcc{} mean {m}", number + 1);
            assert!(digits(s, *certified_sd) >= *sd_digits, "NumAcc{} deviation {s}", number + 1);
        }
    }

    /// Adding a tenth a thousand times loses the last digits of it; the second pass finds them.
    #[test]
    fn finds_the_mean_of_a_thousand_tenths_to_the_last_bit() {
        assert_eq!(mean(&[0.1; 1000]), Some(0.1));
    }

    #[test]
    fn gives_none_where_there_is_no_deviation_to_speak_of() {
        assert_eq!(mean(&[]), None);
        assert_eq!(standard_deviation(&[1.0]), None);
    }
}
