//! What the daemon reports of enforcement.

use std::{fs, path::Path, time::UNIX_EPOCH};

use tollgate_client::{
    protocol::Refusal,
    status::{self, Hooks, Manager, Status},
};

use super::{Enforced, known, refused, stopped};
use crate::{
    daemon::machine::Machine,
    enforcer::Enforcer,
    guard,
    programs::{self, ProgramsError},
};

/// How many holders of each room the status lists.
const MAX_HOLDERS_SHOWN: usize = 5;

impl Enforced {
    /// What `tollgate status` reports.
    pub(super) fn report(&mut self) -> Result<Status, Refusal> {
        let health = self.audit.health();
        let alarm = self.gaps.alarm(self.enforcer.as_mut().ok_or_else(stopped)?);
        let (findings, confined) = self.on_mut()?.findings().map_err(|cause| refused(&cause))?;
        let enforcer = self.on()?;
        let (generation, state, options) = (enforcer.generation(), enforcer.state(), enforcer.options());
        let live = state.live().into_iter().filter(|sid| *sid != 0);
        Ok(Status {
            mode: self.mode(),
            policy: self.policy.clone(),
            generation: generation.number,
            generation_since: changed(&options.folder.policy(generation.number)),
            since: changed(&options.pins.map("bss")),
            daemon: std::process::id(),
            hooks: hooks(enforcer)?,
            not_enforced: not_enforced(enforcer)?,
            descriptors: state.descriptors(),
            permissive: generation.permissive(),
            permissive_since: enforcer.permissive_since(changed(&options.folder.policy(generation.number))),
            unconfined: generation.unconfined(),
            shadow: enforcer.candidate().cloned(),
            revoked: enforcer.revoked(),
            killed: enforcer.killed(),
            subjects: live.map(|sid| known(enforcer, sid).unwrap_or_else(|| format!("SID {sid}"))).collect(),
            contexts: enforcer.contexts().iter().count() as u64,
            labelling_complete: state.labelling_complete(),
            events: state.events(),
            failures: status::failures(&state.failures(), enforcer.unwritten()),
            shares: state.shares().biggest(MAX_HOLDERS_SHOWN, |sid| {
                enforcer.contexts().has(sid).then(|| enforcer.contexts().text(sid).to_owned())
            }),
            audit: health.kernel,
            audit_errors: health.errors.count,
            alarm,
            gaps: self.gaps.over(),
            gaps_seen: self.gaps.seen(),
            findings,
            confined: confined as u64,
            guard: self.guard.as_ref().map(guard::Log::status),
            // The server adds it.
            fleet: None,
        })
    }
}

/// How often each object manager asked, of those that did.
pub(super) fn managers(enforcer: &Enforcer) -> Vec<Manager> {
    let counts = enforcer.state().statistics();
    let some = counts.iter().enumerate().filter(|(_, counts)| counts.asked > 0);
    let managers = some.map(|(number, counts)| Manager {
        name: status::manager(number),
        asked: counts.asked,
        cached: counts.cached,
        tables: counts.tables,
        denied: counts.denied,
    });
    managers.collect()
}

/// When a file was last changed, in seconds since 1970; 0: not known.
fn changed(path: &Path) -> u64 {
    let time = fs::metadata(path).and_then(|metadata| metadata.modified());
    time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
}

/// The hooks of enforcement: those with a program, and those that need none.
fn hooks(enforcer: &Enforcer) -> Result<Hooks, Refusal> {
    let failed = |cause: ProgramsError| Refusal::new(libc::EIO, cause.to_string());
    let attached = enforcer.hooks().map_err(|cause| refused(&cause))?;
    let here = programs::hooks().map_err(failed)?;
    let not_needed = here.iter().filter(|hook| !attached.contains(hook)).cloned().collect();
    Ok(Hooks { attached, not_needed })
}

/// The words for a program that no cgroup runs.
const PEERS_UNTOLD: &str = "getsockopt(SO_PEERSEC) tells no contexts: mount cgroup v2 on /sys/fs/cgroup, and reload";

/// What this kernel, or this machine, cannot enforce or tell.
fn not_enforced(enforcer: &Enforcer) -> Result<Vec<String>, Refusal> {
    let mut names = enforcer.missing().to_vec();
    let Hooks { not_needed, .. } = hooks(enforcer)?;
    // The daemon attaches that program whatever the policy says.
    names.extend(not_needed.iter().any(|hook| hook == programs::PEERS).then(|| PEERS_UNTOLD.to_owned()));
    Ok(names)
}
