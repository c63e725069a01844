//! Containers: which cgroup is one's, and the two categories that keep it apart from all others. A process of the machine
//! that executes a program there gets the container's context (`bpf/container.h`).

pub mod categories;
pub mod cgroup;

use std::io;

use tollgate_client::protocol::Refusal;

use self::categories::Pair;
use crate::contexts::Sid;

/// The attribute of the types that a container's processes may have. No other type is given to one, whoever asks.
pub const DOMAINS: &str = "container_domain";

/// A container that is about to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The number of its cgroup.
    pub cgroup: u64,
    /// The context of its processes, with its SID.
    pub context: (Sid, String),
    /// The label of its files, with its SID.
    pub files: (Sid, String),
}

/// Why a container gets no context. It must not start then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// Its cgroup is not known.
    #[error("cannot find the container's cgroup: {0}; containers need the unified hierarchy (cgroup v2)")]
    Cgroup(io::Error),
    /// The process is not in a cgroup of its container alone.
    #[error(
        "{0} is no cgroup of a container alone: the runtime or the daemon is in it, too; let the runtime make cgroups"
    )]
    Shared(String),
    /// The cgroup lies too deep.
    #[error("the cgroup {0} lies in more than 31 others")]
    Deep(String),
    /// The context is not one of a container.
    #[error("{0} is no context of a container: its type does not have the attribute container_domain")]
    Domain(String),
    /// The cgroup is a container's already, with another context.
    #[error("its cgroup is that of a container with the context {0}")]
    Known(String),
    /// The root file system is another container's.
    #[error("its root file system is that of another container that runs")]
    Root,
    /// All pairs of categories are taken, or the map is full.
    #[error("there are too many containers: {0}")]
    Full(String),
    /// The kernel's memory cannot be read or written.
    #[error("cannot put the container's context in force: {0}")]
    Kernel(String),
}

impl From<ContainerError> for Refusal {
    fn from(cause: ContainerError) -> Self {
        let errno = match &cause {
            ContainerError::Cgroup(cause) => cause.raw_os_error().unwrap_or(libc::ENOENT),
            ContainerError::Shared(_) | ContainerError::Deep(_) | ContainerError::Domain(_) => libc::EINVAL,
            ContainerError::Known(_) | ContainerError::Root => libc::EBUSY,
            ContainerError::Full(_) => libc::ENOSPC,
            ContainerError::Kernel(_) => libc::EIO,
        };
        Self::new(errno, cause.to_string())
    }
}

/// A context with the categories of a pair, at the lowest sensitivity, if it names no range.
#[must_use]
pub fn with_pair(context: &str, pair: Pair) -> String {
    if has_range(context) { context.to_owned() } else { format!("{context}:s0:{pair}") }
}

/// Whether a context names a range.
#[must_use]
pub fn has_range(context: &str) -> bool {
    context.matches(':').count() > 2
}

/// The pair that a context with one level has; `None`: it has other categories.
#[must_use]
pub fn pair_of(context: &str) -> Option<Pair> {
    context.splitn(4, ':').nth(3)?.split_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_two_categories_to_a_context_without_a_range_and_keeps_others() {
        let pair = "c4,c9".parse().unwrap();
        assert_eq!(with_pair("u:r:container_t", pair), "u:r:container_t:s0:c4,c9");
        assert_eq!(with_pair("u:r:container_t:s0:c1,c2", pair), "u:r:container_t:s0:c1,c2");
        assert_eq!(pair_of("u:r:container_t:s0:c4,c9"), Some(pair));
        assert_eq!((pair_of("u:r:container_t:s0"), pair_of("u:r:t"), pair_of("u:r:t:s0:c1,c2,c3")), (None, None, None));
    }
}
