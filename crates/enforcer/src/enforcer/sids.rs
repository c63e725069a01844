//! SIDs: what they stand for, in the maps, in memory and in the folder.

use std::sync::atomic::Ordering;

use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use tollgate_abi::{
    bytes_of,
    enforcer::{SECINITSID_UNLABELED, TG_SIDS, tg_sid_key},
    tables::{TG_LEVELS, tg_context},
};

use super::{Enforcer, EnforcerError, map_error};
use crate::{
    contexts::{self, Full, Sid},
    generation::Generation,
};

impl Enforcer {
    /// What a SID stands for, in every map that says so.
    pub(super) fn put_sids(&mut self) -> Result<(), EnforcerError> {
        for (sid, _) in self.contexts.iter() {
            if let Some(context) = self.generation.get(sid) {
                self.put_sid(sid, context)?;
            }
        }
        Ok(())
    }

    /// Of several SIDs that stand for one context, such as initial ones, programs give the first to new objects: those
    /// have the label of the directory then, not another of the same text.
    pub(super) fn put_sid(&self, sid: Sid, context: tg_context) -> Result<(), EnforcerError> {
        let key = tg_sid_key { context, generation: self.generation.number };
        match self.maps.sids.update(bytes_of(&key), &sid.to_ne_bytes(), MapFlags::NO_EXIST) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(map_error("give a context a SID")(cause)),
            _ => Ok(()),
        }
    }

    /// The SID of a context, which the policy in force must permit; a new one is given a SID.
    pub fn intern(&mut self, text: &str) -> Result<Sid, EnforcerError> {
        self.learn();
        // Also one that has a SID: that may be of another policy.
        let context = self.generation.context(text)?;
        let canonical = self.generation.text(&context);
        if let Some(sid) = self.contexts.sid(text).or_else(|| self.contexts.sid(&canonical)) {
            return Ok(sid);
        }
        let sid = self.take_sid()?;
        self.generation.set(sid, context);
        // The kernel may have given the context a SID meanwhile; both stand for it then.
        self.put_sid(sid, context)?;
        self.note_sid(sid, canonical)?;
        Ok(sid)
    }

    /// security_context_to_sid_force: the SID of a context that the policy in force does not have. What has it is unlabelled,
    /// until a policy has it (`Generation::adopt`).
    pub fn defer(&mut self, text: &str) -> Result<Sid, EnforcerError> {
        if let Some(sid) = self.contexts.sid(text) {
            return Ok(sid);
        }
        let sid = self.take_sid()?;
        self.generation.set(sid, self.generation.get(SECINITSID_UNLABELED).unwrap_or_default());
        self.note_sid(sid, text.to_owned())?;
        Ok(sid)
    }

    /// What a SID stands for in the policy in force, if this daemon knows it: what that does not have is unlabelled.
    #[must_use]
    pub fn meaning(&self, sid: Sid) -> Option<&str> {
        let sid = contexts::bare(sid);
        let (own, unlabelled) = (self.generation.get(sid), self.generation.get(SECINITSID_UNLABELED));
        let sid = if own.is_some() && own == unlabelled { SECINITSID_UNLABELED } else { sid };
        self.contexts.has(sid).then(|| self.contexts.text(sid))
    }

    /// The context of a SID that no policy has yet.
    #[must_use]
    pub fn undefined(&self, sid: Sid) -> Option<&str> {
        let sid = contexts::bare(sid);
        let unlabelled = self.contexts.text(SECINITSID_UNLABELED);
        let undefined = self.meaning(sid) == Some(unlabelled) && self.contexts.text(sid) != unlabelled;
        undefined.then(|| self.contexts.text(sid))
    }

    /// Has the folder and a candidate know what a SID stands for.
    fn note_sid(&mut self, sid: Sid, text: String) -> Result<(), EnforcerError> {
        self.tell_shadow(sid, &text);
        self.contexts.insert(sid, text);
        self.options.folder.append(&self.options.folder.contexts(), self.contexts.take_new_lines().as_bytes())
    }

    /// Whether half of the SIDs or of the policy's levels are given.
    #[must_use]
    pub fn is_half_full(&self) -> bool {
        self.state.last_sid().load(Ordering::SeqCst) >= TG_SIDS / 2 || self.generation.last_level() >= TG_LEVELS / 2
    }

    fn take_sid(&self) -> Result<Sid, Full> {
        let last = self.state.last_sid();
        let taken = last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
            Some(contexts::next(last)).filter(|next| *next < TG_SIDS)
        });
        taken.map(contexts::next).map_err(|_| Full)
    }

    /// Learns the contexts that the kernel has given SIDs.
    pub fn learn(&mut self) {
        let last = self.state.last_sid().load(Ordering::SeqCst);
        for sid in self.contexts.unknown(last) {
            if let Some(context) = self.generation.get(sid) {
                let text = self.generation.text(&context);
                self.tell_shadow(sid, &text);
                self.contexts.insert(sid, text);
            }
        }
    }

    /// Gives contexts their places that the kernel gave SIDs under `previous`, unknown to this daemon.
    pub(super) fn take_over_contexts(&mut self, previous: &Generation) -> Result<(), EnforcerError> {
        let last = self.state.last_sid().load(Ordering::SeqCst);
        for sid in self.contexts.unknown(last) {
            if let Some(context) = previous.get(sid) {
                let text = previous.text(&context);
                if let Ok(context) = self.generation.context(&text) {
                    self.generation.set(sid, context);
                    self.put_sid(sid, context)?;
                }
                self.contexts.insert(sid, text);
            }
        }
        Ok(())
    }

    /// Removes what other generations call contexts: a number that is given again must find none of them.
    pub(super) fn forget_other_sids(&self) {
        let own = self.generation.number.to_ne_bytes();
        let others: Vec<Vec<u8>> = self.maps.sids.keys().filter(|key| !key.ends_with(&own)).collect();
        for key in others {
            // One that is gone already is gone.
            let _ = self.maps.sids.delete(&key);
        }
    }

    pub(super) fn save_contexts(&mut self) -> Result<(), EnforcerError> {
        self.contexts.take_new_lines();
        let lines = self.contexts.lines();
        self.options.folder.replace(&self.options.folder.contexts(), lines.as_bytes())
    }
}
