//! The raw record of one guest boot: what a study keeps of it, and what results are built from.

use serde::{Deserialize, Serialize};
use tollgate_bench::{counter::Counter, job::Report, oracle::Act};

/// The version of the raw records' format that this program writes and reads.
pub const SCHEMA: u32 = 1;

/// One boot of one configuration (or, on the host, one run of it), whether it came to a report or not.
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
    /// What the samples are counted in.
    pub clock: Counter,
    /// Which boot of the configuration: the padding's index on the instruction clock, the round on the wall clock.
    pub boot: u32,
    /// The `lsm=` list that was asked for; empty if none was given.
    pub lsm: String,
    /// The kernel's command line.
    pub command_line: String,
    /// The virtual machine's command, word by word; empty on the host itself.
    pub machine: Vec<String>,
    /// What the configuration's policy must deny; empty if it has none.
    pub denials: Vec<Denial>,
    /// Wall time of the boot on the host, in seconds.
    pub seconds: f64,
    /// What came of it.
    pub outcome: Outcome,
}

/// An act of the oracle, and how a configuration's policy must refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The act.
    pub act: Act,
    /// The errno it must fail with.
    pub errno: i32,
}

/// What came of a boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The guest's report.
    Report(Box<Report>),
    /// Why there is none.
    Failed(String),
}

impl BootRecord {
    /// The report, if the boot came to one.
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
