//! What came of a scenario.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What became of a subject's acts. The kernel's words: an error's name, a signal's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of them succeeded.
    Granted,
    /// One failed, and the subject stopped there.
    Denied {
        /// Which; the first is 1, and 0 is entering the domain.
        act: usize,
        /// With what: `EACCES`.
        errno: String,
    },
    /// A signal ended the subject.
    Killed {
        /// Its name: `SIGKILL`.
        signal: String,
    },
    /// The scenario could not be played; why.
    Broken(String),
}

impl Outcome {
    /// Whether all acts succeeded.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        *self == Self::Granted
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => write!(f, "granted"),
            Self::Denied { act, errno } => write!(f, "{errno} at act {act}"),
            Self::Killed { signal } => write!(f, "{signal}"),
            Self::Broken(why) => write!(f, "not played: {why}"),
        }
    }
}

/// A scenario that was played once: one line of what the program prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Played {
    /// The family's name.
    pub family: String,
    /// The scenario's name.
    pub name: String,
    /// Whether the enforcer was enforcing.
    pub enforcing: bool,
    /// What came of it.
    pub outcome: Outcome,
    /// The contexts of what the scenario looks at afterwards, in its order; empty for what is not there.
    pub contexts: Vec<String>,
}
