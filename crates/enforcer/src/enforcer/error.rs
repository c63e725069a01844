//! Why enforcement could not be started, adopted or changed.

use std::{io, path::PathBuf};

use tollgate_client::descriptors::Descriptors;
use tollgate_policy::{built::BuiltError, context::ContextError};

use crate::{
    contexts::Full,
    generation::GenerationError,
    hooks::BadLine,
    missing::{Missing, MissingError},
    programs::ProgramsError,
};

/// Why enforcement could not be started, adopted or changed. Nothing was changed then, unless the text says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnforcerError {
    /// The programs are not in the kernel as they should be.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The table of hooks that this program carries is not one.
    #[error(transparent)]
    Hooks(#[from] BadLine),
    /// The policy cannot be put in force.
    #[error(transparent)]
    Generation(#[from] GenerationError),
    /// A context is none of the policy's.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// This kernel cannot enforce all of the policy.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// No SID is left.
    #[error(transparent)]
    Full(#[from] Full),
    /// The policy in the folder is not as it was written.
    #[error(transparent)]
    Policy(#[from] BuiltError),
    /// The policy in the folder is not the one that the kernel has.
    #[error(
        "{} is not the policy that is in force ({cause}): start the daemon with that policy, or end enforcement with \
         `tollgate stop --force` and start it again", .path.display()
    )]
    NotInForce {
        /// The file.
        path: PathBuf,
        /// What it is.
        cause: String,
    },
    /// A map could not be read or written.
    #[error("cannot {what}: {cause}")]
    Map {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        cause: libbpf_rs::Error,
    },
    /// A file could not be read or written.
    #[error("cannot {what} {}: {cause}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// A file could not be labelled.
    #[error("cannot label: {cause}")]
    Labels {
        /// Why it failed.
        cause: io::Error,
    },
    /// The policy has neither an unconfined domain nor an initial SID for the kernel.
    #[error(
        "the policy says neither what unconfined_t nor what the kernel's context is: name the context of the machine's processes with --machine CONTEXT"
    )]
    NoMachine,
    /// The policy was in force for a moment, and the one before is again.
    #[error("the policy was not kept: {reason}; the one before is in force")]
    RolledBack {
        /// What did not hold.
        reason: String,
    },
    /// The policy was not to be kept, and is in force all the same.
    #[error("the policy is in force, though {reason}: the one before cannot be put back: {cause}")]
    NotPutBack {
        /// What did not hold.
        reason: String,
        /// Why the one before is not back.
        cause: Box<EnforcerError>,
    },
    /// The policy is in force, and something that belongs to it is not.
    #[error("the policy is in force, but not all that it brings: {cause}")]
    Unsettled {
        /// What failed.
        cause: Box<EnforcerError>,
    },
    /// Descriptors are asked about otherwise.
    #[error(
        "cannot take enforcement over with --descriptors {wanted}: it was started with --descriptors {chosen}, and processes have entered domains by that; keep it, or begin again with `tollgate stop`"
    )]
    Descriptors {
        /// What was asked for.
        wanted: Descriptors,
        /// What holds.
        chosen: Descriptors,
    },
    /// Enforcement is on.
    #[error(
        "enforcement is on already: `tollgate reload POLICY` puts another policy in force, `tollgate stop` ends it"
    )]
    Started,
    /// Enforcement is off.
    #[error("nothing is enforced: start it with `tollgate enforce POLICY`")]
    NotStarted,
}

impl From<MissingError> for EnforcerError {
    fn from(error: MissingError) -> Self {
        match error {
            MissingError::Programs(cause) => cause.into(),
            MissingError::Hooks(cause) => cause.into(),
        }
    }
}

pub(super) fn map_error(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> EnforcerError {
    move |cause| EnforcerError::Map { what, cause }
}
