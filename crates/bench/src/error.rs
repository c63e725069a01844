//! What can go wrong on the measured machine.

/// An error of the measured machine; the text names what was tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call of a set-up step failed.
    #[error("{what}: {cause}")]
    Io {
        /// The attempted operation, with its path or name.
        what: String,
        /// The operating system's error.
        cause: std::io::Error,
    },
    /// This kernel or this machine cannot do what the job needs.
    #[error("{0}")]
    Unavailable(String),
    /// A workload name that the catalogue does not hold.
    #[error("unknown workload {name:?}{}", nearest.as_ref().map(|n| format!("; did you mean {n:?}?")).unwrap_or_default())]
    UnknownWorkload {
        /// The name as it was given.
        name: String,
        /// The catalogue's closest name, if one is close.
        nearest: Option<String>,
    },
    /// A workload suffix (`:ext4`, `:d4`, `:veth`) that does not exist or does not apply.
    #[error("workload {selection:?}: {reason}")]
    BadVariant {
        /// The selection as it was given.
        selection: String,
        /// What is wrong with it and what is allowed.
        reason: String,
    },
}

/// Adds what was tried to an I/O or system call error.
pub(crate) trait Context<T> {
    /// `what` is a phrase such as `mount tmpfs on /work`.
    fn context(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<std::io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|e| Error::Io { what: what.into(), cause: e.into() })
    }
}
