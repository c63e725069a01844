//! What is put in force, with a policy that a client gives or that the daemon starts with, and why something is not done.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
    path::Path,
};

use tollgate_client::{
    protocol::Refusal,
    sanity::{self, Question},
};
use tollgate_policy::built::Built;
use tracing::warn;

use super::Enforced;
use crate::{
    daemon::{
        machine::{Beside, Database},
        object::path_of,
    },
    datapath::Source,
    enforcer::{Enforcer, EnforcerError},
    guard,
    programs::{Place, Way},
};

/// The maximum size of a built policy, in bytes.
const MAX_POLICY_SIZE: u64 = 1 << 30;

/// Reads the policy with which the daemon would start now.
pub type Reread = Box<dyn FnMut() -> Result<First, String>>;

/// The policy with which a daemon starts.
pub struct First {
    /// The policy.
    pub built: Built,
    /// The user's name for it.
    pub name: String,
    /// Where labelled networks are configured.
    pub network: Source,
}

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

impl Enforced {
    /// Puts a policy in force, even if this kernel cannot enforce all of it when that is accepted, and the guard's database
    /// with it by one system call. If a sanity question is answered wrongly, the policy and the database before are put back.
    pub fn put_in_force(
        &mut self,
        built: Built,
        guard: Database<'_>,
        accepted: bool,
        questions: &[Question],
    ) -> Result<u32, Refusal> {
        let verify = |enforcer: &mut Enforcer| {
            let ask = |question: &Question| {
                let Question { source, target, class, .. } = question;
                let failed = |cause| Refusal::new(libc::EINVAL, format!("a sanity question fails: {cause}"));
                enforcer.access(source, target, class).map_err(failed)
            };
            sanity::hold(questions, ask).map_err(|refusal| refusal.text)
        };
        let prepared = self.prepare_guard(guard)?;
        let log = self.guard.as_ref();
        let put = |way: Way, place: Place<'_>| match (log, &prepared) {
            (Some(log), Some(prepared)) => {
                log.switch(prepared, way, place).map_err(|cause| io::Error::other(cause.to_string()).into())
            }
            _ => place.put(),
        };
        let enforcer = self.enforcer.as_mut().ok_or_else(stopped)?;
        let reloaded = enforcer.reload_with(built, accepted, &put, verify).map_err(|cause| refused(&cause))?;
        if let (Some(log), Some(prepared)) = (&mut self.guard, prepared) {
            log.has_put(prepared);
        }
        for (_, context) in &reloaded.invalid {
            warn!("{context} is not a context of the new policy: objects that have it are unlabelled");
        }
        Ok(reloaded.number)
    }

    /// Likewise, with other labelled networks, or with none of all.
    pub(super) fn put_with(
        &mut self,
        built: Built,
        network: Source,
        guard: Database<'_>,
        accepted: bool,
        questions: &[Question],
    ) -> Result<u32, Refusal> {
        let before = self.on_mut()?.set_networks_source(network);
        let put = self.put_in_force(built, guard, accepted, questions);
        if put.is_err() {
            self.on_mut()?.set_networks_source(before);
        }
        put
    }

    /// Writes a database into the kernel's memory; `None`: the present one stays.
    fn prepare_guard(&self, database: Database<'_>) -> Result<Option<guard::Prepared>, Refusal> {
        let file = match database {
            Database::Present => return Ok(None),
            Database::Own => None,
            Database::Of(path) => Some(path),
        };
        match (&self.guard, file) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Refusal::new(
                libc::ENODEV,
                "the guard does not run here, and the generation has its database: start the daemon with \
                 `tollgate enforce --guard POLICY`",
            )),
            (Some(log), file) => {
                log.prepare(file).map(Some).map_err(|cause| Refusal::new(libc::EIO, cause.to_string()))
            }
        }
    }

    /// What is in force beside the policy, as read back from the kernel's memory.
    pub(super) fn in_force_beside(&mut self) -> Beside {
        let guard = self.guard.as_ref().and_then(guard::Log::source).map(Path::to_owned);
        let network = self.enforcer.as_mut().and_then(|enforcer| {
            let is_another = *enforcer.networks_source() != self.network && !enforcer.networks_differ();
            is_another.then(|| enforcer.networks_source().path().to_owned())
        });
        Beside { guard, network }
    }
}
