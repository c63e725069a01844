//! Stages of a rollout: which nodes, in which mode, for how long, and what stops it.

use std::{fmt, str::FromStr, time::Duration};

use serde::Serialize;

use crate::name::Name;

/// How a node applies a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Beside the one in force: what it would have denied is reported.
    Shadow,
    /// In force; what it denies is granted and audited.
    Permissive,
    /// In force.
    Enforcing,
}

const MODES: [(Mode, &str); 3] =
    [(Mode::Shadow, "shadow"), (Mode::Permissive, "permissive"), (Mode::Enforcing, "enforcing")];

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MODES[*self as usize].1)
    }
}

impl FromStr for Mode {
    type Err = NoStage;

    fn from_str(text: &str) -> Result<Self, NoStage> {
        MODES.into_iter().find(|(_, name)| *name == text).map(|(mode, _)| mode).ok_or(NoStage)
    }
}

/// The nodes of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// So many of a hundred nodes, 1 to 100, by a hash of the node's name and the generation.
    Share(u32),
    /// Those of a group.
    Group(Name),
}

/// A stage.
///
/// Its text is `share 10 permissive hold 3600 denials 5 missing 2`, or `group canary ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Which nodes.
    pub nodes: Nodes,
    /// The mode in which they apply the generation.
    pub mode: Mode,
    /// How long they must hold before the next stage may begin.
    pub hold: Duration,
    /// How many denials a minute more than before a node accepts; it goes back by itself if there are more.
    pub denials: u32,
    /// How many nodes may be without an answer when the next stage begins.
    pub missing: u32,
}

impl Stage {
    /// All nodes at once.
    #[must_use]
    pub fn everybody(mode: Mode) -> Self {
        Self { nodes: Nodes::Share(100), mode, hold: Duration::ZERO, denials: u32::MAX, missing: u32::MAX }
    }

    /// Whether its nodes are all.
    #[must_use]
    pub fn is_everybody(&self) -> bool {
        self.nodes == Nodes::Share(100)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nodes {
            Nodes::Share(share) => write!(f, "share {share}")?,
            Nodes::Group(name) => write!(f, "group {name}")?,
        }
        let Self { mode, hold, denials, missing, .. } = self;
        write!(f, " {mode} hold {} denials {denials} missing {missing}", hold.as_secs())
    }
}

/// A text that is no stage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no stage: it is `share PERCENT` or `group NAME`, then `shadow`, `permissive` or `enforcing`, then `hold SECONDS denials \
     A-MINUTE missing NODES`"
)]
pub struct NoStage;

impl FromStr for Stage {
    type Err = NoStage;

    fn from_str(text: &str) -> Result<Self, NoStage> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let [which, nodes, mode, "hold", hold, "denials", denials, "missing", missing] = words[..] else {
            return Err(NoStage);
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| NoStage);
        let nodes = match which {
            "share" => Nodes::Share(number(nodes).ok().filter(|share| (1..=100).contains(share)).ok_or(NoStage)?),
            "group" => Nodes::Group(nodes.parse().map_err(|_| NoStage)?),
            _ => return Err(NoStage),
        };
        let hold = Duration::from_secs(number(hold)?.into());
        Ok(Self { nodes, mode: mode.parse()?, hold, denials: number(denials)?, missing: number(missing)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_has_written_and_refuses_what_is_no_stage() {
        for text in
            ["share 10 permissive hold 3600 denials 5 missing 2", "group canary shadow hold 0 denials 0 missing 0"]
        {
            assert_eq!(text.parse::<Stage>().unwrap().to_string(), text);
        }
        let everybody = Stage::everybody(Mode::Enforcing);
        assert_eq!(everybody.to_string().parse(), Ok(everybody));
        for text in [
            "share 0 shadow hold 0 denials 0 missing 0",
            "share 101 shadow hold 0 denials 0 missing 0",
            "share 10 off hold 0 denials 0 missing 0",
            "node a shadow hold 0 denials 0 missing 0",
            "group ../x shadow hold 0 denials 0 missing 0",
            "share 10 shadow hold -1 denials 0 missing 0",
            "share 10 shadow hold 0 denials 0",
        ] {
            assert_eq!(text.parse::<Stage>(), Err(NoStage), "{text}");
        }
    }
}
