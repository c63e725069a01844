//! Student's t and Fisher's F, for intervals and tests of a regression.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// How many standard errors an interval of this level extends on each side; `None` without a degree of freedom.
#[must_use]
pub fn student(level: f64, freedom: usize) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(distribution.inverse_cdf(0.5 + level / 2.0))
}

/// The probability of an F as great or greater by chance alone; `None` without degrees of freedom.
#[must_use]
pub fn fisher(f: f64, above: usize, below: usize) -> Option<f64> {
    let distribution = FisherSnedecor::new(above as f64, below as f64).ok()?;
    Some(distribution.sf(f))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: critical values of t, one-sided 0.975 and 0.995.
    #[test]
    fn agrees_with_the_handbook_on_t() {
        for (level, freedom, critical) in
            [(0.95, 1, 12.706), (0.95, 5, 2.571), (0.95, 30, 2.042), (0.99, 10, 3.169), (0.90, 100, 1.660)]
        {
            let ours = student(level, freedom).unwrap();
            assert!((ours - critical).abs() < 6e-4, "{level} {freedom}: {ours}");
        }
        assert_eq!(student(0.95, 0), None);
    }

    /// The same, 1.3.6.7.3: upper 5 % and 1 % critical values of F.
    #[test]
    fn agrees_with_the_handbook_on_f() {
        for (p, above, below, critical) in [(0.05, 1, 1, 161.448), (0.05, 3, 10, 3.708), (0.01, 5, 20, 4.103)] {
            let ours = fisher(critical, above, below).unwrap();
            assert!((ours - p).abs() < 1e-5, "{above} {below}: {ours}");
        }
        assert_eq!(fisher(1.0, 3, 0), None);
    }
}
