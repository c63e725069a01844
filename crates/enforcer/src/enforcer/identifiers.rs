//! Contexts in sealed labels: which number stands for which SID, and what time it is.

use std::time::{SystemTime, UNIX_EPOCH};

use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use nix::time::{ClockId, clock_gettime};
use tollgate_abi::{bytes_of, enforcer::tg_identifier_key};
use tollgate_netlabel::sealed::Key;
use tracing::warn;

use super::{Enforcer, EnforcerError, map_error};
use crate::contexts::Sid;

impl Enforcer {
    /// Lets sealed labels name the context of a SID, by each key.
    pub(super) fn identify(&self, sid: Sid, context: &str) -> Result<(), EnforcerError> {
        let mut own = None;
        for key in self.networks.keys.iter() {
            let key = Key { number: key.number, secret: key.secret };
            let identifier = self.put_identifier(sid, context, key.identifier(context))?;
            // Labels are sealed by the first key.
            own.get_or_insert(identifier);
        }
        self.generation.set_identifier(sid, own.unwrap_or_default());
        Ok(())
    }

    /// Enters an identifier. Returns it, or 0 if another context has it.
    fn put_identifier(&self, sid: Sid, context: &str, identifier: u32) -> Result<u32, EnforcerError> {
        let key = tg_identifier_key { generation: self.generation.number, identifier };
        let taken = match self.maps.identified.update(bytes_of(&key), &sid.to_ne_bytes(), MapFlags::NO_EXIST) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => {
                return Err(map_error("give a context an identifier")(cause));
            }
            new => new.is_err() && !self.is_identified_as(&key, context)?,
        };
        if taken {
            warn!(context, "{context} has no sealed label: another context has the same identifier");
        }
        Ok(if taken { 0 } else { identifier })
    }

    /// Whether an identifier stands for this context already.
    fn is_identified_as(&self, key: &tg_identifier_key, context: &str) -> Result<bool, EnforcerError> {
        let found = self.maps.identified.lookup(bytes_of(key), MapFlags::ANY);
        let found = found.map_err(map_error("find an identifier"))?.unwrap_or_default();
        let sid = found.try_into().map_or(0, Sid::from_ne_bytes);
        Ok(self.contexts.has(sid) && self.contexts.text(sid) == context)
    }

    /// Sets the clock by which programs judge the age of sealed labels. It goes on by itself, and somebody may set the
    /// machine's.
    pub fn set_clock(&self) {
        let day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if let Ok(boot) = clock_gettime(ClockId::CLOCK_BOOTTIME) {
            let boot = std::time::Duration::from(boot);
            self.state.set_clock(u64::try_from(day.saturating_sub(boot).as_nanos()).unwrap_or_default());
        }
    }
}
