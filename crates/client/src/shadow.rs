//! What a policy that is only asked would have decided otherwise.

use serde::{Deserialize, Serialize};

/// The most differences that are told at once.
pub const MOST: usize = 1000;

/// A policy that is asked beside the one in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The policy as the user named it.
    pub policy: String,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

/// What it would have decided otherwise until now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The policy.
    pub candidate: Candidate,
    /// By contexts and class, [`MOST`] of them: those that came up most often.
    pub differences: Vec<Difference>,
    /// How many others there are.
    pub omitted: u64,
    /// Questions that it was not asked, for it did not know a context yet, or whose difference found no room.
    pub not_asked: u64,
}

/// What a context would have been denied or granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The context that acts.
    pub source: String,
    /// The context that is acted on.
    pub target: String,
    /// The class.
    pub class: String,
    /// Permissions that were allowed, and would not have been.
    pub denied: Vec<String>,
    /// Permissions that were denied, and would not have been.
    pub granted: Vec<String>,
    /// How many questions were answered otherwise.
    pub count: u64,
    /// When the first was, in seconds since 1970.
    pub since: u64,
    /// Whose it was.
    pub process: u32,
    /// The name of that process.
    pub command: String,
}
