//! Requests about containers.

use std::ops::RangeInclusive;

/// What hooks of container runtimes ask for. The answer follows each colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containers {
    /// Gives the container whose first process is the descriptor, a pidfd, its context: the context and the label of its
    /// files. A second descriptor is the directory that will be its root.
    Add {
        /// The context of its processes. Without a range, the daemon adds two categories that no other container has.
        context: String,
        /// The label of its files, likewise.
        files: String,
    },
    /// Takes back at once the contexts of containers whose cgroups are gone.
    Sweep,
    /// The containers that have a context: [`crate::containers::Container`]s as JSON.
    Report,
}

impl Containers {
    pub(super) fn descriptors(&self) -> RangeInclusive<usize> {
        match self {
            Self::Add { .. } => 1..=2,
            Self::Sweep | Self::Report => 0..=0,
        }
    }

    pub(super) fn words(&self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Add { context, files } => &["containers", "add", context, files],
            Self::Sweep => &["containers", "sweep"],
            Self::Report => &["containers"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Reads the words after the first.
    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        match *words {
            [] => Some(Self::Report),
            ["sweep"] => Some(Self::Sweep),
            ["add", context, files] => Some(Self::Add { context: context.to_owned(), files: files.to_owned() }),
            _ => None,
        }
    }
}
