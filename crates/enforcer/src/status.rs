//! What the daemon tells of enforcement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::Mode;

/// What is enforced, since when, and what went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What happens to what policy denies.
    pub mode: Mode,
    /// The policy as the user named it.
    pub policy: String,
    /// Which generation of policy is in force, counted from the first since enforcement began.
    pub generation: u32,
    /// Since when, in seconds since 1970.
    pub generation_since: u64,
    /// When enforcement began, likewise.
    pub since: u64,
    /// The daemon's process number.
    pub daemon: u32,
    /// The hooks of the kernel.
    pub hooks: Hooks,
    /// Domains whose denials are granted, and audited.
    pub permissive: Vec<String>,
    /// Domains that are asked nothing.
    pub unconfined: Vec<String>,
    /// Confined contexts that a process has or had.
    pub subjects: Vec<String>,
    /// How many contexts have a SID.
    pub contexts: u64,
    /// Whether all that was there when enforcement began has its label.
    pub labelling_complete: bool,
    /// Denials, and acts that policy wants audited, since enforcement began.
    pub events: u64,
    /// Why something failed, and how often; a confined process was denied each time. `event lost` and `event limit` are
    /// denials that are in no log.
    pub failures: BTreeMap<String, u64>,
    /// Whether denials go to the kernel's audit; else to a file.
    pub audit: bool,
}

/// Where enforcement is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// Hooks with a program.
    pub attached: Vec<String>,
    /// Hooks at which no rule of this policy can deny anything.
    pub not_needed: Vec<String>,
    /// Hooks that this kernel does not have: what only they see is not enforced.
    pub missing: Vec<String>,
}

/// How often one object manager was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// Questions.
    pub asked: u64,
    /// Those that a cache answered.
    pub cached: u64,
    /// Those that the tables answered.
    pub tables: u64,
    /// Those that were answered with no.
    pub denied: u64,
}
