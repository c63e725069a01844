//! The raw record of one guest boot, from which results are built.

use serde::{Deserialize, Serialize};
use tollgate_bench::{counter::Counter, job::Report, labels::Label, oracle::Act};

/// The version of the raw records' format that this program writes and reads.
pub const SCHEMA: u32 = 1;

/// One boot of one configuration (on the host, one run of it), whether it produced a report or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootRecord {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// The version of the program that wrote it.
    pub tollgate: String,
    /// The kernel, as the study names it.
    pub kernel: String,
    /// The configuration's name.
    pub configuration: String,
    /// The unit of the samples.
    pub clock: Counter,
    /// The number of the boot: the padding on the instruction clock, the round on the wall clock.
    pub boot: u32,
    /// The requested `lsm=` list; empty if there was none.
    pub lsm: String,
    /// The kernel's command line.
    pub command_line: String,
    /// QEMU's command, word by word; empty on the host.
    pub machine: Vec<String>,
    /// The acts that the configuration's policy must deny; empty if there are none.
    pub denials: Vec<Denial>,
    /// The labels that receivers must see; empty if nobody looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// Wall time of the boot on the host, in seconds.
    pub seconds: f64,
    /// The report, or why there is none.
    pub outcome: Outcome,
}

/// An act of the oracle, and the error with which a configuration's policy must refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The act that is tried.
    pub act: Act,
    /// The errno it must fail with.
    pub errno: i32,
}

/// The result of a boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The guest's report.
    Report(Box<Report>),
    /// Why there is no report.
    Failed(String),
}

impl BootRecord {
    /// The report, if the boot produced one.
    pub fn report(&self) -> Option<&Report> {
        match &self.outcome {
            Outcome::Report(report) => Some(report),
            Outcome::Failed(_) => None,
        }
    }

    /// `padding 2` or `round 2`.
    pub fn which(&self) -> String {
        match self.clock {
            Counter::Instructions => format!("padding {}", self.boot),
            Counter::Wall => format!("round {}", self.boot),
        }
    }
}
