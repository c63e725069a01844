//! Services: what is expected of each, and how each runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};

/// Whether a service runs as it is expected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// One of its processes should be confined and is not, or the service cannot start.
    NotConfined,
    /// No domain is expected for it, and other machines or users can reach it.
    Unconfined,
    /// All of its processes that should be confined are.
    Confined,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotConfined => "NOT CONFINED",
            Self::Unconfined => "unconfined",
            Self::Confined => "confined",
        })
    }
}

/// A unit, or a program that runs outside of units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Name of the unit, or path of the program.
    pub name: String,
    /// The domain that it should run in; `None`: none is expected.
    pub expected: Option<String>,
    /// The domains of its processes, and the number of processes in each.
    pub domains: BTreeMap<String, usize>,
    /// The addresses on which it listens, for example `tcp 443`.
    pub listening: BTreeSet<String>,
    /// Whether it runs as expected.
    pub verdict: Verdict,
    /// Why it does not, and the remedy.
    pub why: Vec<String>,
}
