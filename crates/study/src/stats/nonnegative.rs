//! Least squares with coefficients that are not negative.

/// Figures below this share of the greatest one of their kind are rounding errors.
const ROUNDING: f64 = 1e-10;
/// All coefficients on the wrong side are exchanged at once. After this many exchanges that did not leave fewer of them, only
/// one is exchanged at a time.
const MAX_STALLED_EXCHANGES: u32 = 3;
/// The search gives up after this many changes per coefficient; some ten in all are usual.
const MAX_CHANGES: usize = 100;

/// The coefficients, none below 0, that make `x' gram x - 2 x' target` least. `gram` is symmetric and positive definite, by
/// rows. Which are above 0 is first taken to be those of `start`.
///
/// Principal pivoting by blocks (Portugal, Judice and Vicente, Mathematics of Computation 63, 1994): those above 0 are solved for
/// exactly; what is negative then, or would be lower above 0, changes sides, until nothing does. It ends for every such matrix.
#[must_use]
pub fn minimise(gram: &[Vec<f64>], target: &[f64], start: &[f64]) -> Vec<f64> {
    let scales: Vec<f64> = (0..target.len()).map(|i| gram[i][i].sqrt()).collect();
    let scaled = |(i, row): (usize, &Vec<f64>)| {
        row.iter().zip(&scales).map(|(entry, scale)| entry / scale / scales[i]).collect::<Vec<f64>>()
    };
    let gram: Vec<Vec<f64>> = gram.iter().enumerate().map(scaled).collect();
    let target: Vec<f64> = target.iter().zip(&scales).map(|(value, scale)| value / scale).collect();
    let mut is_free: Vec<bool> = start.iter().map(|x| *x > 0.0).collect();
    let (mut fewest, mut patience) = (target.len() + 1, MAX_STALLED_EXCHANGES);
    let mut x = vec![0.0; target.len()];
    for _ in 0..MAX_CHANGES * (target.len() + 1) {
        x = solve(&gram, &target, &is_free);
        let wrong = wrong(&gram, &target, &is_free, &x);
        let Some(last) = wrong.last() else { break };
        if wrong.len() < fewest {
            (fewest, patience) = (wrong.len(), MAX_STALLED_EXCHANGES);
        } else if patience > 0 {
            patience -= 1;
        } else {
            // Murty's rule never returns to an earlier state.
            is_free[*last] = !is_free[*last];
            continue;
        }
        wrong.iter().for_each(|i| is_free[*i] = !is_free[*i]);
    }
    x.iter().zip(&scales).map(|(x, scale)| x.max(0.0) / scale).collect()
}

/// Free coefficients that are negative, and coefficients at 0 that should be higher.
fn wrong(gram: &[Vec<f64>], target: &[f64], is_free: &[bool], x: &[f64]) -> Vec<usize> {
    let greatest = |values: &[f64]| values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let (negative, slight) = (-ROUNDING * greatest(x), ROUNDING * greatest(target));
    let is_wrong = |i: &usize| if is_free[*i] { x[*i] < negative } else { target[*i] - dot(&gram[*i], x) > slight };
    (0..x.len()).filter(is_wrong).collect()
}

/// The unconstrained minimum with all other coefficients at 0, by Cholesky's decomposition.
fn solve(gram: &[Vec<f64>], target: &[f64], is_free: &[bool]) -> Vec<f64> {
    let free: Vec<usize> = (0..target.len()).filter(|i| is_free[*i]).collect();
    let mut lower: Vec<Vec<f64>> = Vec::with_capacity(free.len());
    let mut y: Vec<f64> = Vec::with_capacity(free.len());
    for i in &free {
        let mut row = Vec::with_capacity(lower.len() + 1);
        for (above, j) in lower.iter().zip(&free) {
            row.push((gram[*i][*j] - dot(&row, above)) / above[row.len()]);
        }
        let rest = gram[*i][*i] - dot(&row, &row);
        let own = rest.max(f64::EPSILON).sqrt();
        y.push((target[*i] - dot(&row, &y)) / own);
        row.push(own);
        lower.push(row);
    }
    let mut x = vec![0.0; target.len()];
    for (k, i) in free.iter().enumerate().rev() {
        let value = y[k] / lower[k][k];
        y.iter_mut().zip(&lower[k][..k]).for_each(|(y, entry)| *y -= entry * value);
        x[*i] = value;
    }
    x
}

/// The dot product, over the length of the shorter.
fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
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
            for start in [[0.0, 0.0], [1.0, 1.0]] {
                let x = minimise(&gram, &target, &start);
                assert!(x.iter().zip(expected).all(|(x, expected)| (x - expected).abs() < 1e-12), "{x:?}");
            }
        }
    }

    /// The Karush-Kuhn-Tucker conditions: at the minimum, the slope is 0 along positive coefficients and not negative along
    /// those at 0.
    fn leaves_nowhere_to_go_down(gram: &[Vec<f64>], target: &[f64], x: &[f64]) {
        let greatest = target.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        for (i, x_i) in x.iter().enumerate() {
            let slope = (dot(&gram[i], x) - target[i]) / greatest;
            assert!(*x_i >= 0.0, "{i}: {x_i}");
            assert!(if *x_i > 0.0 { slope.abs() < 1e-8 } else { slope > -1e-8 }, "{i}: {x_i} {slope}");
        }
    }

    #[test]
    fn finds_the_least_of_random_problems_wherever_it_begins() {
        let mut random = Random::new(5);
        let mut number = || (random.below(2001) as f64 - 1000.0) / 100.0;
        for (height, width) in [(12, 6), (12, 6), (12, 6), (40, 30), (40, 30), (75, 110), (75, 110)] {
            let rows: Vec<Vec<f64>> = (0..height).map(|_| (0..width).map(|_| number()).collect()).collect();
            let y: Vec<f64> = (0..height).map(|_| number()).collect();
            let (mut gram, target) = gram(&rows, &y);
            (0..width).for_each(|i| gram[i][i] += 0.1);
            let all = minimise(&gram, &target, &vec![1.0; width]);
            leaves_nowhere_to_go_down(&gram, &target, &all);
            let none = minimise(&gram, &target, &vec![0.0; width]);
            assert!(all.iter().zip(&none).all(|(one, other)| (one - other).abs() < 1e-7), "{all:?} {none:?}");
        }
    }

    /// Two columns that are equal except for one part in a million of their squares: only the ridge separates them.
    #[test]
    fn goes_all_the_way_where_two_columns_are_almost_one() {
        let gram = vec![vec![1.0 + 1e-6, 1.0], vec![1.0, 1.0 + 1e-6]];
        // The targets correspond to 3 and 1.
        let x = minimise(&gram, &[4.0 + 3e-6, 4.0 + 1e-6], &[2.0, 2.0]);
        assert!((x[0] - 3.0).abs() < 1e-6 && (x[1] - 1.0).abs() < 1e-6, "{x:?}");
    }
}
