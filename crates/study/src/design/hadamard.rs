//! Hadamard matrices: square, of 1 and -1; in each two columns, as many rows are equal as differ.
//!
//! They are built by Paley's two constructions (Journal of Mathematics and Physics 12, 1933) over prime fields, and by
//! Sylvester's doubling. Prime powers are left out: if only they give an order (52, 92, 100, 116), the next greater order is
//! used.

/// A matrix by rows; `true` is 1. Its first column is all 1.
type Matrix = Vec<Vec<bool>>;

/// The smallest matrix with at least `order` rows that these constructions give.
pub(super) fn at_least(order: usize) -> Matrix {
    // Powers of two are among the orders, so the search ends.
    let found = (order.max(1)..).find_map(matrix).unwrap_or_default();
    // A row may be negated: columns stay orthogonal.
    found.into_iter().map(|row| row.iter().map(|entry| *entry == row[0]).collect()).collect()
}

fn matrix(order: usize) -> Option<Matrix> {
    if order == 1 {
        return Some(vec![vec![true]]);
    }
    if order == 2 || order.is_multiple_of(4) {
        return paley_one(order).or_else(|| paley_two(order)).or_else(|| doubled(order));
    }
    None
}

fn doubled(order: usize) -> Option<Matrix> {
    let half = matrix(order / 2)?;
    let left = half.iter().map(|row| row.iter().chain(row).copied().collect());
    let right = half.iter().map(|row| row.iter().copied().chain(row.iter().map(|entry| !entry)).collect());
    Some(left.chain(right).collect())
}

/// A matrix of order q + 1, where q is a prime of the form 4n + 3: I + S, S skew.
fn paley_one(order: usize) -> Option<Matrix> {
    let q = order.checked_sub(1).filter(|q| q % 4 == 3 && is_prime(*q))?;
    let residues = residues(q);
    let entry = |row: usize, column: usize| match (row, column) {
        (0, _) => true,
        (_, 0) => false,
        _ if row == column => true,
        _ => residues[(q + row - column) % q],
    };
    Some((0..order).map(|row| (0..order).map(|column| entry(row, column)).collect()).collect())
}

/// A matrix of order 2 (q + 1), where q is a prime of the form 4n + 1: each entry of a symmetric conference matrix becomes a
/// block of two by two.
fn paley_two(order: usize) -> Option<Matrix> {
    let q = (order / 2).checked_sub(1).filter(|q| order.is_multiple_of(4) && q % 4 == 1 && is_prime(*q))?;
    let residues = residues(q);
    let conference = |row: usize, column: usize| match (row, column) {
        (0, _) | (_, 0) => true,
        _ => residues[(q + row - column) % q],
    };
    let entry = |row: usize, column: usize| {
        let (low, right) = (row % 2 == 1, column % 2 == 1);
        if row / 2 == column / 2 {
            // The diagonal's 0: (1 -1; -1 -1).
            !(low || right)
        } else {
            // 1: (1 1; 1 -1); -1: its opposite.
            conference(row / 2, column / 2) != (low && right)
        }
    };
    Some((0..order).map(|row| (0..order).map(|column| entry(row, column)).collect()).collect())
}

/// Which numbers modulo a prime are squares of numbers other than 0.
fn residues(q: usize) -> Vec<bool> {
    let mut squares = vec![false; q];
    (1..q).for_each(|number| squares[number * number % q] = true);
    squares
}

fn is_prime(number: usize) -> bool {
    number > 1 && (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_columns_of_which_any_two_are_orthogonal() {
        for wanted in 1..=140 {
            let matrix = at_least(wanted);
            let order = matrix.len();
            assert!(matrix.iter().all(|row| row.len() == order && row[0]), "{order}");
            for one in 0..order {
                for other in one + 1..order {
                    let alike = matrix.iter().filter(|row| row[one] == row[other]).count();
                    assert_eq!(2 * alike, order, "order {order}, columns {one} and {other}");
                }
            }
        }
    }

    #[test]
    fn finds_an_order_near_to_what_is_wanted() {
        let orders: Vec<usize> =
            [2, 5, 11, 12, 17, 28, 36, 49, 89, 117, 131].map(|wanted| at_least(wanted).len()).to_vec();
        assert_eq!(orders, [2, 8, 12, 12, 20, 28, 36, 56, 96, 120, 132]);
    }
}
