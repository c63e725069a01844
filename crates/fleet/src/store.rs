//! Where generations lie and nodes say what they enforce.

use std::time::Duration;

use crate::{hash::Hash, name::Name};

/// What a store keeps one of, and replaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Head {
    /// The manifest in force for a group of nodes.
    Current(Name),
    /// Which nodes belong to the fleet.
    Register,
}

impl Head {
    /// The maximum length of what is behind it, in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        match self {
            Self::Current(_) => 1 << 16,
            Self::Register => 64 << 20,
        }
    }
}

/// What nodes write, each its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// What it enforces.
    State,
    /// That it asks to belong to the fleet.
    Request,
}

impl Kind {
    /// The maximum length of one of them, in bytes.
    #[must_use]
    pub fn limit(self) -> u64 {
        1 << 14
    }
}

/// A store's mark of one version of something that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(pub Vec<u8>);

/// One version of something that a store replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its bytes, as somebody has written them.
    pub bytes: Vec<u8>,
    /// Its mark.
    pub revision: Revision,
}

/// Why a store did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else has replaced it meanwhile.
    #[error(
        "{what} has been replaced by somebody else meanwhile: look at it with `tollgate fleet status`, then try again"
    )]
    Replaced {
        /// What should be replaced.
        what: String,
    },
    /// It would have replaced what never changes.
    #[error(
        "{what} is in the store with another content, and never changes: use another store, or look who has written it"
    )]
    Exists {
        /// What should be written.
        what: String,
    },
    /// What a manifest names is not there.
    #[error("the store lacks {what}: publish again, or wait until all of it has been copied")]
    Missing {
        /// What was wanted.
        what: String,
    },
    /// Something is longer than anybody may write.
    #[error("{what} is longer than {limit} bytes, which nothing of its kind is: look who has written it")]
    Long {
        /// What is too long.
        what: String,
        /// The maximum length, in bytes.
        limit: u64,
    },
    /// The store could not be reached, or refused.
    #[error("cannot {what}: {cause}")]
    Failed {
        /// What was attempted.
        what: String,
        /// What was returned, and the remedy.
        cause: String,
    },
}

/// Where generations lie and nodes say what they enforce. It is never trusted: whoever reads checks signatures, hashes
/// and numbers. What it may do at worst is withhold.
///
/// No implementation sends its futures to another thread.
#[expect(async_fn_in_trait, reason = "agents have one thread")]
pub trait Store {
    /// What is in force.
    async fn head(&self, head: &Head) -> Result<Option<Version>, StoreError>;

    /// Replaces it, if it is still as expected (`None`: there is none yet).
    async fn swap(&self, head: &Head, bytes: &[u8], expected: Option<&Revision>) -> Result<(), StoreError>;

    /// A piece: bytes by their SHA-256, at most so many. Whoever calls compares the hash.
    async fn piece(&self, hash: &Hash, limit: u64) -> Result<Vec<u8>, StoreError>;

    /// Writes a piece. Pieces are written before whatever names them.
    async fn put_piece(&self, hash: &Hash, bytes: &[u8]) -> Result<(), StoreError>;

    /// A version of the root file; `None`: there is none yet.
    async fn root(&self, version: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes a version of the root file, which is never replaced.
    async fn put_root(&self, version: u64, bytes: &[u8]) -> Result<(), StoreError>;

    /// Writes what a node says, in place of what it said before.
    async fn put(&self, kind: Kind, node: &Name, bytes: &[u8]) -> Result<(), StoreError>;

    /// What all nodes say, by name. Anybody may have written it.
    async fn all(&self, kind: Kind) -> Result<Vec<(Name, Vec<u8>)>, StoreError>;

    /// Returns when the head may have another revision than this; never, if the store cannot tell.
    async fn changed(&self, head: &Head, since: Option<&Revision>);

    /// How often whoever waits looks again, whatever `changed` says.
    fn interval(&self) -> Duration;
}
