//! Yama: restricted ptrace.

use super::securityfs::{read, require, write};
use crate::Error;

/// Which processes may trace which: 0 as without Yama, 1 descendants only, 2 with CAP_SYS_PTRACE only, 3 none.
const SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Restricted ptrace; dropping it restores the previous scope.
#[derive(Debug)]
pub(super) struct Restricted {
    before: String,
}

impl Restricted {
    /// Lets processes trace their descendants only.
    pub(super) fn set() -> Result<(String, Restricted), Error> {
        require("yama")?;
        let restricted = Restricted { before: read(SCOPE)? };
        write(SCOPE, b"1")?;
        let scope = read(SCOPE)?;
        if scope == "1" {
            return Ok((format!("yama: ptrace_scope {scope}"), restricted));
        }
        Err(Error::Unavailable(format!("yama: ptrace_scope stays {scope} after 1 was written to it")))
    }
}

impl Drop for Restricted {
    fn drop(&mut self) {
        // A scope of 3 cannot be changed, and was not changed above either.
        let _ = write(SCOPE, self.before.as_bytes());
    }
}
