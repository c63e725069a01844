//! Another policy takes the place of the one in force.

use std::{fs, sync::atomic::Ordering};

use libbpf_rs::MapCore;
use tollgate_abi::enforcer::TG_FIRST_SID;
use tollgate_policy::built::Built;

use super::{Enforcer, EnforcerError, attached};
use crate::{
    contexts::{Contexts, Sid},
    generation::Generation,
    missing,
};

/// What came of another policy.
#[derive(Debug)]
pub struct Reloaded {
    /// The number of its generation.
    pub number: u32,
    /// Contexts in use that it does not permit: what has them is unlabelled from now on.
    pub invalid: Vec<(Sid, String)>,
}

/// A policy, with all that changes with it.
struct Policy {
    generation: Generation,
    contexts: Contexts,
    missing: Vec<String>,
}

impl Enforcer {
    /// Puts another policy in force. `verify` is asked once it is; when it says no, the one before is put back. What this
    /// kernel cannot enforce of it must be `accepted`, or be missing already.
    pub fn reload(
        &mut self,
        built: Built,
        accepted: bool,
        verify: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Reloaded, EnforcerError> {
        self.learn();
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
            let missing = missing::here(&generation.policy, generation.tables(), &unconfined)?;
            if !accepted {
                missing::refuse(&missing, &self.missing)?;
            }
            self.replace(Policy { generation, contexts, missing }, &unconfined, verify)
        });
        reloaded.inspect_err(|_| drop(fs::remove_file(&file)))
    }

    fn replace(
        &mut self,
        mut next: Policy,
        unconfined: &[String],
        verify: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Reloaded, EnforcerError> {
        let number = next.generation.number;
        let invalid = next.generation.adopt(&next.contexts);
        next.generation.translate(&self.generation)?;
        let needed = attached::needed(
            &self.options,
            self.state.descriptors(),
            &next.generation.policy,
            next.generation.tables(),
            unconfined,
        )?;
        // More than either policy needs does no harm while one takes the place of the other.
        let before = self.hooks()?;
        self.attach(&needed)?;
        self.state.set_no_lookups(false);
        let previous = self.put_in_force(next)?;
        match verify(self) {
            Ok(()) => {
                self.told_otherwise = false;
                self.settle(&previous.generation, &needed).map(|()| Reloaded { number, invalid })
            }
            Err(reason) => {
                self.put_in_force(previous).map(drop)?;
                self.detach_all_but(&before)?;
                Err(EnforcerError::RolledBack { reason })
            }
        }
    }

    /// Switches to another policy; the one before. Contexts that the kernel gave SIDs meanwhile get their places.
    fn put_in_force(&mut self, next: Policy) -> Result<Policy, EnforcerError> {
        let previous = self.exchange(next);
        self.file_contexts.take();
        let switched = self.put_sids().and_then(|()| {
            let switched = self.generation.put_in_force(&self.maps.generations, Some(&previous.generation));
            switched.map_err(EnforcerError::from)
        });
        if let Err(error) = switched {
            self.exchange(previous);
            return Err(error);
        }
        self.state.forget();
        let last = self.state.last_sid().load(Ordering::SeqCst);
        for sid in (TG_FIRST_SID..=last).filter(|sid| !self.contexts.has(*sid)).collect::<Vec<_>>() {
            if let Some(context) = previous.generation.get(sid) {
                let text = previous.generation.text(&context);
                if let Ok(context) = self.generation.context(&text) {
                    self.generation.set(sid, context);
                    self.put_sid(sid, context)?;
                }
                self.contexts.insert(sid, text);
            }
        }
        Ok(previous)
    }

    fn exchange(&mut self, next: Policy) -> Policy {
        Policy {
            generation: std::mem::replace(&mut self.generation, next.generation),
            contexts: std::mem::replace(&mut self.contexts, next.contexts),
            missing: std::mem::replace(&mut self.missing, next.missing),
        }
    }

    /// What a new generation brings beside its decisions; what the one before left goes.
    fn settle(&mut self, previous: &Generation, needed: &[String]) -> Result<(), EnforcerError> {
        self.detach_all_but(needed)?;
        self.label_filesystems()?;
        let old: Vec<Vec<u8>> =
            self.maps.sids.keys().filter(|key| key.ends_with(&previous.number.to_ne_bytes())).collect();
        for key in old {
            // One that is gone already is gone.
            let _ = self.maps.sids.delete(&key);
        }
        let _ = fs::remove_file(self.options.folder.policy(previous.number));
        self.save_contexts()
    }
}
