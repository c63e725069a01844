//! The study file as TOML: names and types only, with the position of each value.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;
use tollgate_bench::counter::Counter;
use toml::Spanned;

use super::Figure;

/// A value with its position.
pub(super) type At<T> = Spanned<T>;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) name: At<String>,
    pub(super) title: String,
    #[serde(default = "instructions")]
    pub(super) clock: Counter,
    pub(super) kernels: At<Vec<At<String>>>,
    #[serde(default, rename = "kernels-if-built")]
    pub(super) kernels_if_built: Vec<At<String>>,
    pub(super) configurations: At<Vec<At<String>>>,
    #[serde(default)]
    pub(super) configuration: Vec<RawConfiguration>,
    #[serde(default)]
    pub(super) command: Vec<RawCommand>,
    pub(super) baseline: Option<At<String>>,
    pub(super) workloads: At<Vec<At<String>>>,
    #[serde(default)]
    pub(super) filesystems: Vec<At<String>>,
    #[serde(default)]
    pub(super) depths: Vec<At<i64>>,
    #[serde(default)]
    pub(super) networks: Vec<At<String>>,
    pub(super) samples: Option<At<i64>>,
    pub(super) paddings: Option<At<i64>>,
    pub(super) rounds: Option<At<i64>>,
    pub(super) figure: Option<At<Figure>>,
    pub(super) threshold: Option<At<f64>>,
    pub(super) latency: Option<At<RawLatency>>,
    #[serde(default)]
    pub(super) published: Vec<RawPublished>,
}

/// A `[[configuration]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawConfiguration {
    pub(super) name: At<String>,
    pub(super) lsm: Option<At<String>>,
    pub(super) base: Option<At<String>>,
    #[serde(default)]
    pub(super) hooks: Vec<At<String>>,
    pub(super) level: Option<At<String>>,
    #[serde(default)]
    pub(super) command_line: String,
}

/// A `[[command]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawCommand {
    pub(super) name: At<String>,
    pub(super) about: String,
    #[serde(default)]
    pub(super) packages: Vec<At<String>>,
    #[serde(default)]
    pub(super) files: BTreeMap<At<String>, PathBuf>,
    #[serde(default)]
    pub(super) set_up: String,
    #[serde(default)]
    pub(super) before: String,
    pub(super) run: String,
}

/// The `[latency]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawLatency {
    #[serde(default)]
    pub(super) hooks: Vec<At<String>>,
    pub(super) units: Option<At<i64>>,
    pub(super) centre_points: Option<At<i64>>,
    pub(super) folded: Option<bool>,
    pub(super) seed: Option<At<i64>>,
}

/// A `[[published]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPublished {
    pub(super) source: String,
    pub(super) kernel: Option<At<String>>,
    #[serde(default)]
    pub(super) baseline: BTreeMap<At<String>, f64>,
    #[serde(default)]
    pub(super) percent: BTreeMap<At<String>, BTreeMap<At<String>, f64>>,
    #[serde(default)]
    pub(super) row: Vec<RawRow>,
}

/// A `[[published.row]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRow {
    pub(super) test: String,
    pub(super) unit: At<String>,
    pub(super) figures: BTreeMap<At<String>, f64>,
    pub(super) workloads: Vec<At<String>>,
    pub(super) same: String,
    pub(super) scaled: String,
    pub(super) unsaid: String,
}

fn instructions() -> Counter {
    Counter::Instructions
}
