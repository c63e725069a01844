//! Services as they should be and as they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};

/// Whether a service is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A process of it should be confined, and is not; or it cannot start.
    NotConfined,
    /// Nothing says that it should be confined, and others can reach it.
    Unconfined,
    /// All its processes that should be are.
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

/// A unit, or a program that runs outside of units, as it should be and as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The unit, or the program.
    pub name: String,
    /// The domain that it should run in; `None`: nothing says so.
    pub expected: Option<String>,
    /// The domains that its processes are in, and how many are in each.
    pub domains: BTreeMap<String, usize>,
    /// Where it listens: `tcp 443`.
    pub listening: BTreeSet<String>,
    /// Whether that is as it should be.
    pub verdict: Verdict,
    /// Why not, and what helps.
    pub why: Vec<String>,
}
