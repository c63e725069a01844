//! The job that a guest is given and the report that comes back: the format of the raw samples.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    confine::{
        Confinement,
        latency::{Calibration, Delays},
    },
    counter::Counter,
    decisions::Decisions,
    oracle::Act,
    workload::Tasks,
};

/// What to measure, and under what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What samples are counted in.
    pub counter: Counter,
    /// The security module's set-up.
    pub confinement: Confinement,
    /// Acts to try once the set-up stands; their outcome says whether the policy decides.
    pub acts: Vec<Act>,
    /// Selections, as `selection::Selection` reads them; measured in this order.
    pub workloads: Vec<String>,
    /// Samples a workload, instead of the catalogue's number.
    pub samples: Option<u32>,
    /// Where the places are made, `/work` in a guest; a directory of its own under the temporary directory if absent.
    #[serde(default)]
    pub work: Option<PathBuf>,
    /// Layout index: 0 is the plain layout; others shift the stack and the tick phase.
    pub padding: u32,
    /// Wait until the kernel's work after boot is over before anything is measured.
    pub settle: bool,
    /// Delays of hooks, under [`Confinement::BpfLatency`] and [`Confinement::Latency`]: everything is measured without any, then once under each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<Delays>,
}

/// What came of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `uname -r`.
    pub release: String,
    /// The active modules, from securityfs, or empty where it cannot be read.
    pub lsm: String,
    /// What the set-up found, for people: the loaded policy, the number of attached programs.
    pub confinement: String,
    /// Outcome of each act asked for, in order.
    pub acts: Vec<ActOutcome>,
    /// How long the kernel took to fall quiet after boot; absent if it was not waited for.
    pub settled: Option<Settled>,
    /// One entry a selection, in order.
    pub workloads: Vec<Measured>,
    /// The same under each of the job's delays, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<Delayed>,
    /// What a delay costs; absent where none can be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
}

/// What was measured while hooks took longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delayed {
    /// By hook.
    pub delays: Delays,
    /// One entry a selection, in order.
    pub workloads: Vec<Measured>,
}

/// Outcome of an act of the oracle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActOutcome {
    /// The act.
    pub act: Act,
    /// The errno it failed with; `None` if it succeeded.
    pub errno: Option<i32>,
}

/// The wait for a quiet kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Milliseconds waited, on the guest's clock.
    pub waited_ms: u64,
    /// Whether the kernel fell quiet before the wait was given up.
    pub quiet: bool,
    /// The tasks that used most CPU while it was waited, as `NAME MILLISECONDS`.
    pub busiest: Vec<String>,
}

/// The samples of one selection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The selection.
    pub name: String,
    /// `instructions` or `ns`, per operation.
    pub unit: String,
    /// Whether tasks wait for one another in it.
    pub tasks: Tasks,
    /// One figure a sample, in the order taken; empty if it could not be measured.
    pub samples: Vec<f64>,
    /// How idle time was left out, where tasks wait for one another; absent if it was not, as on a wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// What object managers decided meanwhile, where that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    /// Why it could not be measured.
    pub error: Option<String>,
}

/// How the time in which the processor was idle was left out of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// It was never idle.
    Never,
    /// The kernel says how long, in `/proc/timer_list`.
    TimerList,
    /// On a kernel that does not say: a process under `SCHED_IDLE` ran whenever no other did, and its CPU time is left
    /// out. The cost of entering and leaving the idle loop is then not in the figure, and a scheduler with one more task
    /// to choose from takes up to 4 % longer over a round trip.
    Soaker,
}
