//! Counts of hooks, as `tollgate hooks count --json` writes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entries::{self, Wrong};

/// The version of the format that this program reads.
pub const SCHEMA: u32 = 1;

/// The counts of one workload or command, per run of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// `uname -r`; empty if it is not known.
    #[serde(default)]
    pub kernel: String,
    /// The workload's selection; none for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The command, word by word; none for a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Events that were lost while counting: if there are any, counts are too low.
    #[serde(default)]
    pub lost: u64,
    /// Objects that were released while counting, and not freed: the hooks of their end are missing.
    #[serde(default)]
    pub pending: u64,
    /// Hooks of the kernel that could not be counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untraceable: Vec<String>,
    /// Instructions of a run without counting, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Calls of each hook per run.
    pub hooks: BTreeMap<String, f64>,
    /// Calls that the kernel made later, if they are separated.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub deferred: serde_json::Value,
}

/// A file of counts that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountsError {
    /// The text is not of this format.
    #[error("no counts of hooks: {0}; `tollgate hooks count --json` writes them")]
    Malformed(String),
    /// The file has another schema.
    #[error("counts of schema {found}, of which this tollgate reads {SCHEMA}: count again with this version")]
    Schema {
        /// The schema's number.
        found: u64,
    },
    /// A count is negative or no number.
    #[error("counts of hooks: {hook} was passed {count} times, which no count is")]
    Absurd {
        /// The hook's name in the file.
        hook: String,
        /// The count in the file.
        count: f64,
    },
}

impl From<Wrong> for CountsError {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Malformed(why) => Self::Malformed(why),
            Wrong::Schema(found) => Self::Schema { found },
        }
    }
}

impl Counts {
    /// Reads a file's text: one object, or an array of them.
    pub fn read(text: &str) -> Result<Vec<Self>, CountsError> {
        let all: Vec<Self> = entries::read(text, SCHEMA)?;
        let absurd = |(hook, count): (&String, &f64)| {
            (!count.is_finite() || *count < 0.0).then(|| CountsError::Absurd { hook: hook.clone(), count: *count })
        };
        match all.iter().flat_map(|one| &one.hooks).find_map(absurd) {
            Some(error) => Err(error),
            None => Ok(all),
        }
    }

    /// The workload's name, or the command's words.
    #[must_use]
    pub fn name(&self) -> String {
        let command = || self.command.as_ref().map(|words| words.join(" "));
        self.workload.clone().or_else(command).unwrap_or_else(|| "the command".to_owned())
    }

    /// Calls of a hook that the kernel makes later than the call that caused them; 0 if they are not separated.
    #[must_use]
    pub fn deferred(&self, hook: &str) -> f64 {
        let of = |value: &serde_json::Value| value.get(hook).and_then(serde_json::Value::as_f64);
        of(&self.deferred).or_else(|| self.deferred.get("hooks").and_then(of)).unwrap_or(0.0)
    }

    /// The counts of a workload: on this kernel, else the only ones, because a workload passes much the same hooks on all
    /// kernels.
    #[must_use]
    pub fn of<'a>(all: &'a [Self], workload: &str, is_kernel: impl Fn(&str) -> bool) -> Option<&'a Self> {
        let own: Vec<&Self> = all.iter().filter(|one| one.workload.as_deref() == Some(workload)).collect();
        let only = || if let [only] = own[..] { Some(only) } else { None };
        own.iter().find(|one| is_kernel(&one.kernel)).copied().or_else(only)
    }

    /// All calls of all hooks, per run.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.hooks.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"schema":1,"kernel":"6.1.0-56-cloud-amd64","source":"function tracer","command":["cat","/x"],"runs":3,
        "lost":0,"cost":120000,"hooks":{"file_open":4.0,"file_free":4},"deferred":{"hooks":{"file_free":4}},
        "calls":[{"call":"openat","count":4.0,"hooks":{"file_open":4.0}}]}"#;

    #[test]
    fn reads_one_or_many() {
        let counts = Counts::read(ONE).unwrap();
        assert_eq!((counts[0].name(), counts[0].total(), counts[0].cost), ("cat /x".to_owned(), 8.0, Some(120_000.0)));
        assert_eq!((counts[0].deferred("file_free"), counts[0].deferred("file_open")), (4.0, 0.0));
        let two = format!("[{ONE},{}]", ONE.replace(r#""command":["cat","/x"]"#, r#""workload":"stat""#));
        assert_eq!(Counts::read(&two).unwrap()[1].name(), "stat");
    }

    #[test]
    fn takes_the_counts_of_the_same_kernel_else_the_only_ones() {
        let of = |kernel: &str, workload: &str| {
            let text = ONE.replace("6.1.0-56-cloud-amd64", kernel);
            text.replace(r#""command":["cat","/x"]"#, &format!(r#""workload":"{workload}""#))
        };
        let all =
            Counts::read(&format!("[{},{},{}]", of("6.12", "stat"), of("6.1", "stat"), of("6.1", "null"))).unwrap();
        let kernel = |workload, kernel| Counts::of(&all, workload, |own| own == kernel).map(|one| one.kernel.as_str());
        assert_eq!((kernel("stat", "6.1"), kernel("stat", "6.12")), (Some("6.1"), Some("6.12")));
        assert_eq!((kernel("null", "6.12"), kernel("stat", "5.10"), kernel("pipe", "6.1")), (Some("6.1"), None, None));
    }

    #[test]
    fn refuses_what_are_no_counts() {
        let wrong = |from: &str, to: &str| Counts::read(&ONE.replace(from, to)).unwrap_err().to_string();
        assert!(wrong("\"schema\":1", "\"schema\":7").contains("schema 7"));
        assert!(wrong("\"file_open\":4.0,", "\"file_open\":-4.0,").contains("file_open was passed -4 times"));
        assert!(wrong("\"hooks\":{\"file_open\"", "\"hook\":{\"file_open\"").contains("hooks count --json"));
    }
}
