//! Writes numbers without a fraction as integers: instruction counts are whole, and readers of JSON see it.

use serde::{Serializer, ser::SerializeSeq};

/// The largest magnitude to which a double holds every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as JSON is to show it.
struct Number(f64);

impl serde::Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        one(&self.0, serializer)
    }
}

/// For a field that holds one number.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde's serialize_with asks for")]
pub(crate) fn one<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() <= EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

/// For a field that holds many.
pub(crate) fn many<S: Serializer>(numbers: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut sequence = serializer.serialize_seq(Some(numbers.len()))?;
    for number in numbers {
        sequence.serialize_element(&Number(*number))?;
    }
    sequence.end()
}
