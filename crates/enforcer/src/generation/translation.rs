//! Translates the numbers of one generation into those of another.

use std::{collections::HashMap, sync::Arc};

use tollgate_abi::tables::TG_LEVELS;
use tollgate_policy::context;

use super::{Generation, GenerationError};

impl Generation {
    /// Writes what the numbers of `previous`, the generation in force until now, are in this one, for contexts to which
    /// the kernel gives SIDs in the meantime.
    pub fn translate(&mut self, previous: &Generation) -> Result<(), GenerationError> {
        let (old, new) = (&previous.policy, Arc::clone(&self.policy));
        let types = numbers(old.types.iter().map(|t| &t.name), new.types.iter().map(|t| &t.name));
        let roles = numbers(old.roles.iter().map(|r| &r.name), new.roles.iter().map(|r| &r.name));
        let users = numbers(old.users.iter().map(|u| &u.name), new.users.iter().map(|u| &u.name));
        let all = 0..=previous.last_level().min(TG_LEVELS - 1);
        let texts = all.map(|number| context::level_text(old, &previous.level_of(number)));
        let ranges: Vec<_> = texts.map(|text| self.names.range(&text)).collect();
        let mut levels = [TG_LEVELS as u16; TG_LEVELS as usize];
        for (place, range) in levels.iter_mut().zip(ranges) {
            if let Ok(range) = range {
                *place = self.level(&range.low)? as u16;
            }
        }
        // SAFETY: no program reads this generation before it is put in force.
        let to = unsafe { &mut (*self.memory.get()).translation };
        to.from = previous.number;
        to.level = levels;
        to.type_.iter_mut().zip(types).for_each(|(place, number)| *place = number);
        to.role.iter_mut().zip(roles).for_each(|(place, number)| *place = number);
        to.user.iter_mut().zip(users).for_each(|(place, number)| *place = number);
        Ok(())
    }
}

/// For each old number, the new number with the same name; 0: there is none.
fn numbers<'a>(
    old: impl Iterator<Item = &'a String>,
    new: impl Iterator<Item = &'a String>,
) -> impl Iterator<Item = u16> {
    let new: HashMap<&String, u16> = new.zip(0..).filter(|(name, _)| !name.is_empty()).collect();
    old.map(move |name| new.get(name).copied().unwrap_or(0)).collect::<Vec<_>>().into_iter()
}
