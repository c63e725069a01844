//! What enforces on a node, as the agent sees it.

use std::time::Duration;

use tollgate_fleet::{Hash, Kept, rollout::Duty, stage::Mode, store::Store};

/// What is in force on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Enforced {
    /// The generation; `None`: nothing says which.
    pub(crate) generation: Option<Hash>,
    /// The hash of the tables, as read back from what decides.
    pub(crate) tables: Option<Hash>,
    /// The mode; `None`: nothing is in force.
    pub(crate) mode: Option<Mode>,
    /// How many hooks are attached.
    pub(crate) hooks: u32,
    /// How many hooks that the policy needs are not.
    pub(crate) unenforced: u32,
    /// How many things have failed.
    pub(crate) failures: u32,
    /// Denials a minute.
    pub(crate) denials: u32,
}

/// Puts in force what a node has taken.
pub(crate) trait Enforcer {
    /// Offers it the newest manifest that the node keeps, and the generation on its shelf if that is what the node must do
    /// by it. Root files that it lacks are in the store.
    async fn offer(&self, kept: &Kept, duty: Option<Duty>, store: &impl Store) -> anyhow::Result<()>;

    /// Hears that the node has looked into the store, within which time it looks again, and why it does not
    /// know what is newest.
    fn looked(&self, next: Option<Duration>, cause: Option<String>) -> anyhow::Result<()>;

    /// Whether something else is in force by now: a node may go back by itself.
    fn has_changed(&self, since: &Enforced) -> bool;

    /// How often that is looked for.
    fn interval(&self) -> Duration;

    /// What is in force.
    fn enforced(&self, kept: &Kept, duty: Option<Duty>) -> anyhow::Result<Enforced>;
}
