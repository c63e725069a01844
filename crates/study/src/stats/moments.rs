//! Mean, standard deviation, and the standard error of a mean.

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

/// The sample standard deviation (divisor n - 1), by the corrected two-pass algorithm; `None` with fewer than two values.
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

/// The number of batches: 10 to 30 are enough to know the error, and fewer, larger ones hide less of the correlation of
/// samples (Schmeiser, Operations Research 30, 1982).
const BATCHES: usize = 10;

/// The standard error of the mean of successive samples, by the method of batch means (Law and Kelton, Simulation Modeling
/// and Analysis, 9.5.3); `None` of fewer than two.
///
/// What a kernel puts off and then does for many operations at once comes round like clockwork: the textbook's error, which
/// takes samples for independent, would be several times too large. Each of 10 successive batches holds about as much of it
/// as any other. Fewer than 20 samples are batches by themselves.
pub fn error_of_mean(successive: &[f64]) -> Option<f64> {
    let n = successive.len();
    let batches = if n < 2 * BATCHES { n } else { BATCHES };
    let means: Vec<f64> =
        (0..batches).filter_map(|i| mean(&successive[i * n / batches..(i + 1) * n / batches])).collect();
    Some(standard_deviation(&means)? / (means.len() as f64).sqrt())
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

    /// NumAcc1's certified deviation is 1, so the error of its mean is one over the root of three.
    #[test]
    fn agrees_with_nist_on_the_error_of_a_mean_of_few_samples() {
        let error = error_of_mean(&[10_000_001.0, 10_000_003.0, 10_000_002.0]).unwrap();
        assert!(digits(error, 1.0 / 3.0_f64.sqrt()) >= 14.0, "{error}");
    }

    /// Box, Jenkins and Reinsel, Time Series Analysis, 2.1.4: the mean of n samples of a first-order autoregressive process
    /// with parameter f and innovations of deviation s has the error s / (1 - f) / sqrt(n) for large n.
    #[test]
    fn finds_the_error_of_a_mean_of_samples_that_hang_together() {
        let mut random = crate::stats::random::Random::new(1);
        let mut errors = Vec::new();
        for _ in 0..200 {
            let mut last = 0.0;
            let mut uniform = || random.below(1 << 20) as f64 / f64::from(1 << 20);
            let series: Vec<f64> = (0..2000)
                .map(|_| {
                    // Twelve uniform numbers less 6: deviation 1, normal enough.
                    last = 0.5 * last + (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                    last
                })
                .collect();
            errors.push(error_of_mean(&series).unwrap());
        }
        let theory = 1.0 / 0.5 / 2000.0_f64.sqrt();
        let found = mean(&errors).unwrap();
        assert!((found / theory - 1.0).abs() < 0.1, "{found} is not {theory}");
    }

    /// Every sixteenth operation does the work that the others deferred: the mean is known much better than the textbook's
    /// error of independent samples says.
    #[test]
    fn knows_that_work_done_every_so_often_is_no_chance() {
        let samples: Vec<f64> = (0..1000).map(|i| if i % 16 == 7 { 15388.0 } else { 5619.0 }).collect();
        let independent = standard_deviation(&samples).unwrap() / 1000.0_f64.sqrt();
        let error = error_of_mean(&samples).unwrap();
        assert!(error < independent / 4.0, "{error}, {independent}");
    }

    #[test]
    fn gives_none_where_there_is_no_deviation_to_speak_of() {
        assert_eq!(error_of_mean(&[1.0]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(standard_deviation(&[1.0]), None);
    }
}
