//! Least squares under the condition that no coefficient is negative.

/// Sweeps over all coefficients after which it is given up; a ridge makes far fewer enough.
const SWEEPS: usize = 10_000;

/// The coefficients, none below 0, that make `x' gram x - 2 x' target` least, from `start` on: coordinate after coordinate,
/// each to its best value in turn (Franc, Hlavac and Navara, Sequential coordinate-wise algorithm for the non-negative least
/// squares problem, 2005). `gram` is symmetric and positive definite, by rows. It ends when no coefficient moves by more than
/// `settled` of the greatest.
#[must_use]
pub fn minimise(gram: &[Vec<f64>], target: &[f64], start: &[f64], settled: f64) -> Vec<f64> {
    let mut x = start.to_vec();
    for _ in 0..SWEEPS {
        let mut moved = 0.0_f64;
        for i in 0..x.len() {
            let slope = gram[i].iter().zip(&x).map(|(entry, x)| entry * x).sum::<f64>() - target[i];
            let next = (x[i] - slope / gram[i][i]).max(0.0);
            moved = moved.max((next - x[i]).abs());
            x[i] = next;
        }
        if moved <= settled * x.iter().copied().fold(0.0, f64::max) {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn gram(rows: &[Vec<f64>], y: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let width = rows[0].len();
        let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
        let gram = (0..width).map(|i| (0..width).map(|j| product(i, j)).collect()).collect();
        (gram, (0..width).map(|i| rows.iter().zip(y).map(|(row, y)| row[i] * y).sum()).collect())
    }

    /// The example of scipy.optimize.nnls: [[1, 0], [1, 0], [0, 1]] with 2, 1, 1 gives 1.5, 1; with -1, -1, -1 gives 0, 0.
    #[test]
    fn agrees_with_scipys_examples() {
        let rows = [vec![1.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]];
        for (y, expected) in [([2.0, 1.0, 1.0], [1.5, 1.0]), ([-1.0, -1.0, -1.0], [0.0, 0.0])] {
            let (gram, target) = gram(&rows, &y);
            assert_eq!(minimise(&gram, &target, &[0.0, 0.0], 1e-10), expected);
        }
    }

    /// Karush, Kuhn and Tucker: at the least, the slope is 0 along what is positive and not negative along what is 0.
    #[test]
    fn leaves_nowhere_to_go_down() {
        let mut random = Random::new(5);
        let mut number = || (random.below(2001) as f64 - 1000.0) / 100.0;
        for _ in 0..20 {
            let rows: Vec<Vec<f64>> = (0..12).map(|_| (0..6).map(|_| number()).collect()).collect();
            let y: Vec<f64> = (0..12).map(|_| number()).collect();
            let (gram, target) = gram(&rows, &y);
            let x = minimise(&gram, &target, &[1.0; 6], 1e-10);
            for (i, x_i) in x.iter().enumerate() {
                let slope = gram[i].iter().zip(&x).map(|(entry, x)| entry * x).sum::<f64>() - target[i];
                assert!(if *x_i > 0.0 { slope.abs() < 1e-5 } else { slope > -1e-5 }, "{i}: {x_i} {slope}");
            }
        }
    }
}
