//! The job of a guest, and the report that it returns: the format of the raw samples.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    command_line::CommandLine,
    confine::{
        Confinement,
        latency::{Calibration, Delays},
    },
    counter::Counter,
    decisions::Decisions,
    labels::Label,
    oracle::Act,
    workload::Tasks,
};

/// What to measure, and under which module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The unit of samples.
    pub counter: Counter,
    /// The security module's set-up.
    pub confinement: Confinement,
    /// Acts to try after the set-up; their outcome shows whether the policy denies.
    pub acts: Vec<Act>,
    /// Selections, in the form of `selection::Selection`; measured in this order.
    pub workloads: Vec<String>,
    /// Command lines that workloads name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandLine>,
    /// Samples per workload; `None`: the catalogue's number.
    pub samples: Option<u32>,
    /// The folder of the places, `/work` in a guest; `None`: a new directory under the temporary directory.
    #[serde(default)]
    pub work: Option<PathBuf>,
    /// Layout index: 0 is the plain layout; others shift the stack and the tick phase.
    pub padding: u32,
    /// Whether to wait until the kernel's work after boot is over.
    pub settle: bool,
    /// Delays of hooks, under [`Confinement::BpfLatency`] and [`Confinement::Latency`]: everything is measured without
    /// delays, then once under each entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<Delays>,
    /// Whether packets between the two network namespaces go through a tunnel below IP, which has a label (VXLAN-GBP).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tunnel: bool,
    /// The labels that receivers must see, by network. The job looks at no other network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// Operations of each workload that are run once more while the host logs their instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<u32>,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// `uname -r` of the kernel.
    pub release: String,
    /// The active modules, from securityfs; empty if it cannot be read.
    pub lsm: String,
    /// What the set-up found, for people: the loaded policy, the number of attached programs.
    pub confinement: String,
    /// The outcome of each act, in the order of the job.
    pub acts: Vec<ActOutcome>,
    /// The labels that receivers saw, before and after everything was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// The wait for a quiet kernel; absent if there was none.
    pub settled: Option<Settled>,
    /// One entry per selection, in order.
    pub workloads: Vec<Measured>,
    /// The same under each of the job's delays, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<Delayed>,
    /// The cost of a delay; absent if delays cannot be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// What reads the host's logs of instructions; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<Logged>,
}

/// What reads the logs of instructions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// Text symbols of the kernel, of its modules and of BPF programs, as lines of `/proc/kallsyms`.
    pub symbols: String,
    /// First addresses of pieces of BPF programs' machine code, and the source file of each, by address; empty if the
    /// measuring process may not look at programs.
    pub sources: Vec<(u64, String)>,
    /// Instructions of each operation by the counter, by selection.
    pub counted: Vec<Vec<u64>>,
}

/// The measurements with delayed hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delayed {
    /// The delays by hook.
    pub delays: Delays,
    /// One entry per selection, in order.
    pub workloads: Vec<Measured>,
}

/// The outcome of an act of the oracle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActOutcome {
    /// The act that was tried.
    pub act: Act,
    /// The errno it failed with; `None` if it succeeded.
    pub errno: Option<i32>,
}

/// The wait for a quiet kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// The wait in milliseconds, on the guest's clock.
    pub waited_ms: u64,
    /// Whether the kernel became quiet before the time limit.
    pub quiet: bool,
    /// The tasks that used most CPU time during the wait, as `NAME MILLISECONDS`.
    pub busiest: Vec<String>,
}

/// The samples of one selection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The selection, such as `open+close:d10`.
    pub name: String,
    /// `instructions` or `ns`, per operation.
    pub unit: String,
    /// Whether tasks wait for one another in the workload.
    pub tasks: Tasks,
    /// One figure per sample, in the order taken; empty if the workload could not be measured.
    pub samples: Vec<f64>,
    /// How idle time was left out, if tasks wait for one another; absent if it was not, as on a wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// The decisions of object managers meanwhile, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    /// Why the workload could not be measured.
    pub error: Option<String>,
}

/// How idle time of the processor was left out of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// The processor was never idle.
    Never,
    /// The kernel reports idle time in `/proc/timer_list`.
    TimerList,
    /// The kernel does not report idle time: a process under `SCHED_IDLE` ran whenever no other did, and its CPU time is left
    /// out. The cost of entering and leaving the idle loop is then not in the figure, and a scheduler with one more task
    /// takes up to 4 % longer per round trip.
    Soaker,
}
