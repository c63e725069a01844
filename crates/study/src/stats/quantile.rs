//! Sample quantiles.

/// The `p`-quantile of values in ascending order, by Hyndman and Fan's definition 7 (The American Statistician 50, 1996), the
/// default of R and `NumPy`; `None` without values.
///
/// `p` is limited to 0 to 1.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let low = sorted[below];
    let high = sorted[(below + 1).min(last)];
    Some(low + (position - below as f64) * (high - low))
}

/// The median of values in any order; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(&ascending(values), 0.5)
}

/// The values in ascending order.
pub fn ascending(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mtcars$mpg` of R's datasets package (Motor Trend, 1974).
    const MPG: [f64; 32] = [
        21.0, 21.0, 22.8, 21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2, 10.4, 10.4, 14.7, 32.4,
        30.4, 33.9, 21.5, 15.5, 15.2, 13.3, 19.2, 27.3, 26.0, 30.4, 15.8, 19.7, 15.0, 21.4,
    ];

    #[test]
    fn agrees_with_r_on_the_quartiles_of_mtcars() {
        let sorted = ascending(&MPG);
        let quartiles = [0.0, 0.25, 0.5, 0.75, 1.0].map(|p| quantile(&sorted, p).unwrap());
        // R: quantile(mtcars$mpg)
        for (ours, r) in quartiles.iter().zip([10.4, 15.425, 19.2, 22.8, 33.9]) {
            assert!((ours - r).abs() < 1e-12, "{ours} is not {r}");
        }
    }

    #[test]
    fn agrees_with_r_on_outer_deciles() {
        // R: quantile(1:10, c(.1, .9)) is 1.9 and 9.1
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        assert!((quantile(&sorted, 0.1).unwrap() - 1.9).abs() < 1e-12);
        assert!((quantile(&sorted, 0.9).unwrap() - 9.1).abs() < 1e-12);
    }

    #[test]
    fn gives_none_for_no_values() {
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn takes_the_mean_of_the_middle_two_of_an_even_number() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }
}
