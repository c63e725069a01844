//! SIDs and their contexts, in the maps, in memory and in the daemon's directory.

use std::sync::atomic::Ordering;

use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use tollgate_abi::{
    bytes_of,
    enforcer::{SECINITSID_UNLABELED, TG_SIDS, tg_sid_key},
    tables::{TG_LEVELS, tg_context},
};
use tracing::warn;

use super::{Enforcer, EnforcerError, map_error};
use crate::{
    contexts::{self, Full, Sid},
    generation::Generation,
};

impl Enforcer {
    /// Writes the contexts of all SIDs to every map that has them.
    pub(super) fn put_sids(&mut self) -> Result<(), EnforcerError> {
        for (sid, text) in self.contexts.iter() {
            if let Some(context) = self.generation.get(sid) {
                self.put_sid(sid, context)?;
                self.identify(sid, text)?;
            }
        }
        self.put_texts();
        Ok(())
    }

    /// Tells the programs the texts of all SIDs.
    pub(super) fn put_texts(&self) {
        self.contexts.iter().for_each(|(sid, _)| self.put_text(sid));
    }

    /// Tells the programs the text of a SID, for getsockopt(SO_PEERSEC). Without it, callers get no context.
    fn put_text(&self, sid: Sid) {
        let text = contexts::raw(self.meaning(sid).unwrap_or_default());
        if let Err(cause) = self.maps.texts.update(&sid.to_ne_bytes(), bytes_of(&text), MapFlags::ANY) {
            warn!(%cause, "getsockopt(SO_PEERSEC) does not tell the context of SID {sid}: {cause}");
        }
    }

    /// Several SIDs may have the same context, for example initial SIDs. The programs give the first one to new
    /// objects, so that these have the label of their directory, and not another one with the same text.
    pub(super) fn put_sid(&self, sid: Sid, context: tg_context) -> Result<(), EnforcerError> {
        let key = tg_sid_key { context, generation: self.generation.number };
        match self.maps.sids.update(bytes_of(&key), &sid.to_ne_bytes(), MapFlags::NO_EXIST) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(map_error("give a context a SID")(cause)),
            _ => Ok(()),
        }
    }

    /// The SID of a context, which the policy in force must permit. A new context is given a SID.
    pub fn intern(&mut self, text: &str) -> Result<Sid, EnforcerError> {
        self.learn();
        // This is checked even for a context with a SID, which may be of another policy.
        let context = self.generation.context(text)?;
        let canonical = self.generation.text(&context);
        if let Some(sid) = self.contexts.sid(text).or_else(|| self.contexts.sid(&canonical)) {
            return Ok(sid);
        }
        let sid = self.take_sid()?;
        self.generation.set(sid, context);
        // The kernel may have given the context a SID meanwhile. Then both SIDs stand for it.
        self.put_sid(sid, context)?;
        self.note_sid(sid, canonical)?;
        Ok(sid)
    }

    /// security_context_to_sid_force: the SID of a context that the policy in force does not have. Objects with it are
    /// unlabelled until a policy has the context (`Generation::adopt`).
    pub fn defer(&mut self, text: &str) -> Result<Sid, EnforcerError> {
        if let Some(sid) = self.contexts.sid(text) {
            return Ok(sid);
        }
        let sid = self.take_sid()?;
        self.generation.set(sid, self.generation.get(SECINITSID_UNLABELED).unwrap_or_default());
        self.note_sid(sid, text.to_owned())?;
        Ok(sid)
    }

    /// The context of a SID in the policy in force, if this daemon knows it. A context that the policy does not have is
    /// unlabelled.
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

    /// Records the context of a SID in the directory and for the candidate.
    fn note_sid(&mut self, sid: Sid, text: String) -> Result<(), EnforcerError> {
        self.tell_shadow(sid, &text);
        self.identify(sid, &text)?;
        self.contexts.insert(sid, text);
        self.put_text(sid);
        self.options.folder.append(&self.options.folder.contexts(), self.contexts.take_new_lines().as_bytes())
    }

    /// Whether half of the SIDs, or of the policy's levels, are used.
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

    /// Reads the contexts to which the kernel has given SIDs.
    pub fn learn(&mut self) {
        let last = self.state.last_sid().load(Ordering::SeqCst);
        for sid in self.contexts.unknown(last) {
            if let Some(context) = self.generation.get(sid) {
                let text = self.generation.text(&context);
                self.tell_shadow(sid, &text);
                if let Err(cause) = self.identify(sid, &text) {
                    warn!(context = text, %cause, "{text} has no sealed label: {cause}");
                }
                self.contexts.insert(sid, text);
                self.put_text(sid);
            }
        }
    }

    /// Puts contexts in place to which the kernel gave SIDs under `previous` without this daemon's knowledge.
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
                self.put_text(sid);
            }
        }
        Ok(())
    }

    /// Removes the contexts of other generations: if a generation number is used again, it must find none of them.
    pub(super) fn forget_other_sids(&self) {
        let own = self.generation.number.to_ne_bytes();
        let others: Vec<Vec<u8>> = self.maps.sids.keys().filter(|key| !key.ends_with(&own)).collect();
        for key in others {
            // It may have been removed by somebody else already.
            let _ = self.maps.sids.delete(&key);
        }
        let others: Vec<Vec<u8>> = self.maps.identified.keys().filter(|key| !key.starts_with(&own)).collect();
        for key in others {
            let _ = self.maps.identified.delete(&key);
        }
    }

    pub(super) fn save_contexts(&mut self) -> Result<(), EnforcerError> {
        self.contexts.take_new_lines();
        let lines = self.contexts.lines();
        self.options.folder.replace(&self.options.folder.contexts(), lines.as_bytes())
    }
}
