//! The policy's own levels, with identifiers.

use std::collections::HashMap;

use tollgate_abi::tables::TG_CATEGORIES;

use crate::model::{Bits, Level};

use super::limit::{MAX_LEVELS, TableLimit};

/// Levels, each once. The first is empty: the level of policies without MLS, which is not valid in a policy with MLS.
#[derive(Debug)]
pub(super) struct Levels {
    levels: Vec<Level>,
    known: HashMap<Level, u32>,
}

impl Levels {
    pub(super) fn new() -> Self {
        Self { levels: vec![Level::default()], known: HashMap::from([(Level::default(), 0)]) }
    }

    /// The identifier of a level. `of` says what has the level, for error messages.
    pub(super) fn intern(&mut self, level: &Level, of: &'static str) -> Result<u32, TableLimit> {
        if let Some(identifier) = self.known.get(level) {
            return Ok(*identifier);
        }
        let words = &level.categories.0;
        let length = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        if length > TG_CATEGORIES as usize / 64 {
            return Err(TableLimit::Categories { has: length * 64 });
        }
        let level = Level { sensitivity: level.sensitivity, categories: Bits(words[..length].to_vec()) };
        let next = self.levels.len();
        if next == MAX_LEVELS && !self.known.contains_key(&level) {
            return Err(TableLimit::Levels { of });
        }
        let identifier = *self.known.entry(level).or_insert_with_key(|level| {
            self.levels.push(level.clone());
            // Lossless: no more than MAX_LEVELS.
            next as u32
        });
        Ok(identifier)
    }

    /// The levels in the order of their identifiers.
    pub(super) fn finish(self) -> Vec<Level> {
        self.levels
    }
}
