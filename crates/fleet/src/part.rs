//! The parts of a generation.

use std::{fmt, str::FromStr};

use tollgate_policy::built::{SECTIONS, Section};

/// A part of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A section of the built policy.
    Policy(Section),
    /// The guard's database.
    Guard,
    /// Which networks' packets have labels.
    Network,
    /// The sanity questions, which a node asks before it keeps the policy.
    Sanity,
}

impl Part {
    /// All parts, in the order in which manifests have them.
    pub fn all() -> impl Iterator<Item = Self> {
        SECTIONS.into_iter().map(Self::Policy).chain([Self::Guard, Self::Network, Self::Sanity])
    }

    fn name(self) -> &'static str {
        match self {
            Self::Policy(section) => section.name(),
            Self::Guard => "guard",
            Self::Network => "network",
            Self::Sanity => "sanity",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is no part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no part of a generation: update this program, if its publisher has a newer one")]
pub struct NoPart;

impl FromStr for Part {
    type Err = NoPart;

    fn from_str(text: &str) -> Result<Self, NoPart> {
        Self::all().find(|part| part.name() == text).ok_or(NoPart)
    }
}
