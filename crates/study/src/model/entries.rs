//! Reads files that hold one entry or a list of entries, each with its schema number: counts and observations.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

/// What is wrong with a file.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is no JSON, or an entry is not of the type.
    Malformed(String),
    /// An entry has this other schema.
    Schema(u64),
}

/// Reads the text of a file, whose entries must all have this `schema`.
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
