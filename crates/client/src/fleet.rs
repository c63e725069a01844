//! What a node enforces of what its fleet has published.

use serde::{Deserialize, Serialize};

/// What the daemon reports to a fleet's agent. Hashes are in hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The fleet.
    pub fleet: String,
    /// The node.
    pub node: String,
    /// Its group.
    pub group: String,
    /// The version of the root file that the daemon trusts.
    pub root: u64,
    /// The number of the newest manifest that it has accepted; 0: none.
    pub number: u64,
    /// The hash of that manifest.
    pub manifest: Option<String>,
    /// The generation that is in force, or in shadow; `None`: no generation of the fleet is.
    pub generation: Option<String>,
    /// The hash of the tables in force, as read back from the kernel's memory.
    pub tables: Option<String>,
    /// `shadow`, `permissive` or `enforcing`.
    pub mode: Option<String>,
    /// How many hooks are attached.
    pub hooks: u32,
    /// How many things of the generation are not enforced.
    pub unenforced: u32,
    /// How many things have failed.
    pub failures: u32,
    /// Denials in the last minute, since the generation is in force.
    pub denials: u32,
    /// Why something that was offered is not in force, or is not any more.
    pub refused: Option<String>,
    /// How many offers were refused since this daemon began.
    #[serde(default)]
    pub refusals: u64,
    /// Until when the newest manifest is valid, in seconds since 1970; `None`: there is none.
    #[serde(default)]
    pub expires: Option<u64>,
    /// Since when this node does not know what is newest, in seconds since 1970; `None`: it knows.
    #[serde(default)]
    pub stale_since: Option<u64>,
    /// The agent.
    #[serde(default)]
    pub agent: Agent,
}

/// What the daemon knows of the fleet's agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Whether it runs.
    pub state: AgentState,
    /// When it looked last, in seconds since 1970; `None`: not since this daemon began.
    pub looked: Option<u64>,
    /// How many of its looks failed since this daemon began.
    pub failures: u64,
    /// Why the last one failed.
    pub cause: Option<String>,
}

/// Whether an agent runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// It has not come since this daemon began, which was not long ago.
    #[default]
    Awaited,
    /// It has come, and will again.
    Runs,
    /// It has come, and did not say that it will again (`--once`).
    Once,
    /// Its process is gone.
    Ended,
    /// It should have come again by now.
    Silent,
}

impl AgentState {
    /// Whether nobody looks for what is newest, though somebody should.
    #[must_use]
    pub fn is_missing(self) -> bool {
        matches!(self, Self::Ended | Self::Silent)
    }
}

/// What an agent says of its last look into the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// Within how many seconds it looks again; `None`: it does not.
    pub next: Option<u64>,
    /// Why it could not find out what is newest, or not fetch it; `None`: it could.
    pub cause: Option<String>,
}
