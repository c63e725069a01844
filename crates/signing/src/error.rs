//! Why something cannot be signed or verified.

use std::{io, path::PathBuf};

/// Why a key or a signature cannot be used. No text has a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// A file could not be read or written.
    #[error("cannot {what} {}: {cause}{}", .path.display(), .remedy)]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
        /// The remedy, after a semicolon; empty: the cause says it.
        remedy: String,
    },
    /// Others may read a secret key.
    #[error(
        "{}: others than its owner may know this key (owner {owner}, mode {mode:03o}): run `chmod 600 {}`, and make a new \
         key with `tollgate key new` if somebody has read this one", .path.display(), .path.display()
    )]
    Exposed {
        /// Path of the file.
        path: PathBuf,
        /// The uid of its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// Others than root may change which keys are trusted.
    #[error(
        "{}: others than root may change which keys are trusted (owner {owner}, mode {mode:03o}): look whether its keys are \
         right, then run `chown root:root {}` and `chmod 644 {}`", .path.display(), .path.display(), .path.display()
    )]
    Writable {
        /// Path of the file.
        path: PathBuf,
        /// The uid of its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// A file has another content than it should.
    #[error("{}:{line}: {message}", .path.display())]
    Wrong {
        /// Path of the file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and the remedy.
        message: String,
    },
    /// A name that a key cannot have.
    #[error("`{0}` cannot be the name of a key: use 1 to 64 letters, digits, `-`, `_`, `.` and `@`")]
    Name(String),
    /// There is a key already.
    #[error("{} exists: a key is never overwritten; name another file, or move it away", .0.display())]
    Exists(PathBuf),
}
