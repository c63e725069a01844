//! What a candidate would have decided otherwise. A candidate is a policy that is checked beside the policy in force
//! and enforces nothing.

use serde::{Deserialize, Serialize};

/// The maximum number of differences in a report.
pub const MAX_DIFFERENCES: usize = 1000;

/// A policy that is checked beside the policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Path of the policy as the user named it.
    pub policy: String,
    /// When it became the candidate, in seconds since 1970.
    pub since: u64,
}

/// What the candidate would have decided otherwise so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The candidate that was checked.
    pub candidate: Candidate,
    /// Differences by contexts and class: the [`MAX_DIFFERENCES`] most frequent ones.
    pub differences: Vec<Difference>,
    /// How many differences are not in the report.
    pub omitted: u64,
    /// How many checks the candidate missed: it did not know a context yet, or there was no room for the difference.
    pub not_asked: u64,
}

/// What a context would have been denied or granted in addition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The context that acts.
    pub source: String,
    /// The context that is acted on.
    pub target: String,
    /// Name of the object's class.
    pub class: String,
    /// Permissions that were allowed, and would not have been.
    pub denied: Vec<String>,
    /// Permissions that were denied, and would not have been.
    pub granted: Vec<String>,
    /// How many checks had another result.
    pub count: u64,
    /// When the first one was, in seconds since 1970.
    pub since: u64,
    /// Number of the process that was checked first.
    pub process: u32,
    /// Name of that process.
    pub command: String,
}
