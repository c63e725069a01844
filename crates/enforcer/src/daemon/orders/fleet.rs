//! What a fleet's agent requests.

use std::os::fd::OwnedFd;

use tollgate_abi::enforcer::SECINITSID_SECURITY;
use tollgate_client::protocol::{self, Refusal, Reply};

use super::{Order, json, regular};

impl Order<'_> {
    /// An agent may offer what its fleet has signed. The policy decides besides, as for `tollgate reload`.
    pub(super) fn fleet(&mut self, asked: protocol::Fleet, with: Vec<OwnedFd>) -> Reply {
        let fleet = self.fleet.as_ref().map_err(Clone::clone)?;
        if !self.peer.is_root() && !fleet.is_agent(self.peer.uid) {
            return Err(Refusal::new(libc::EPERM, "only root and the fleet's agent may do this"));
        }
        let permission = if asked == protocol::Fleet::Report { "read_policy" } else { "load_policy" };
        self.may(SECINITSID_SECURITY, "security", permission)?;
        let mut files = with.into_iter().map(regular);
        let fleet = self.fleet.as_mut().map_err(|refusal| refusal.clone())?;
        let mut first = || files.next().unwrap_or_else(|| Err(Refusal::new(libc::EBADF, "no descriptor")));
        let said = match asked {
            protocol::Fleet::Report => json(&fleet.report(self.machine)?)?,
            protocol::Fleet::Looked(looked) => {
                let process = self.peer.kept().map_err(|cause| Refusal::new(libc::EIO, cause.to_string()))?;
                fleet.looked(looked, process);
                return Ok(Vec::new());
            }
            protocol::Fleet::Root => fleet.follow(self.machine, first()?)?.to_string(),
            protocol::Fleet::Offer(names) => {
                let manifest = first()?;
                let files = files.collect::<Result<Vec<_>, _>>()?;
                fleet.take(self.machine, manifest, names.into_iter().zip(files).collect())?
            }
        };
        Ok(vec![said])
    }
}
