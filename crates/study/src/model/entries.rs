//! Files of one entry alone or of a list of them, each with its schema's version: counts and observations.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

/// What is wrong with such a file.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is no JSON, or an entry is not of the type.
    Malformed(String),
    /// An entry is of this schema, another.
    Schema(u64),
}

/// Reads a file's text, whose entries are all of the `schema`; an entry without one is refused as the type does.
pub(super) fn read<T: DeserializeOwned>(text: &str, schema: u32) -> Result<Vec<T>, Wrong> {
    let malformed = |error: Error| Wrong::Malformed(error.to_string());
    let value: Value = serde_json::from_str(text).map_err(malformed)?;
    let all = if let Value::Array(all) = value { all } else { vec![value] };
    let one = |one: Value| match one.get("schema").and_then(Value::as_u64) {
        Some(found) if found != u64::from(schema) => Err(Wrong::Schema(found)),
        _ => serde_json::from_value(one).map_err(malformed),
    };
    all.into_iter().map(one).collect()
}
