//! Files that other commands write into a study's folder, for its page.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{OBSERVATIONS, Store, StoreError, entries};
use crate::{
    model::Observations,
    page::{
        Material,
        material::{COUNTS_SCHEMA, Counts, Graph},
    },
};

const COUNTS: &str = "counts.json";
const OBSERVE: &str = "tollgate study run --resume";
const COUNT: &str = "tollgate hooks count --json";
const GRAPH: &str = "tollgate hooks graph KERNEL --json";

impl Store {
    /// Reads the results, and the other files in the folder for a page.
    pub fn read_material(&self) -> Result<Material, StoreError> {
        Ok(Material {
            results: self.read_results()?,
            observations: self.read_observations()?,
            counts: self.read_counts()?,
            graphs: self.read_graphs()?,
        })
    }

    /// Empty if no hook was delayed.
    fn read_observations(&self) -> Result<Vec<Observations>, StoreError> {
        let path = self.path(OBSERVATIONS);
        let Some(value) = read(&path, OBSERVE)? else { return Ok(Vec::new()) };
        let read = Observations::read(&value.to_string());
        read.map_err(|e| StoreError::Beside { path, reason: e.to_string(), with: OBSERVE })
    }

    /// Empty if nothing was counted; the file has one entry, or an array of them.
    fn read_counts(&self) -> Result<Vec<Counts>, StoreError> {
        let path = self.path(COUNTS);
        let Some(value) = read(&path, COUNT)? else { return Ok(Vec::new()) };
        let all = if let Value::Array(all) = value { all } else { vec![value] };
        let one = |value: Value| match value.get("schema").and_then(Value::as_u64) {
            Some(known) if known == u64::from(COUNTS_SCHEMA) => parse(&path, value, COUNT),
            found => {
                let found = found.map_or("no schema".to_owned(), |found| format!("schema {found}"));
                let reason = format!("it has {found}; this program reads schema {COUNTS_SCHEMA}");
                Err(StoreError::Beside { path: path.clone(), reason, with: COUNT })
            }
        };
        all.into_iter().map(one).collect()
    }

    /// The graphs, in the order of their files' names.
    fn read_graphs(&self) -> Result<Vec<Graph>, StoreError> {
        let is_graph = |path: &&PathBuf| {
            path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("graph-") && n.ends_with(".json"))
        };
        let read = |path: &PathBuf| {
            let value = read(path, GRAPH)?.unwrap_or_default();
            parse(path, value, GRAPH)
        };
        entries(&self.root)?.iter().filter(is_graph).map(read).collect()
    }
}

/// `None` if there is no such file.
fn read(path: &Path, with: &'static str) -> Result<Option<Value>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Some(value)),
            Err(e) => Err(StoreError::Beside { path: path.to_owned(), reason: e.to_string(), with }),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(StoreError::Io { what: "read", path: path.to_owned(), cause }),
    }
}

fn parse<T: DeserializeOwned>(path: &Path, value: Value, with: &'static str) -> Result<T, StoreError> {
    serde_json::from_value(value).map_err(|e| StoreError::Beside { path: path.to_owned(), reason: e.to_string(), with })
}
