//! What a node says that it enforces, signed by its own key.

use std::{fmt::Display, str::FromStr};

use crate::{
    document::{Lines, Text, Wrong, parsed},
    hash::Hash,
    manifest::{optional, read_optional},
    name::Name,
    stage::Mode,
    time::Time,
};

/// The state of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The fleet.
    pub fleet: Name,
    /// The node.
    pub node: Name,
    /// How many states it has signed before; a later one is greater.
    pub sequence: u64,
    /// When it was made, by the node's clock.
    pub made: Time,
    /// The number of the newest manifest that it has accepted.
    pub number: u64,
    /// The hash of that manifest.
    pub manifest: Option<Hash>,
    /// The generation that is in force, or in shadow ([`crate::Manifest::generation`]).
    pub generation: Option<Hash>,
    /// The hash of its tables, as read back from what decides.
    pub tables: Option<Hash>,
    /// The mode; `None`: nothing is in force.
    pub mode: Option<Mode>,
    /// How many hooks are attached.
    pub hooks: u32,
    /// How many hooks that the policy needs are not.
    pub unenforced: u32,
    /// How many things have failed.
    pub failures: u32,
    /// Denials a minute.
    pub denials: u32,
}

fn word<T: Display>(value: Option<&T>) -> String {
    value.map_or_else(|| "none".to_owned(), T::to_string)
}

fn read_word<T: FromStr<Err: Display>>(text: &str) -> Result<Option<T>, Wrong> {
    if text == "none" { Ok(None) } else { parsed(text).map(Some) }
}

impl Text for State {
    const KIND: &'static str = "state";
    const LIMIT: u64 = 1 << 14;

    fn write(&self) -> String {
        let Self { fleet, node, sequence, made, number, hooks, unenforced, failures, denials, .. } = self;
        let hashes = [&self.manifest, &self.generation, &self.tables].map(|hash| optional(hash.as_ref()));
        let [manifest, generation, tables] = hashes;
        let mode = word(self.mode.as_ref());
        format!("fleet {fleet}\nnode {node}\nsequence {sequence}\nmade {made}\nnumber {number}\nmanifest {manifest}\n")
            + &format!("generation {generation}\ntables {tables}\nmode {mode}\nhooks {hooks}\n")
            + &format!("unenforced {unenforced}\nfailures {failures}\ndenials {denials}\n")
    }

    fn read(lines: &mut Lines<'_>) -> Result<Self, Wrong> {
        Ok(Self {
            fleet: lines.parsed("fleet")?,
            node: lines.parsed("node")?,
            sequence: lines.parsed("sequence")?,
            made: lines.parsed("made")?,
            number: lines.parsed("number")?,
            manifest: read_optional(lines.value("manifest")?)?,
            generation: read_optional(lines.value("generation")?)?,
            tables: read_optional(lines.value("tables")?)?,
            mode: read_word(lines.value("mode")?)?,
            hooks: lines.parsed("hooks")?,
            unenforced: lines.parsed("unenforced")?,
            failures: lines.parsed("failures")?,
            denials: lines.parsed("denials")?,
        })
    }
}
