//! systemd units that have a context.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What the daemon knows of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Name of the unit; the name of a template stands for all its instances.
    pub name: String,
    /// The context of its processes; empty: the rules of the policy decide.
    pub context: String,
    /// The unit file that names the context.
    pub source: PathBuf,
    /// Why the unit cannot have the context. Nothing of the unit starts then, unless it is `ignorable`.
    pub problem: Option<String>,
    /// Whether the unit runs without the context if it cannot have it.
    pub ignorable: bool,
}
