//! Puts another policy in force.

use std::{fs, sync::Arc};

use tollgate_policy::built::Built;

use super::{Enforcer, EnforcerError, attached};
use crate::{
    contexts::{Contexts, Sid},
    datapath::Networks,
    generation::Generation,
    missing,
    needs::Setting,
    programs::{Place, Way},
};

/// The result of a reload.
#[derive(Debug)]
pub struct Reloaded {
    /// Number of the new generation.
    pub number: u32,
    /// Contexts in use that the new policy does not permit. Objects that have them are unlabelled from now on.
    pub invalid: Vec<(Sid, String)>,
}

/// Puts a generation in force, and what belongs to it by the same system call.
pub type Put<'p> = &'p dyn Fn(Way, Place<'_>) -> libbpf_rs::Result<()>;

/// A policy, with everything that changes with it.
struct Policy {
    generation: Generation,
    contexts: Contexts,
    networks: Arc<Networks>,
    missing: Vec<String>,
}

impl Enforcer {
    /// Puts another policy in force, and reads again which networks are labelled. `verify` is called once it is in force;
    /// if it fails, the policy before is put back. What this kernel cannot enforce of the new policy must be `accepted`, or
    /// be missing already.
    pub fn reload(
        &mut self,
        built: Built,
        accepted: bool,
        verify: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Reloaded, EnforcerError> {
        self.reload_with(built, accepted, &|_, place| place.put(), verify)
    }

    /// Likewise, with something else that is switched with it.
    pub fn reload_with(
        &mut self,
        built: Built,
        accepted: bool,
        put: Put<'_>,
        verify: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Reloaded, EnforcerError> {
        self.learn();
        let networks = Arc::new(Networks::read(&self.options.network)?);
        let number = self.generation.number + 1;
        let machine = self.options.machine(&built.policy)?;
        let contexts = self.contexts.renewed(&built.policy, &machine);
        let unconfined = self.options.unconfined(&built.policy, &contexts);
        let file = self.options.folder.policy(number);
        self.options.folder.replace(&file, &built.to_bytes())?;
        let reloaded =
            Generation::prepare(number, built, &unconfined, &self.maps.template).map_err(EnforcerError::from);
        let reloaded = reloaded.and_then(|mut generation| {
            generation.context(&machine)?;
            let missing = missing::here(&generation.policy, generation.tables(), &unconfined, networks.are_labelled())?;
            if !accepted {
                missing::refuse(&missing, &self.missing)?;
            }
            self.replace(Policy { generation, contexts, networks, missing }, &unconfined, put, verify)
        });
        reloaded.inspect_err(|_| {
            // Unless it is in force all the same, and a later step failed.
            if self.generation.number != number {
                let _ = fs::remove_file(&file);
            }
        })
    }

    fn replace(
        &mut self,
        mut next: Policy,
        unconfined: &[String],
        put: Put<'_>,
        verify: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Reloaded, EnforcerError> {
        let number = next.generation.number;
        let invalid = next.generation.adopt(&next.contexts);
        next.generation.translate(&self.generation)?;
        let setting = Setting { labelled: next.networks.are_labelled(), ..self.setting() };
        let mut needed =
            attached::needed(&self.options, setting, &next.generation.policy, next.generation.tables(), unconfined)?;
        needed.extend(self.needed_by_shadow()?);
        // Attaching more hooks than either policy needs does no harm during the switch.
        let before = self.hooks()?;
        self.revalidate()?;
        self.attach(&needed)?;
        if next.networks.are_labelled() {
            self.label_devices(&next.networks)?;
        }
        let previous = self.put_in_force(next, |place| put(Way::Forth, place))?;
        let taken_over = self.take_over_contexts(&previous.generation).map_err(|cause| cause.to_string());
        match taken_over.and_then(|()| verify(self)) {
            Ok(()) => {
                self.options_differ = false;
                // The new policy may have contexts that the one before did not.
                self.look_at_units();
                self.policy_is_meant();
                self.watch_programs();
                let settled = self.settle(needed).and_then(|()| self.label_devices(&Arc::clone(&self.networks)));
                settled.map_err(|cause| EnforcerError::Unsettled { cause: Box::new(cause) })?;
                Ok(Reloaded { number, invalid })
            }
            Err(reason) => {
                match self.put_back(previous, |place| put(Way::Back, place)).and_then(|()| self.settle_back(before)) {
                    Ok(()) => Err(EnforcerError::RolledBack { reason }),
                    Err(cause) => Err(EnforcerError::NotPutBack { reason, cause: Box::new(cause) }),
                }
            }
        }
    }

    /// Switches to another policy, and returns the one before. The kernel may have given SIDs to contexts of that one
    /// meanwhile ([`Enforcer::take_over_contexts`]).
    fn put_in_force(
        &mut self,
        next: Policy,
        put: impl FnOnce(Place<'_>) -> libbpf_rs::Result<()>,
    ) -> Result<Policy, EnforcerError> {
        self.make_live(&next.generation);
        let previous = self.exchange(next);
        self.file_contexts.take();
        let switched = self.put_sids().and_then(|()| self.label_network()).and_then(|()| self.label_packets());
        let switched = switched.and_then(|()| {
            let switch = || self.generation.put_in_force(&self.maps.generations, Some(&previous.generation), put);
            self.state.switch(switch).map_err(EnforcerError::from)
        });
        if let Err(error) = switched {
            self.exchange(previous);
            self.forget_other_sids();
            self.put_texts();
            return Err(error);
        }
        Ok(previous)
    }

    fn exchange(&mut self, next: Policy) -> Policy {
        Policy {
            generation: std::mem::replace(&mut self.generation, next.generation),
            contexts: std::mem::replace(&mut self.contexts, next.contexts),
            networks: std::mem::replace(&mut self.networks, next.networks),
            missing: std::mem::replace(&mut self.missing, next.missing),
        }
    }

    /// Puts back the policy that was in force before.
    fn put_back(
        &mut self,
        mut previous: Policy,
        put: impl FnOnce(Place<'_>) -> libbpf_rs::Result<()>,
    ) -> Result<(), EnforcerError> {
        // If this fails, contexts that came up meanwhile are denied everything for a moment. Go back all the same.
        let _ = previous.generation.translate(&self.generation);
        let refused = self.put_in_force(previous, put)?;
        self.take_over_contexts(&refused.generation)?;
        self.look_at_units();
        self.forget_other_sids();
        self.options.folder.keep_only(self.generation.number);
        self.save_contexts()
    }

    /// Restores the hooks. What was opened while the refused policy was in force may be held.
    fn settle_back(&mut self, mut before: Vec<String>) -> Result<(), EnforcerError> {
        before.extend(self.look_at_held()?);
        self.label_devices(&Arc::clone(&self.networks))?;
        self.detach_all_but(&before)
    }

    /// Cached answers for many subjects were computed without the domains that were unconfined until now. These are
    /// subjects from here on.
    fn make_live(&self, next: &Generation) {
        let confined = |sid: &Sid| self.generation.is_unconfined(*sid) && !next.is_unconfined(*sid);
        for sid in self.contexts.iter().map(|(sid, _)| sid).filter(confined) {
            self.state.make_live(sid);
        }
    }

    /// Puts in place what belongs to a generation besides its decisions, and removes what others left.
    pub(super) fn settle(&mut self, mut needed: Vec<String>) -> Result<(), EnforcerError> {
        self.publish()?;
        needed.extend(self.look_at_held()?);
        self.detach_all_but(&needed)?;
        self.label_filesystems()?;
        self.forget_other_sids();
        self.options.folder.keep_only(self.generation.number);
        self.save_contexts()
    }
}
