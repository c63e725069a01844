//! The words of `results.json`, for tables and other files: all spell a value the same way.

use serde::Serialize;
use serde_json::Value;

/// A value as its JSON spells it, without quotes.
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => format!("not to be spelt: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Oracle;

    #[test]
    fn spells_a_value_as_its_json_does() {
        assert_eq!(word(&Oracle::Held), "held");
        assert_eq!(word(&tollgate_bench::oracle::Act::HeapExec), "heap-exec");
        assert_eq!(word(&3), "3");
    }
}
