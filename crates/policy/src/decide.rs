//! The evaluator, compiled for the host from the header that BPF programs include (`decide.h`).

use std::collections::HashMap;

use tollgate_abi::tables::{
    TG_BLOCK, TG_CAPACITY, TG_LEVELS, TG_MAGIC, TG_NAME, TG_VERSION, tg_context, tg_decision, tg_extended, tg_folded,
    tg_header, tg_label, tg_level, tg_levels, tg_name, tg_question, tg_tables,
};

use crate::model::{Bits, Level};

mod ffi {
    use super::{tg_context, tg_decision, tg_extended, tg_label, tg_levels, tg_name, tg_question, tg_tables};

    unsafe extern "C" {
        pub(super) safe fn tollgate_decide(
            tables: &tg_tables,
            levels: &tg_levels,
            question: &tg_question,
            out: &mut tg_decision,
        ) -> i32;
        pub(super) safe fn tollgate_extend(
            tables: &tg_tables,
            decision: &tg_decision,
            driver: u32,
            out: &mut tg_extended,
        ) -> i32;
        pub(super) safe fn tollgate_validate(tables: &tg_tables, levels: &tg_levels, question: &tg_question) -> i32;
        pub(super) safe fn tollgate_valid(tables: &tg_tables, levels: &tg_levels, context: &tg_context) -> i32;
        pub(super) safe fn tollgate_label(
            tables: &tg_tables,
            levels: &tg_levels,
            question: &tg_question,
            name: Option<&tg_name>,
            out: &mut tg_label,
        ) -> i32;
    }
}

/// Why bytes are not decision tables that this program can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// They do not begin like tables, or their length differs from the one in their header.
    #[error("no decision tables, or not all of them: build the policy again with `tollgate policy build`")]
    NotTables,
    /// They belong to another version.
    #[error(
        "decision tables of version {found}, but this program reads version {TG_VERSION}: build the policy again with `tollgate policy build`"
    )]
    Version {
        /// The version of the format that the tables have.
        found: u32,
    },
}

/// Whether the matrices are within the tables, and their rows as long as the evaluator takes them for: other readers go by
/// the number of columns.
fn are_folded(header: &tg_header) -> bool {
    let fits = |matrix: &tg_folded, rows: u32, columns: u32| {
        let [rows, width, blocks] = [rows, matrix.width, matrix.blocks].map(u64::from);
        let end = |at: u32, cells: u64| u64::from(at) + cells * size_of::<u16>() as u64 <= header.size.into();
        matrix.width == columns.div_ceil(TG_BLOCK)
            && rows
                .checked_mul(width)
                .is_some_and(|cells| cells <= u64::from(TG_CAPACITY) && end(matrix.index_at, cells))
            && end(matrix.block_at, blocks * u64::from(TG_BLOCK))
    };
    fits(&header.matrix, header.rows, header.columns)
        && fits(&header.vector, header.vectors, header.classes.saturating_add(1))
}

/// Decision tables in a buffer of `TG_CAPACITY` bytes. No content can lead outside of the buffer.
pub struct Tables {
    buffer: Box<tg_tables>,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").field("header", self.header()).finish_non_exhaustive()
    }
}

impl Tables {
    /// Copies tables from the bytes that [`crate::tables::build`] made.
    pub fn new(content: &[u8]) -> Result<Self, TablesError> {
        if content.len() < size_of::<tg_header>() || content.len() > TG_CAPACITY as usize {
            return Err(TablesError::NotTables);
        }
        // SAFETY: `tg_tables` is an array of bytes, for which zero is a value.
        let mut buffer: Box<tg_tables> = unsafe { Box::new_zeroed().assume_init() };
        buffer.bytes[..content.len()].copy_from_slice(content);
        let tables = Self { buffer };
        let header = tables.header();
        match (header.magic, header.version) {
            (TG_MAGIC, TG_VERSION) if header.size as usize == content.len() && are_folded(header) => Ok(tables),
            (TG_MAGIC, found) if found != TG_VERSION => Err(TablesError::Version { found }),
            _ => Err(TablesError::NotTables),
        }
    }

    /// Whether bytes are tables of an earlier version, which this program does not read.
    pub(crate) fn are_older(content: &[u8]) -> bool {
        let word = |at: usize| content.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes);
        word(0) == Some(TG_MAGIC) && word(4).is_some_and(|version| version < TG_VERSION)
    }

    /// The header of the tables.
    pub fn header(&self) -> &tg_header {
        // SAFETY: the buffer is longer than a header and as aligned (`tg_tables` is), and any bytes are a header.
        unsafe { &*self.buffer.bytes.as_ptr().cast() }
    }

    /// The bytes in use.
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer.bytes[..self.header().size as usize]
    }

    /// `context_struct_compute_av`: the access vectors of a question; `None`: there is no such class.
    pub fn decide(&self, levels: &Levels, question: &tg_question) -> Option<tg_decision> {
        let mut out = tg_decision::default();
        (ffi::tollgate_decide(&self.buffer, &levels.buffer, question, &mut out) != 0).then_some(out)
    }

    /// `security_compute_xperms_decision`: the functions of a driver that a decision allows; `None`: no rule names
    /// extended permissions, so the plain permission decides.
    pub fn extend(&self, decision: &tg_decision, driver: u8) -> Option<tg_extended> {
        let mut out = tg_extended::default();
        (ffi::tollgate_extend(&self.buffer, decision, driver.into(), &mut out) != 0).then_some(out)
    }

    /// `security_validate_transition`: whether `question.task` may relabel an object from `source` to `target`.
    pub fn validate(&self, levels: &Levels, question: &tg_question) -> bool {
        ffi::tollgate_validate(&self.buffer, &levels.buffer, question) != 0
    }

    /// Whether the policy permits the context, as `policydb_context_isvalid` of the kernel decides it.
    pub fn valid(&self, levels: &Levels, context: &tg_context) -> bool {
        ffi::tollgate_valid(&self.buffer, &levels.buffer, context) != 0
    }

    /// `security_compute_sid`: the context of a new object, or the one that it would have if it were valid. A level in
    /// it that was not known is given an identifier.
    pub fn label(&self, levels: &mut Levels, question: &tg_question, name: Option<&tg_name>) -> Labelled {
        let mut out = tg_label::default();
        let valid = self.raw_label(levels, question, name, &mut out);
        let mut context = out.context;
        if self.header().mls != 0 {
            let [low, high] = out.level.each_ref().map(|raw| levels.intern(&from_raw(raw)));
            (context.low, context.high) = match (low, high) {
                (Ok(low), Ok(high)) => (low, high),
                _ => return Labelled::TooManyLevels,
            };
        }
        match (valid, context.user) {
            (true, _) => Labelled::Valid(context),
            (false, 0) => Labelled::Nothing,
            (false, _) => Labelled::Invalid(context),
        }
    }

    /// The same as a program in the kernel gets it, in `out`: a level that was not known has no identifier. Returns whether the
    /// policy permits the context.
    pub(crate) fn raw_label(
        &self,
        levels: &Levels,
        question: &tg_question,
        name: Option<&tg_name>,
        out: &mut tg_label,
    ) -> bool {
        ffi::tollgate_label(&self.buffer, &levels.buffer, question, name, out) != 0
    }
}

/// The result of a labelling decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labelled {
    /// A context that the policy permits.
    Valid(tg_context),
    /// A context that the policy does not permit. The kernel then refuses, except for permissive domains.
    Invalid(tg_context),
    /// No context, because there is no such class.
    Nothing,
    /// A level for which there is no room.
    TooManyLevels,
}

/// A file name in the form of the evaluator; `None`: it is empty, or longer than a file name can be.
pub fn name(text: &str) -> Option<tg_name> {
    let mut name = tg_name::default();
    if text.is_empty() || text.len() > TG_NAME as usize {
        return None;
    }
    name.text[..text.len()].copy_from_slice(text.as_bytes());
    name.length = u32::try_from(text.len()).ok()?;
    Some(name)
}

/// Levels with identifiers. Equal levels have equal identifiers.
pub struct Levels {
    buffer: Box<tg_levels>,
    /// How many are the policy's own.
    own: usize,
    /// How many there are. Of two equal ones, which only a kernel makes, one is known.
    count: usize,
    known: HashMap<Level, u32>,
}

/// More than `TG_LEVELS` levels at one time, or a level that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("more than {TG_LEVELS} different levels in use at one time, or a category above the highest: use fewer")]
pub struct TooManyLevels;

impl std::fmt::Debug for Levels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Levels").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Levels {
    /// The policy's own levels, in the order of their identifiers.
    pub fn new(levels: &[Level]) -> Result<Self, TooManyLevels> {
        // SAFETY: `tg_levels` is made of integers, for which zero is a value.
        let buffer: Box<tg_levels> = unsafe { Box::new_zeroed().assume_init() };
        let mut all = Self { buffer, own: levels.len(), count: 0, known: HashMap::new() };
        for (level, identifier) in levels.iter().zip(0..) {
            if all.intern(level)? != identifier {
                return Err(TooManyLevels);
            }
        }
        Ok(all)
    }

    /// The identifier of a level.
    pub fn intern(&mut self, level: &Level) -> Result<u32, TooManyLevels> {
        let level = Level { sensitivity: level.sensitivity, categories: trimmed(&level.categories) };
        if let Some(identifier) = self.known.get(&level) {
            return Ok(*identifier);
        }
        let identifier = self.count;
        let Some(raw) = self.buffer.level.get_mut(identifier) else { return Err(TooManyLevels) };
        let Some(words) = raw.categories.get_mut(..level.categories.0.len()) else { return Err(TooManyLevels) };
        words.copy_from_slice(&level.categories.0);
        raw.sensitivity = level.sensitivity;
        self.count += 1;
        let identifier = u32::try_from(identifier).map_err(|_| TooManyLevels)?;
        self.known.insert(level, identifier);
        Ok(identifier)
    }

    /// How many more levels there is room for.
    pub fn room(&self) -> usize {
        self.buffer.level.len() - self.count
    }

    /// Removes all but the policy's own levels. The identifiers of the others mean nothing afterwards.
    pub fn forget(&mut self) {
        let own = self.own;
        self.known.retain(|_, identifier| (*identifier as usize) < own);
        self.buffer.level[own..].fill(tg_level::default());
        self.count = own;
    }

    /// Takes over levels up to identifier `last`, to which the kernel has given identifiers.
    pub fn follow(&mut self, all: &tg_levels, last: u32) {
        let end = (last as usize + 1).min(self.buffer.level.len());
        for identifier in self.count..end {
            self.buffer.level[identifier] = all.level[identifier];
            self.known.entry(from_raw(&all.level[identifier])).or_insert(identifier as u32);
        }
        self.count = self.count.max(end);
    }

    /// The highest identifier.
    pub fn last(&self) -> u32 {
        self.count.saturating_sub(1) as u32
    }

    /// A level as programs read it.
    pub fn raw(&self, identifier: u32) -> tg_level {
        self.buffer.level.get(identifier as usize).copied().unwrap_or_default()
    }

    /// The identifier of a level, if it has one.
    pub fn find(&self, level: &Level) -> Option<u32> {
        let level = Level { sensitivity: level.sensitivity, categories: trimmed(&level.categories) };
        self.known.get(&level).copied()
    }

    /// All levels, in the form for the kernel.
    pub fn as_bytes(&self) -> &[u8] {
        let buffer: *const tg_levels = &raw const *self.buffer;
        // SAFETY: `tg_levels` is made of integers without gaps, each byte of which may be read.
        unsafe { std::slice::from_raw_parts(buffer.cast(), size_of::<tg_levels>()) }
    }

    /// The level of an identifier.
    pub fn get(&self, identifier: u32) -> Level {
        self.buffer.level.get(identifier as usize).map_or_else(Level::default, from_raw)
    }
}

/// A level as programs have written it.
#[must_use]
pub fn from_raw(raw: &tg_level) -> Level {
    Level { sensitivity: raw.sensitivity, categories: trimmed(&Bits(raw.categories.to_vec())) }
}

/// The set without trailing empty words, so that equal sets have equal values.
fn trimmed(bits: &Bits) -> Bits {
    let length = bits.0.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    Bits(bits.0[..length].to_vec())
}
