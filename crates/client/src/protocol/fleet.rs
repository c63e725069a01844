//! Requests of a fleet's agent.

use crate::fleet::Looked;

/// What an agent can ask of the daemon (docs/fleet.md). The answer follows each colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fleet {
    /// What this node enforces of what its fleet has published: a [`crate::fleet::Report`] as JSON.
    Report,
    /// Offers the next version of the root file, which is the descriptor: its version.
    Root,
    /// Offers a manifest, which is the first descriptor, and these parts of its generation, `policy` first, which are
    /// the next ones: what was done with it, in words.
    Offer(Vec<String>),
    /// Says that the agent has looked into the store: nothing.
    Looked(Looked),
}

/// What an agent says that does not look again.
const ONCE: &str = "once";

/// The parts that come in files of their own, in their order.
const PARTS: [&str; 4] = ["policy", "guard", "network", "sanity"];

impl Fleet {
    pub(super) fn descriptors(&self) -> usize {
        match self {
            Self::Report | Self::Looked(_) => 0,
            Self::Root => 1,
            Self::Offer(parts) => 1 + parts.len(),
        }
    }

    pub(super) fn words(&self) -> Vec<String> {
        let (words, parts): (&[&str], &[String]) = match self {
            Self::Report => (&["fleet"], &[]),
            Self::Root => (&["fleet", "root"], &[]),
            Self::Offer(parts) => (&["fleet", "offer"], parts),
            Self::Looked(Looked { next, cause }) => {
                let next = next.map_or_else(|| ONCE.to_owned(), |seconds| seconds.to_string());
                let words = ["fleet".to_owned(), "looked".to_owned(), next];
                return words.into_iter().chain(cause.clone()).collect();
            }
        };
        words.iter().map(|word| (*word).to_owned()).chain(parts.iter().cloned()).collect()
    }

    /// Reads the words after the first.
    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        match words {
            [] => Some(Self::Report),
            ["root"] => Some(Self::Root),
            ["offer", parts @ ..] => {
                let ordered = PARTS.iter().filter(|part| parts.contains(part));
                let is_known = parts.iter().eq(ordered) && parts.first().is_none_or(|first| *first == "policy");
                is_known.then(|| Self::Offer(parts.iter().map(|part| (*part).to_owned()).collect()))
            }
            ["looked", next, cause @ ..] => {
                let next = if *next == ONCE { None } else { Some(next.parse().ok()?) };
                let cause = match cause {
                    [] => None,
                    [cause] => Some((*cause).to_owned()),
                    _ => return None,
                };
                Some(Self::Looked(Looked { next, cause }))
            }
            _ => None,
        }
    }
}
