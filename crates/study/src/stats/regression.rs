//! Linear least squares by Householder's QR decomposition.
//!
//! The normal equations would square the condition number: of NIST's Filip data no digit would be left. The decomposition is
//! our own: a matrix of at most some hundred columns needs no library, and what it must be good for is in its tests.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::{
    distribution::{fisher, student},
    moments::mean,
};

/// A column of length 1 counts as a sum of earlier columns if less than this is left of it without them. NIST's Filip, a
/// polynomial of degree ten, leaves 1e-10.
const DEPENDENT: f64 = 1e-12;

/// Why nothing can be fitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegressionError {
    /// Fewer observations than coefficients.
    #[error("{observations} observations do not determine {coefficients} coefficients: make more runs")]
    TooFew {
        /// The number of rows.
        observations: usize,
        /// The number of columns.
        coefficients: usize,
    },
    /// A column is a sum of the columns before it.
    #[error("column {column} is a sum of those before it: the runs do not separate them")]
    Dependent {
        /// The column's number, from 0.
        column: usize,
    },
    /// Rows have different lengths, or a value is no number.
    #[error("the observations are no matrix of finite numbers")]
    Malformed,
}

/// Coefficients of a least-squares fit, and how well it fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Regression {
    /// One coefficient per column.
    pub coefficients: Vec<f64>,
    /// The standard errors of the coefficients; all 0 without a degree of freedom.
    pub errors: Vec<f64>,
    /// Observed less fitted value, per row.
    pub residuals: Vec<f64>,
    /// Degrees of freedom: rows less columns.
    pub freedom: usize,
    /// The sum of the residuals' squares.
    pub squares: f64,
}

impl Regression {
    /// Fits `y` by the columns of `rows`, each of the same length. A constant is a column of ones.
    pub fn fit(rows: &[Vec<f64>], y: &[f64]) -> Result<Self, RegressionError> {
        let width = rows.first().map_or(0, Vec::len);
        let finite = rows.iter().flatten().chain(y).all(|value| value.is_finite());
        if rows.len() != y.len() || rows.iter().any(|row| row.len() != width) || !finite {
            return Err(RegressionError::Malformed);
        }
        if rows.len() < width || width == 0 {
            return Err(RegressionError::TooFew { observations: rows.len(), coefficients: width });
        }
        let mut columns: Vec<Vec<f64>> = (0..width).map(|j| rows.iter().map(|row| row[j]).collect()).collect();
        // Scaled to length 1, so that delays and the constant have similar sizes.
        let scales: Vec<f64> = columns.iter().map(|column| norm(column)).collect();
        for (column, scale) in columns.iter_mut().zip(&scales) {
            column.iter_mut().for_each(|value| *value /= if *scale > 0.0 { *scale } else { 1.0 });
        }
        let mut rotated = y.to_vec();
        let diagonal = decompose(&mut columns, &mut rotated)?;
        let mut coefficients = solve(&columns, &diagonal, &rotated[..width]);
        coefficients.iter_mut().zip(&scales).for_each(|(coefficient, scale)| *coefficient /= scale);
        let fitted = |row: &Vec<f64>| dot(row, &coefficients);
        let residuals: Vec<f64> = rows.iter().zip(y).map(|(row, y)| y - fitted(row)).collect();
        let squares = dot(&residuals, &residuals);
        let freedom = rows.len() - width;
        let deviation = if freedom == 0 { 0.0 } else { (squares / freedom as f64).sqrt() };
        let errors = lengths(&columns, &diagonal).iter().zip(&scales).map(|(l, scale)| deviation * l / scale).collect();
        Ok(Self { coefficients, errors, residuals, freedom, squares })
    }

    /// The residual standard deviation; `None` without a degree of freedom.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        (self.freedom > 0).then(|| (self.squares / self.freedom as f64).sqrt())
    }

    /// The share of the variation of `y` about its mean that the fit explains, which must have a constant; `None` if `y` does
    /// not vary.
    #[must_use]
    pub fn r_squared(&self, y: &[f64]) -> Option<f64> {
        let centre = mean(y)?;
        let total: f64 = y.iter().map(|y| (y - centre).powi(2)).sum();
        (total > 0.0).then(|| 1.0 - self.squares / total)
    }

    /// The interval of a coefficient; `None` without a degree of freedom.
    #[must_use]
    pub fn interval(&self, column: usize, level: f64) -> Option<(f64, f64)> {
        let half = student(level, self.freedom)? * self.errors[column];
        Some((self.coefficients[column] - half, self.coefficients[column] + half))
    }

    /// Whether the residuals exceed the differences between runs of the same settings: the F test for lack of fit (Draper and
    /// Smith, Applied Regression Analysis, 2.1). `None` if no settings were run twice, or if there are no more settings than
    /// coefficients: any residual is then pure error.
    #[must_use]
    pub fn lack_of_fit(&self, rows: &[Vec<f64>], y: &[f64]) -> Option<LackOfFit> {
        let mut groups: Vec<(&Vec<f64>, Vec<f64>)> = Vec::new();
        for (row, y) in rows.iter().zip(y) {
            match groups.iter_mut().find(|(known, _)| *known == row) {
                Some((_, group)) => group.push(*y),
                None => groups.push((row, vec![*y])),
            }
        }
        let within = |group: &Vec<f64>| {
            let centre = mean(group).unwrap_or_default();
            group.iter().map(|y| (y - centre).powi(2)).sum::<f64>()
        };
        let pure: f64 = groups.iter().map(|(_, group)| within(group)).sum();
        let below = rows.len() - groups.len();
        let above = groups.len().checked_sub(self.coefficients.len())?;
        if below == 0 || above == 0 {
            return None;
        }
        let lack = (self.squares - pure).max(0.0) / above as f64;
        let pure = pure / below as f64;
        let f = (pure > 0.0).then(|| lack / pure);
        let p = f.and_then(|f| fisher(f, above, below));
        Some(LackOfFit { deviation: lack.sqrt(), pure: pure.sqrt(), above, below, f, p })
    }
}

/// The result of a test for lack of fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LackOfFit {
    /// The standard deviation of the lack of fit, in the observations' unit.
    pub deviation: f64,
    /// The standard deviation of runs of the same settings: pure error.
    pub pure: f64,
    /// Degrees of freedom of the lack of fit.
    pub above: usize,
    /// Degrees of freedom of the pure error.
    pub below: usize,
    /// The quotient of their squares; absent if runs of the same settings are equal to the instruction: then any lack of fit
    /// is real.
    pub f: Option<f64>,
    /// The probability of at least this quotient by chance alone.
    pub p: Option<f64>,
}

/// Householder's reflections, one a column: what is below the diagonal becomes the reflection, what is above it R, and the
/// same is done to `y`. Returns R's diagonal. (Golub and Van Loan, Matrix Computations, 5.2.1.)
fn decompose(columns: &mut [Vec<f64>], y: &mut [f64]) -> Result<Vec<f64>, RegressionError> {
    let mut diagonal = Vec::new();
    for j in 0..columns.len() {
        let (done, rest) = columns.split_at_mut(j + 1);
        let own = &mut done[j][j..];
        let length = norm(own);
        if length < DEPENDENT {
            return Err(RegressionError::Dependent { column: j });
        }
        // The sign is opposite to the column's own, so that nothing cancels.
        let target = -length.copysign(own[0]);
        own[0] -= target;
        let square = dot(own, own);
        let reflect = |column: &mut [f64]| {
            let factor = 2.0 * dot(own, column) / square;
            column.iter_mut().zip(own.iter()).for_each(|(value, own)| *value -= factor * own);
        };
        rest.iter_mut().for_each(|column| reflect(&mut column[j..]));
        reflect(&mut y[j..]);
        diagonal.push(target);
    }
    Ok(diagonal)
}

/// Solves R x = b from below.
fn solve(columns: &[Vec<f64>], diagonal: &[f64], b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for i in (0..diagonal.len()).rev() {
        let known: f64 = (i + 1..diagonal.len()).map(|j| columns[j][i] * x[j]).sum();
        x[i] = (x[i] - known) / diagonal[i];
    }
    x
}

/// The lengths of the rows of R's inverse: each coefficient's standard error, in residual standard deviations.
fn lengths(columns: &[Vec<f64>], diagonal: &[f64]) -> Vec<f64> {
    let mut squares = vec![0.0; diagonal.len()];
    for j in 0..diagonal.len() {
        let mut unit = vec![0.0; diagonal.len()];
        unit[j] = 1.0;
        for (square, entry) in squares.iter_mut().zip(solve(columns, diagonal, &unit)) {
            *square += entry * entry;
        }
    }
    squares.into_iter().map(f64::sqrt).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn norm(column: &[f64]) -> f64 {
    dot(column, column).sqrt()
}
