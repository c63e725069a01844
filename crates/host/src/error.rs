//! What can go wrong with programs, packages and the cache.

use std::{io, path::PathBuf};

/// An error of this crate; the message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, socket or process operation failed.
    #[error("{what}: {cause}{}", remedy(cause))]
    Io {
        /// What was attempted, with the path.
        what: String,
        /// What the system returned.
        cause: io::Error,
    },
    /// The system is not one whose kernels this crate can fetch.
    #[error(
        "{reason}: kernels are fetched with Debian's apt; on another system give a kernel image with --kernel PATH"
    )]
    NotDebian {
        /// What was not found.
        reason: String,
    },
    /// apt could not reach a mirror and nothing usable is cached.
    #[error("cannot fetch {what}: {detail}\nno network, and it is not in the cache {cache}; run this once with a network, then it works without", cache = cache.display())]
    Offline {
        /// What should have been fetched.
        what: String,
        /// apt's message.
        detail: String,
        /// Path of the cache in which it would have been stored.
        cache: PathBuf,
    },
    /// No suite has a package with this name.
    #[error("no package {name:?} in the suites {suites}; `tollgate vm kernels --update` reads the package lists anew")]
    NoPackage {
        /// Name of the package.
        name: String,
        /// The suites that were searched.
        suites: String,
    },
    /// A program of the packaging system failed.
    #[error("{program} failed: {detail}")]
    Apt {
        /// Name of the program.
        program: String,
        /// The last lines of its standard error.
        detail: String,
    },
    /// A program did not end in time.
    #[error("{program} did not end within {seconds} s and was stopped; try again, or run it by hand to see why")]
    TooLong {
        /// Name of the program.
        program: String,
        /// The limit, in seconds.
        seconds: u64,
    },
    /// The user interrupted the work.
    #[error("interrupted")]
    Interrupted,
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull => " (free some space, or set XDG_CACHE_HOME or TMPDIR to a folder on another disk)",
        io::ErrorKind::PermissionDenied => " (is the folder yours? XDG_CACHE_HOME and TMPDIR choose others)",
        _ => "",
    }
}

/// Adds to an I/O error what was attempted.
pub trait Context<T> {
    /// `what` is a phrase such as `write /tmp/x`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there was an error.
    fn context(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|e| Error::Io { what: what.into(), cause: e.into() })
    }
}
