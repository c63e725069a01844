//! Why enforcement could not be started, adopted or changed.

use std::{io, path::PathBuf};

use tollgate_client::descriptors::Descriptors;
use tollgate_policy::{built::BuiltError, context::ContextError};

use crate::{
    contexts::Full,
    datapath::config::ConfigError,
    datapath::running::DatapathError,
    generation::GenerationError,
    hooks::BadLine,
    missing::{Missing, MissingError},
    programs::ProgramsError,
};

/// Why enforcement could not be started, adopted or changed. Unless the text says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnforcerError {
    /// The programs are not in the kernel as they should be.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The table of hooks in this program cannot be read.
    #[error(transparent)]
    Hooks(#[from] BadLine),
    /// The policy cannot be put in force.
    #[error(transparent)]
    Generation(#[from] GenerationError),
    /// Packets cannot be labelled.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// A context is not valid in the policy.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Labelled networks cannot be put in force.
    #[error(transparent)]
    Networks(#[from] ConfigError),
    /// This kernel cannot enforce all of the policy.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// All SIDs are in use.
    #[error(transparent)]
    Full(#[from] Full),
    /// The policy in the daemon's directory is damaged.
    #[error(transparent)]
    Policy(#[from] BuiltError),
    /// The policy in the daemon's directory is not the one in force.
    #[error(
        "{} is not the policy that is in force ({cause}): start the daemon with that policy, or end enforcement with \
         `tollgate stop --force` and start it again", .path.display()
    )]
    NotInForce {
        /// Path of the policy.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A map could not be read or written.
    #[error("cannot {what}: {cause}")]
    Map {
        /// What was attempted.
        what: &'static str,
        /// What the kernel returned.
        cause: libbpf_rs::Error,
    },
    /// A file could not be read or written.
    #[error("cannot {what} {}: {cause}", .path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// A file could not be labelled.
    #[error("cannot label: {cause}")]
    Labels {
        /// What the system returned.
        cause: io::Error,
    },
    /// The policy has neither a type unconfined_t nor a context for the kernel's initial SID.
    #[error(
        "the policy has neither unconfined_t nor a context of the kernel: name the context of the machine's processes with --machine CONTEXT"
    )]
    NoMachine,
    /// The policy was in force for a moment, and the one before was put back.
    #[error("the policy was not kept: {reason}; the one before is in force")]
    RolledBack {
        /// What went wrong with the policy.
        reason: String,
    },
    /// The policy should have been withdrawn, and is in force all the same.
    #[error("the policy is in force, though {reason}: the one before cannot be put back: {cause}")]
    NotPutBack {
        /// What went wrong with the policy.
        reason: String,
        /// Why the one before could not be put back.
        cause: Box<EnforcerError>,
    },
    /// The policy is in force, but something that belongs to it is not.
    #[error("the policy is in force, but not everything that belongs to it: {cause}")]
    Unsettled {
        /// What failed.
        cause: Box<EnforcerError>,
    },
    /// Running enforcement checks descriptors in another way.
    #[error(
        "cannot take enforcement over with --descriptors {wanted}: it was started with --descriptors {chosen}, and processes have entered domains since; keep that, or end enforcement first with `tollgate stop`"
    )]
    Descriptors {
        /// What the options say.
        wanted: Descriptors,
        /// What is in force.
        chosen: Descriptors,
    },
    /// Enforcement is on already.
    #[error(
        "enforcement is on already: `tollgate reload POLICY` puts another policy in force, `tollgate stop` ends it"
    )]
    Started,
    /// No hook has this name.
    #[error(
        "there is no hook {name:?}{}: `tollgate status --why` lists those with programs",
        if .like.is_empty() { String::new() } else { format!(" (like it: {})", .like.join(", ")) }
    )]
    NoHook {
        /// The name.
        name: String,
        /// Similar names, the most similar first.
        like: Vec<String>,
    },
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
