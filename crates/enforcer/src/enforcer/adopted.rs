//! A new daemon takes over what an earlier one has left, whenever that was killed.

use std::{fs, sync::Arc};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use tollgate_abi::enforcer::{TG_BEFORE, TG_IN_FORCE, TG_SID_MACHINE};
use tollgate_policy::built::Built;

use super::{Enforcer, EnforcerError, Options, map_error, open};
use crate::{contexts::Contexts, enforcer::Maps, generation::Generation, missing, programs};

impl Enforcer {
    /// Takes over what an earlier daemon has started, and finishes what it was about when it was killed. A limit and a mode
    /// that are named come into force; other unconfined domains do by [`Enforcer::reload`].
    pub fn adopt(mut options: Options) -> Result<Self, EnforcerError> {
        if !programs::pinned(&options.pins) {
            return Err(EnforcerError::NotStarted);
        }
        programs::of_this_build(&options.pins)?;
        let (maps, state) = open(&options.pins)?;
        let chosen = state.descriptors();
        if let Some(wanted) = options.descriptors.filter(|wanted| *wanted != chosen) {
            return Err(EnforcerError::Descriptors { wanted, chosen });
        }
        let map = generation(&maps, TG_IN_FORCE)?;
        let built = Built::open(&options.folder.policy(Generation::number(&map)?))?;
        let generation = Generation::adopted(map, built)?;
        let saved = Contexts::from_lines(&fs::read_to_string(options.folder.contexts()).unwrap_or_default());
        let machine = generation.get(TG_SID_MACHINE).map(|context| generation.text(&context)).unwrap_or_default();
        let (policy, unconfined) = (Arc::clone(&generation.policy), generation.unconfined());
        let told_otherwise = options.keep(&policy, &machine, &unconfined);
        let missing = missing::here(&policy, generation.tables(), &unconfined)?;
        if let Some(limit) = options.audit_limit {
            state.set_audit_limit(limit);
        }
        if options.permissive {
            state.set_enforcing(false);
        }
        let mut enforcer = Self::of(options, maps, state, generation, saved.renewed(&policy, &machine))?;
        (enforcer.missing, enforcer.told_otherwise) = (missing, told_otherwise);
        enforcer.finish()?;
        Ok(enforcer)
    }

    /// Does the rest of a start or a reload. Where nothing was begun, nothing changes.
    fn finish(&mut self) -> Result<(), EnforcerError> {
        self.state.recover();
        self.learn();
        if let Some(previous) = self.previous() {
            self.take_over_contexts(&previous)?;
        }
        self.put_sids()?;
        self.adopt_shadow()?;
        let needed = self.needed()?;
        self.attach(&needed)?;
        self.settle(needed)?;
        self.protect()?;
        self.take_over_labels()?;
        if self.state.labelling_complete() { self.write_labels().map(drop) } else { self.complete() }
    }

    /// The generation before, if it was in force when its daemon was killed.
    fn previous(&self) -> Option<Generation> {
        let map = generation(&self.maps, TG_BEFORE).ok()?;
        let number = Generation::number(&map).ok().filter(|number| *number != self.generation.number)?;
        Generation::adopted(map, Built::open(&self.options.folder.policy(number)).ok()?).ok()
    }
}

/// The map of the generation in force, or of the one before.
pub(super) fn generation(maps: &Maps, index: u32) -> Result<MapHandle, EnforcerError> {
    let found = maps.generations.lookup(&index.to_ne_bytes(), MapFlags::ANY);
    let found = found.map_err(map_error("find a generation"))?.unwrap_or_default();
    let id = u32::from_ne_bytes(found.try_into().unwrap_or_default());
    MapHandle::from_map_id(id).map_err(map_error("open a generation"))
}
