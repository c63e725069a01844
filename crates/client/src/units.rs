//! Units of systemd that have a context.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is known of a unit, for callers of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Its name; that of a template stands for its instances.
    pub name: String,
    /// The context that its processes get; empty: what the policy says.
    pub context: String,
    /// The file that says so.
    pub source: PathBuf,
    /// Why it cannot be: nothing of the unit's starts then, unless it is `ignorable`.
    pub problem: Option<String>,
    /// The unit runs without the context where that cannot be.
    pub ignorable: bool,
}
