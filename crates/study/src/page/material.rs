//! The data of a page: a study's results, and files that other commands wrote into its folder.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{model::Observations, results::Results};

/// All files of a study's folder that a page shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Material {
    /// The content of `results.json`.
    pub results: Results,
    /// `observations.json`, which a study with a `[latency]` table writes; empty if the file does not exist.
    pub observations: Vec<Observations>,
    /// `counts.json`, which `tollgate hooks count --json` writes; empty if the file does not exist.
    pub counts: Vec<Counts>,
    /// Each `graph-KERNEL.json`, which `tollgate hooks graph --json` writes, in the order of names.
    pub graphs: Vec<Graph>,
}

/// The version of the format of counts that this program reads.
pub const COUNTS_SCHEMA: u32 = 1;

/// How often hooks were called in a command's run or a workload's operation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Counts {
    /// `uname -r` of the kernel.
    #[serde(default)]
    pub kernel: String,
    /// The workload's selection; none for a command.
    #[serde(default)]
    pub workload: Option<String>,
    /// The command, word by word; none for a workload.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// The number of runs of which the counts are the mean.
    #[serde(default)]
    pub runs: Option<u64>,
    /// Events that the tracer lost: if there are any, counts are too low.
    #[serde(default)]
    pub lost: u64,
    /// Counts by system call.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Calls of hooks that belong to no system call.
    #[serde(default)]
    pub deferred: BTreeMap<String, f64>,
}

/// The hooks of one system call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Call {
    /// The system call's name, or `page fault`.
    pub call: String,
    /// How often it was called.
    pub count: f64,
    /// How often each hook was called in it.
    pub hooks: BTreeMap<String, f64>,
}

/// The hooks that a kernel's system calls can reach.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Graph {
    /// The kernel's name in the command.
    pub kernel: String,
    /// Its system calls.
    pub syscalls: Vec<Reach>,
}

/// What a system call can reach.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reach {
    /// The system call's name.
    pub syscall: String,
    /// The hooks that it reaches.
    pub hooks: Vec<Reached>,
}

/// A hook that the system call can reach.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reached {
    /// The framework's function without `security_`.
    pub hook: String,
    /// Whether direct calls alone reach it.
    pub direct: bool,
    /// The length of a shortest path, in calls.
    pub depth: usize,
    /// One shortest path, from the system call's entry to the hook.
    pub path: Vec<Step>,
}

/// A function on a path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// The function's name.
    pub function: String,
}

impl Material {
    /// Results without further files.
    #[must_use]
    pub fn of(results: Results) -> Self {
        Self { results, observations: Vec::new(), counts: Vec::new(), graphs: Vec::new() }
    }
}
