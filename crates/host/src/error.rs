//! What can go wrong with programs, packages and the cache.

use std::{io, path::PathBuf};

/// An error of this crate; the message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, socket or process operation failed.
    #[error("{what}: {cause}{}", remedy(cause))]
    Io {
        /// What was tried, with the path.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// The system is not one whose kernels this crate can fetch.
    #[error(
        "{reason}: kernels are fetched with Debian's apt; on another system give a kernel image with --kernel PATH"
    )]
    NotDebian {
        /// What was looked for and not found.
        reason: String,
    },
    /// apt could not reach a mirror and nothing usable is cached.
    #[error("cannot fetch {what}: {detail}\nno network, and it is not in the cache {cache}; run this once with a network, then it works without", cache = cache.display())]
    Offline {
        /// What was to be fetched.
        what: String,
        /// apt's own words.
        detail: String,
        /// Where it would have been cached.
        cache: PathBuf,
    },
    /// No suite has a package of this name.
    #[error("no package {name:?} in the suites {suites}; `tollgate vm kernels --update` reads the package lists anew")]
    NoPackage {
        /// The package name.
        name: String,
        /// The suites that were searched.
        suites: String,
    },
    /// A tool of the packaging system failed.
    #[error("{program} failed: {detail}")]
    Apt {
        /// The program.
        program: String,
        /// The last lines of its standard error.
        detail: String,
    },
    /// A program of the system did not end in time.
    #[error("{program} did not end within {seconds} s and was stopped; try again, or run it by hand to see why")]
    TooLong {
        /// The program.
        program: String,
        /// The limit.
        seconds: u64,
    },
    /// The user stopped it.
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

/// Adds what was tried to an I/O error.
pub trait Context<T> {
    /// `what` is a phrase such as `write /tmp/x`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where there was an error.
    fn context(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|e| Error::Io { what: what.into(), cause: e.into() })
    }
}
