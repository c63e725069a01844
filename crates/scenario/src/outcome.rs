//! The result of a scenario.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of a subject's acts, with the kernel's names of errors and signals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All of them succeeded.
    Granted,
    /// An act failed, and the subject stopped there.
    Denied {
        /// The number of the act; the first is 1, and 0 is entering the domain.
        act: usize,
        /// The error, such as `EACCES`.
        errno: String,
    },
    /// A signal ended the subject.
    Killed {
        /// The signal, such as `SIGKILL`.
        signal: String,
    },
    /// The scenario could not be played, for this reason.
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

/// One play of a scenario: one line of the program's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Played {
    /// The family's name.
    pub family: String,
    /// The scenario's name.
    pub name: String,
    /// Whether the enforcer was enforcing.
    pub enforcing: bool,
    /// What happened to the acts.
    pub outcome: Outcome,
    /// The contexts of the paths in `look`, in its order; empty for missing files.
    pub contexts: Vec<String>,
}
