//! A built policy that a client gives, and why something is not done.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
};

use tollgate_client::protocol::Refusal;
use tollgate_policy::built::Built;

use crate::{daemon::object::path_of, enforcer::EnforcerError};

/// The maximum size of a built policy, in bytes.
const MAX_POLICY_SIZE: u64 = 1 << 30;

/// The user's name for a policy file. A file in memory is one that the client has built from the file of that name.
fn called(name: &str) -> String {
    let in_memory = name.strip_prefix("/memfd:").and_then(|name| name.strip_suffix(" (deleted)"));
    in_memory.unwrap_or(name).to_owned()
}

/// Reads a built policy. Returns it with the name of its file.
pub(super) fn read(policy: File) -> Result<(Built, String), Refusal> {
    let name = path_of(policy.as_fd());
    let mut bytes = Vec::new();
    let unreadable = |cause| Refusal::new(libc::EIO, format!("cannot read the policy: {cause}"));
    policy.take(MAX_POLICY_SIZE).read_to_end(&mut bytes).map_err(unreadable)?;
    let built = Built::from_bytes(&bytes).map_err(|cause| Refusal::new(libc::EINVAL, cause.to_string()))?;
    Ok((built, name.map_or_else(|_| "a file that has no name".to_owned(), |name| called(&name.display().to_string()))))
}

/// Nothing is enforced any more.
pub(super) fn stopped() -> Refusal {
    Refusal::new(libc::ESRCH, "nothing is enforced any more")
}

/// Why the enforcer has not done something.
pub(super) fn refused(cause: &EnforcerError) -> Refusal {
    let errno = match cause {
        EnforcerError::Full(_) => libc::ENOSPC,
        EnforcerError::Missing(_) => libc::EOPNOTSUPP,
        EnforcerError::Labels { cause } if cause.kind() == io::ErrorKind::TimedOut => libc::EBUSY,
        EnforcerError::Labels { cause } if cause.kind() == io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
        EnforcerError::Map { .. } | EnforcerError::Io { .. } | EnforcerError::Programs(_) => libc::EIO,
        _ => libc::EINVAL,
    };
    Refusal::new(errno, cause.to_string())
}
