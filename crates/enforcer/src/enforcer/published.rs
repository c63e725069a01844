//! What programs with a cache of decisions are told.

use tollgate_policy::model::HandleUnknown;

use super::{Enforcer, EnforcerError};
use crate::status_page::Status;

impl Enforcer {
    /// Tells them what is in force now. Until then they decide as before.
    pub(super) fn publish(&self) -> Result<(), EnforcerError> {
        let status = Status {
            enforcing: self.state.enforcing(),
            generation: self.generation.number,
            deny_unknown: self.generation.policy.handle_unknown != HandleUnknown::Allow,
            permissive: self.generation.permissive_types(),
        };
        let path = self.options.folder.status();
        status.publish(&path).map_err(|cause| EnforcerError::Io { what: "write", path, cause })
    }
}
