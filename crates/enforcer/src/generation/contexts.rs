//! Contexts in the numbers of one generation: those that the policy names, and those that came later.

use std::sync::atomic::{AtomicU32, Ordering};

use tollgate_abi::{
    enforcer::{SECINITSID_UNLABELED, TG_SID_MACHINE, TG_SIDS},
    tables::{TG_LEVELS, tg_context},
};
use tollgate_policy::{
    context::{self, ContextError},
    decide::{TooManyLevels, from_raw},
    model::{Context, Level, Range},
};

use super::Generation;
use crate::contexts::{Contexts, Sid};

impl Generation {
    /// The identifier of a level. The programs assign identifiers as well, so a new one is taken by an atomic addition.
    /// If two belong to one level, only a place is lost.
    pub(crate) fn level(&mut self, level: &Level) -> Result<u32, TooManyLevels> {
        if let Some(known) = self.levels.find(level) {
            return Ok(known);
        }
        let memory = self.memory.get();
        // SAFETY: the counter lies in the mapping, aligned, and programs use it by single accesses too.
        let last = unsafe { AtomicU32::from_ptr(&raw mut (*memory).last_level) };
        // SAFETY: levels up to the counter are not written again.
        self.levels.follow(unsafe { &(*memory).levels }, last.load(Ordering::SeqCst));
        if let Some(known) = self.levels.find(level) {
            return Ok(known);
        }
        if self.levels.room() == 0 {
            return Err(TooManyLevels);
        }
        let taken = last.fetch_add(1, Ordering::SeqCst) + 1;
        // SAFETY: as above; those that the kernel took since are below `taken`.
        self.levels.follow(unsafe { &(*memory).levels }, taken - 1);
        let identifier = self.levels.intern(level)?;
        let raw = self.levels.raw(identifier);
        // SAFETY: the place lies in the mapping (`room`), and nobody else was given it.
        unsafe { (&raw mut (*memory).levels.level[taken as usize]).write_volatile(raw) };
        Ok(identifier)
    }

    /// How many levels have identifiers.
    pub(crate) fn last_level(&self) -> u32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.memory.get()).last_level) }.load(Ordering::SeqCst)
    }

    /// The level of an identifier, even of one that a program has just assigned: it writes the level before any context
    /// with it.
    pub(super) fn level_of(&self, identifier: u32) -> Level {
        let place = identifier.min(TG_LEVELS - 1) as usize;
        // SAFETY: the place lies in the mapping.
        from_raw(&unsafe { (&raw const (*self.memory.get()).levels.level[place]).read_volatile() })
    }

    /// A context in this policy's numbers. The policy must find it valid.
    pub fn context(&mut self, text: &str) -> Result<tg_context, ContextError> {
        let context = self.names.context(&self.policy, text)?;
        let raw = self.numbers(&context)?;
        if self.tables.valid(&self.levels, &raw) {
            return Ok(raw);
        }
        let reason = "the policy does not permit this user, role, type and range together".to_owned();
        Err(ContextError::Invalid { text: text.to_owned(), reason })
    }

    /// Whether the policy has all names in a context.
    pub fn read(&self, text: &str) -> Result<(), ContextError> {
        self.names.context(&self.policy, text).map(drop)
    }

    fn numbers(&mut self, context: &Context) -> Result<tg_context, ContextError> {
        let too_many = |_| TooManyLevels;
        Ok(tg_context {
            user: u16::try_from(context.user).map_err(too_many)?,
            role: u16::try_from(context.role).map_err(too_many)?,
            type_: context.type_,
            low: self.level(&context.range.low)?,
            high: self.level(&context.range.high)?,
        })
    }

    /// Sets the context of a SID in this generation.
    pub fn set(&mut self, sid: Sid, context: tg_context) {
        if sid < TG_SIDS {
            // SAFETY: the place lies in the mapping. Programs look at a SID only after it was given out.
            unsafe { (&raw mut (*self.memory.get()).contexts[sid as usize]).write_volatile(context) };
        }
    }

    /// The context of a SID in this generation; `None`: it has none.
    #[must_use]
    pub fn get(&self, sid: Sid) -> Option<tg_context> {
        if sid >= TG_SIDS {
            return None;
        }
        // SAFETY: the place lies in the mapping; programs write a context before they give its SID out.
        let context = unsafe { (&raw const (*self.memory.get()).contexts[sid as usize]).read_volatile() };
        (context.type_ != 0).then_some(context)
    }

    /// A context of this generation as text.
    #[must_use]
    pub fn text(&self, context: &tg_context) -> String {
        let range = Range { low: self.level_of(context.low), high: self.level_of(context.high) };
        let context = Context { user: context.user.into(), role: context.role.into(), type_: context.type_, range };
        context::text(&self.policy, &context)
    }

    /// Puts each known context in its place. A context that this policy does not permit counts as the unlabelled one,
    /// as in SELinux (sidtab_convert), and so does an initial SID that it does not define (sidtab_search_core).
    pub fn adopt(&mut self, contexts: &Contexts) -> Vec<(Sid, String)> {
        let unlabelled = contexts.text(SECINITSID_UNLABELED).to_owned();
        let unlabelled = self.context(&unlabelled).unwrap_or_default();
        (1..TG_SID_MACHINE).for_each(|sid| self.set(sid, unlabelled));
        let mut invalid = Vec::new();
        for (sid, text) in contexts.iter() {
            match self.context(text) {
                Ok(context) => self.set(sid, context),
                Err(_) => {
                    self.set(sid, unlabelled);
                    invalid.push((sid, text.to_owned()));
                }
            }
        }
        invalid
    }
}
