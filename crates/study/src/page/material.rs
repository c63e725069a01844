//! What a page is made of: a study's results, and what other commands wrote into its folder.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{model::Observations, results::Results};

/// All that a study's folder holds for a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Material {
    /// `results.json`.
    pub results: Results,
    /// `observations.json`, which a study with a `[latency]` table writes; empty if it is not there.
    pub observations: Vec<Observations>,
    /// `counts.json`, which `tollgate hooks count --json` writes; empty if it is not there.
    pub counts: Vec<Counts>,
    /// Each `graph-KERNEL.json`, which `tollgate hooks graph --json` writes, in the order of names.
    pub graphs: Vec<Graph>,
}

/// The version of the format of counts that this program reads.
pub const COUNTS_SCHEMA: u32 = 1;

/// How often hooks were asked in a command's run or a workload's operation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Counts {
    /// `uname -r`.
    #[serde(default)]
    pub kernel: String,
    /// The workload.
    #[serde(default)]
    pub workload: Option<String>,
    /// The command, word by word, where it was no workload.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Of how many runs the counts are the mean.
    #[serde(default)]
    pub runs: Option<u64>,
    /// Events that the tracer lost: counts are too small if there are any.
    #[serde(default)]
    pub lost: u64,
    /// By system call.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Hooks that no call was found for.
    #[serde(default)]
    pub deferred: BTreeMap<String, f64>,
}

/// A system call's share.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Call {
    /// Its name, or `page fault`.
    pub call: String,
    /// How often it was called.
    pub count: f64,
    /// How often each hook was asked in it.
    pub hooks: BTreeMap<String, f64>,
}

/// The hooks that a kernel's system calls can reach.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Graph {
    /// The kernel, as it was named.
    pub kernel: String,
    /// Its system calls.
    pub syscalls: Vec<Reach>,
}

/// What a system call can reach.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reach {
    /// The system call.
    pub syscall: String,
    /// The hooks.
    pub hooks: Vec<Reached>,
}

/// A hook within reach.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reached {
    /// The framework's function without `security_`.
    pub hook: String,
    /// Whether direct calls alone lead to it.
    pub direct: bool,
    /// How many calls lead to it at least.
    pub depth: usize,
    /// One shortest way, from the system call's entry to the hook.
    pub path: Vec<Step>,
}

/// A function on a way.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// Its name.
    pub function: String,
}

impl Material {
    /// Results alone.
    #[must_use]
    pub fn of(results: Results) -> Self {
        Self { results, observations: Vec::new(), counts: Vec::new(), graphs: Vec::new() }
    }
}
