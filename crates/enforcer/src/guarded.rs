//! Domains that the policy marks as guarded, for the guard: it checks their processes whatever privilege they have.

use std::{
    num::NonZeroU32,
    os::fd::{AsFd, AsRawFd},
};

use libbpf_rs::{MapCore, MapFlags};
use tollgate_abi::enforcer::tg_generation;
use tracing::warn;

use crate::{
    generation::Generation,
    lineage::{self, Threads},
    mapping::Mapping,
    programs::{self, Pins, ProgramsError, refused},
};

/// The enforcer's map that has the guard's one in its only place.
const PLACE: &str = "to_guard";
/// The guard's map.
const MAP: &str = "guard_domains";

/// Lets the object managers tell the guard who enters these domains, if both are there.
pub(crate) fn connect(enforcer: &Pins, guard: &Pins) -> Result<(), ProgramsError> {
    if !enforcer.map("generations").exists() || !guard.map(MAP).exists() {
        return Ok(());
    }
    if !enforcer.map(PLACE).exists() {
        warn!(
            "the policy is enforced by an earlier version, which tells the guard nothing of domains: enforce it anew"
        );
        return Ok(());
    }
    let (place, map) = (programs::map(enforcer, PLACE)?, programs::map(guard, MAP)?);
    let descriptor = map.as_fd().as_raw_fd().to_ne_bytes();
    place.update(&0_u32.to_ne_bytes(), &descriptor, MapFlags::ANY).map_err(refused("tell the guard of domains"))
}

/// The object managers tell nobody any more.
pub(crate) fn disconnect(enforcer: &Pins) -> Result<(), ProgramsError> {
    if !enforcer.map(PLACE).exists() {
        return Ok(());
    }
    match programs::map(enforcer, PLACE)?.delete(&0_u32.to_ne_bytes()) {
        Err(cause) if cause.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(refused("tell the guard nothing of domains any more")(cause))
        }
        _ => Ok(()),
    }
}

/// Whether the guard would miss who enters these domains, though a policy is enforced.
pub(crate) fn is_deaf(enforcer: &Pins, guard: &Pins) -> bool {
    let heard = || {
        let place = programs::map(enforcer, PLACE)?;
        let found = place.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(refused("find the guard's map"))?;
        let own = programs::map(guard, MAP)?.info().map_err(refused("find the identifier of a map"))?.info.id;
        Ok::<_, ProgramsError>(found.as_deref() == Some(&own.to_ne_bytes()[..]))
    };
    programs::pinned(enforcer) && !heard().unwrap_or(false)
}

/// The policy in force, to ask who is in such a domain already.
pub(crate) struct Domains {
    pins: Pins,
    memory: Mapping<tg_generation>,
}

impl Domains {
    /// `None`: no policy is enforced, or it is by another version, of whose generations this one knows nothing.
    pub(crate) fn open(pins: Pins) -> Result<Option<Self>, ProgramsError> {
        if !programs::pinned(&pins) || programs::of_this_build(&pins).is_err() {
            return Ok(None);
        }
        let map = programs::in_force(&programs::map(&pins, "generations")?)?;
        let path = pins.map("generations");
        let memory = Mapping::new(&map).map_err(|cause| ProgramsError::Pins { path, cause })?;
        Ok(Some(Self { pins, memory }))
    }

    /// Whether a process is. One that has ended is not.
    pub(crate) fn have(&self, process: u32) -> bool {
        let threads = NonZeroU32::new(process).map(|process| lineage::threads(&self.pins, Threads::Of(process)));
        let threads = threads.transpose().unwrap_or_else(|cause| {
            warn!(process, %cause, "whether the policy marks the domain of process {process} as guarded is not known: {cause}");
            None
        });
        let leader = threads.unwrap_or_default().into_iter().find(|thread| thread.leader != 0);
        leader.is_some_and(|leader| Generation::is_guarded_in(&self.memory, leader.sid))
    }
}
