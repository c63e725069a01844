//! Attributes of the calling thread, which it sets by prctl(2).

use std::{thread, time::Duration};

use nix::errno::Errno;
use tollgate_abi::enforcer::{
    TG_ATTRIBUTE_CURRENT, TG_ATTRIBUTE_EXEC, TG_ATTRIBUTE_FSCREATE, TG_ATTRIBUTE_KEYCREATE, TG_ATTRIBUTE_PERMISSIVE,
    TG_ATTRIBUTE_SOCKCREATE, TG_PRCTL,
};

use super::ClientError;
use crate::protocol::Attribute;

/// How often `prctl` is repeated when it fails with EAGAIN, and the pause between two attempts.
const MAX_ATTEMPTS: u32 = 100;
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Gives the calling thread a SID, or takes it away when `sid` is 0. The hook `task_prctl` decides (`bpf/attribute.h`).
pub(super) fn set(attribute: Attribute, sid: u32) -> Result<(), Errno> {
    let attribute = match attribute {
        Attribute::Current => TG_ATTRIBUTE_CURRENT,
        Attribute::Exec => TG_ATTRIBUTE_EXEC,
        Attribute::FsCreate => TG_ATTRIBUTE_FSCREATE,
        Attribute::KeyCreate => TG_ATTRIBUTE_KEYCREATE,
        Attribute::SockCreate => TG_ATTRIBUTE_SOCKCREATE,
        Attribute::Previous => return Err(Errno::EINVAL),
    };
    // A reader of /proc may hold the address space for a moment, which makes the process look like one of several
    // threads. It may also hold the credentials, which are not the thread's own then.
    for _ in 0..MAX_ATTEMPTS {
        if attribute == TG_ATTRIBUTE_CURRENT {
            renew_credentials()?;
        }
        match order(attribute, sid) {
            Err(Errno::EAGAIN) => thread::sleep(RETRY_INTERVAL),
            other => return other,
        }
    }
    Err(Errno::EPERM)
}

/// Gives the calling thread credentials of its own, with the same content as before. A file remembers the credentials
/// that it was opened with, so these must be new.
fn renew_credentials() -> Result<(), Errno> {
    // SAFETY: these options take integers only.
    let kept = Errno::result(unsafe { libc::prctl(libc::PR_GET_KEEPCAPS, 0u64, 0u64, 0u64, 0u64) })?;
    // SAFETY: as above.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, u64::from(kept != 0), 0u64, 0u64, 0u64) }).map(drop)
}

fn order(attribute: u32, value: u32) -> Result<(), Errno> {
    // SAFETY: an option that no kernel knows takes integers only.
    let done = unsafe { libc::prctl(TG_PRCTL as i32, u64::from(attribute), u64::from(value), 0u64, 0u64) };
    match Errno::result(done) {
        // A hook cannot report success: if it returns 0, the kernel continues and rejects the unknown option.
        Err(Errno::EALREADY) => Ok(()),
        Err(errno) => Err(errno),
        Ok(_) => Err(Errno::EINVAL),
    }
}

/// Makes the calling thread and its children permissive: what is denied to them is granted and audited. Needs unconfined root.
pub fn be_permissive() -> Result<(), ClientError> {
    order(TG_ATTRIBUTE_PERMISSIVE, 1).map_err(ClientError::Kernel)
}

/// Removes an attribute of the calling thread: from now on the rules of the policy decide again.
pub fn clear_context(attribute: Attribute) -> Result<(), ClientError> {
    set(attribute, 0).map_err(ClientError::Kernel)
}
