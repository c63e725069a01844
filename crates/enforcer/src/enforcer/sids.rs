//! SIDs: what they stand for, in the maps, in memory and in the folder.

use std::sync::atomic::Ordering;

use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use tollgate_abi::{
    enforcer::{TG_FIRST_SID, TG_SIDS, tg_sid_key},
    tables::tg_context,
};

use super::{Enforcer, EnforcerError, bytes_of, map_error};
use crate::contexts::{self, Full, Sid};

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
        if let Some(sid) = self.contexts.sid(text) {
            return Ok(sid);
        }
        let context = self.generation.context(text)?;
        let canonical = self.generation.text(&context);
        if let Some(sid) = self.contexts.sid(&canonical) {
            return Ok(sid);
        }
        let sid = self.take_sid()?;
        self.generation.set(sid, context);
        // The kernel may have given the context a SID meanwhile; both stand for it then.
        self.put_sid(sid, context)?;
        self.contexts.insert(sid, canonical);
        self.save_contexts()?;
        Ok(sid)
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
        for sid in TG_FIRST_SID..=last {
            if !self.contexts.has(sid)
                && let Some(context) = self.generation.get(sid)
            {
                let text = self.generation.text(&context);
                self.contexts.insert(sid, text);
            }
        }
    }

    pub(super) fn save_contexts(&self) -> Result<(), EnforcerError> {
        self.options.folder.replace(&self.options.folder.contexts(), self.contexts.lines().as_bytes())
    }
}
