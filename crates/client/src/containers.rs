//! Containers that have a context of their own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What the daemon knows of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The path of its cgroup in the unified hierarchy, from `/` on.
    pub cgroup: PathBuf,
    /// The context of its processes.
    pub context: String,
    /// The label of its files.
    pub files: String,
}
