//! A new daemon takes over enforcement that an earlier one left, whenever that one was killed.

use std::{fs, sync::Arc};

use libbpf_rs::MapHandle;
use tollgate_abi::enforcer::{SECINITSID_UNLABELED, TG_BEFORE, TG_FIRST_SID, TG_SID_MACHINE};
use tollgate_policy::built::Built;
use tracing::warn;

use super::{Enforcer, EnforcerError, Options, open};
use crate::{contexts::Contexts, datapath::Networks, generation::Generation, missing, programs};

impl Enforcer {
    /// Takes over enforcement from an earlier daemon, and finishes what that one was doing when it was killed. A limit
    /// and a mode in the options come into force. Other unconfined domains and labelled networks do so by
    /// [`Enforcer::reload`].
    pub fn adopt(options: Options) -> Result<Self, EnforcerError> {
        Self::adopt_with(options, None)
    }

    /// Likewise. Files in the directory are trusted only where they agree with the kernel. If the policy file does not,
    /// `offered` is used if it is the policy in force.
    pub fn adopt_with(mut options: Options, offered: Option<&Built>) -> Result<Self, EnforcerError> {
        if !programs::pinned(&options.pins) {
            return Err(EnforcerError::NotStarted);
        }
        programs::of_this_build(&options.pins)?;
        let networks = Networks::read(&options.network)?;
        let (maps, state) = open(&options.pins)?;
        let chosen = state.descriptors();
        if let Some(wanted) = options.descriptors.filter(|wanted| *wanted != chosen) {
            return Err(EnforcerError::Descriptors { wanted, chosen });
        }
        let map = programs::in_force(&maps.generations)?;
        let built = policy_in_force(&options, &map, offered)?;
        let mut generation = Generation::adopted(map, built)?;
        let saved = Contexts::from_lines(&fs::read_to_string(options.folder.contexts()).unwrap_or_default());
        let (saved, lies) = believed(saved, &mut generation);
        let path = options.folder.contexts();
        for lie in &lies {
            warn!(path = %path.display(), "{}: not used: {lie}", path.display());
        }
        let machine = generation.get(TG_SID_MACHINE).map(|context| generation.text(&context)).unwrap_or_default();
        let (policy, unconfined) = (Arc::clone(&generation.policy), generation.unconfined());
        let options_differ = options.keep(&policy, &machine, &unconfined);
        let missing = missing::here(&policy, generation.tables(), &unconfined, networks.are_labelled())?;
        if let Some(limit) = options.audit_limit {
            state.set_audit_limit(limit);
        }
        if options.permissive {
            state.set_enforcing(false);
        }
        let mut enforcer = Self::of(options, maps, state, generation, saved.renewed(&policy, &machine), networks)?;
        (enforcer.missing, enforcer.options_differ) = (missing, options_differ);
        enforcer.finish()?;
        enforcer.options_differ |= enforcer.networks_differ();
        if !lies.is_empty() {
            enforcer.save_contexts()?;
        }
        Ok(enforcer)
    }

    /// Does the rest of a start or of a reload. If none was under way, nothing changes.
    fn finish(&mut self) -> Result<(), EnforcerError> {
        self.state.recover();
        self.learn();
        if let Some(previous) = self.previous() {
            self.take_over_contexts(&previous)?;
        }
        self.put_sids()?;
        self.look_at_units();
        self.adopt_shadow()?;
        let needed = self.needed()?;
        self.attach(&needed)?;
        self.settle(needed)?;
        if let Err(cause) = self.label_devices(&Arc::clone(&self.networks)) {
            warn!(%cause, "packets are not labelled: {cause}");
        }
        self.protect()?;
        self.take_over_labels()?;
        if !self.state.labelling_complete() {
            return self.complete();
        }
        self.compare_policy();
        self.watch_programs();
        self.write_labels().map(drop)
    }

    /// The generation before, if it was in force when its daemon was killed.
    fn previous(&self) -> Option<Generation> {
        let map = programs::generation(&self.maps.generations, TG_BEFORE).ok()?;
        let number = Generation::number(&map).ok().filter(|number| *number != self.generation.number)?;
        let built = Built::open(&self.options.folder.policy(number)).ok()?;
        Generation::is_of(&map, &built).ok().filter(|is| *is)?;
        Generation::adopted(map, built).ok()
    }
}

/// The policy of which the generation in force was made.
fn policy_in_force(options: &Options, map: &MapHandle, offered: Option<&Built>) -> Result<Built, EnforcerError> {
    let path = options.folder.policy(Generation::number(map)?);
    let cause = match Built::open(&path) {
        Ok(built) if Generation::is_of(map, &built)? => return Ok(built),
        Ok(_) => "it was changed or replaced".to_owned(),
        Err(cause) => cause.to_string(),
    };
    let Some(offered) = offered else { return Err(EnforcerError::NotInForce { path, cause }) };
    if !Generation::is_of(map, offered)? {
        return Err(EnforcerError::NotInForce { path, cause });
    }
    warn!(%cause, "{}: not used: {cause}; the named policy is the one in force", path.display());
    let bytes = offered.to_bytes();
    options.folder.replace(&path, &bytes)?;
    Ok(Built::from_bytes(&bytes)?)
}

/// The contexts in the directory that agree with the kernel, and those that do not; for the latter, the kernel counts.
/// A context that this policy does not permit is known to the kernel only as unlabelled, so the directory says what it
/// is.
fn believed(saved: Contexts, generation: &mut Generation) -> (Contexts, Vec<String>) {
    let unlabelled = generation.get(SECINITSID_UNLABELED).map(|context| generation.text(&context));
    let (mut contexts, mut lies) = (Contexts::default(), Vec::new());
    for (sid, text) in saved.iter().filter(|(sid, _)| *sid >= TG_FIRST_SID) {
        // A SID in neither generation was given under the one before. Its context is read from the kernel later.
        let Some(context) = generation.get(sid) else { continue };
        let known = generation.text(&context);
        let is_kept = Some(&known) == unlabelled.as_ref() && generation.context(text).is_err();
        if known != text && !is_kept {
            lies.push(format!("SID {sid} is {known}, not {text}"));
            contexts.insert(sid, known);
        } else {
            contexts.insert(sid, text.to_owned());
        }
    }
    (contexts, lies)
}
