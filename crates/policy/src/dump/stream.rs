//! Reads the elements of a stream from bytes that are not trusted.

use std::ops::Range;

use super::DumpError;
use crate::model::{self, Bits, Context, Level};

/// The bytes that are left to read.
pub(super) struct Stream<'a> {
    rest: &'a [u8],
}

impl<'a> Stream<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], DumpError> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(DumpError::Short)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DumpError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(DumpError::Short)?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(super) fn number(&mut self) -> Result<u32, DumpError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a count of elements of at least `least` bytes each. No count reserves more memory than the remaining bytes
    /// justify.
    fn count(&mut self, least: usize) -> Result<usize, DumpError> {
        let count = self.number()? as usize;
        if count > self.rest.len() / least { Err(DumpError::Short) } else { Ok(count) }
    }

    /// Reads a count, and then that many elements of at least `least` bytes.
    pub(super) fn list<T>(
        &mut self,
        least: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, DumpError>,
    ) -> Result<Vec<T>, DumpError> {
        let count = self.count(least)?;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            let before = self.rest.len();
            list.push(element(self)?);
            debug_assert!(before - self.rest.len() >= least, "an element took less than {least} bytes");
        }
        Ok(list)
    }

    /// The same for identifiers that start at 1: element 0 is empty.
    pub(super) fn numbered<T: Default>(
        &mut self,
        least: usize,
        element: impl FnMut(&mut Self) -> Result<T, DumpError>,
    ) -> Result<Vec<T>, DumpError> {
        let mut list = self.list(least, element)?;
        list.insert(0, T::default());
        Ok(list)
    }

    pub(super) fn text(&mut self) -> Result<String, DumpError> {
        let length = self.count(1)?;
        let bytes = self.bytes(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| DumpError::Content("text that is not UTF-8"))
    }

    /// Reads a set of identifiers up to `greatest`.
    pub(super) fn set(&mut self, greatest: usize) -> Result<Bits, DumpError> {
        self.bits(1..greatest + 1)
    }

    /// Reads a set of categories, which start at 0.
    pub(super) fn categories(&mut self, count: usize) -> Result<Bits, DumpError> {
        self.bits(0..count)
    }

    fn bits(&mut self, numbers: Range<usize>) -> Result<Bits, DumpError> {
        let count = self.count(8)?;
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            words.push(self.array().map(u64::from_le_bytes)?);
        }
        // One more than the highest number.
        let end = words.last().map_or(0, |word| words.len() * 64 - word.leading_zeros() as usize);
        match words.last() {
            Some(0) => Err(DumpError::Content("a set with an empty word at its end")),
            _ if end > numbers.end || words.first().is_some_and(|word| word & 1 == 1 && numbers.start > 0) => {
                Err(DumpError::Content("a set with a number that is not there"))
            }
            _ => Ok(Bits(words)),
        }
    }

    /// Reads an identifier between `least` and `greatest`.
    pub(super) fn within(&mut self, least: u32, greatest: usize) -> Result<u32, DumpError> {
        let identifier = self.number()?;
        if identifier < least || identifier as usize > greatest {
            return Err(DumpError::Content("a number that is not there"));
        }
        Ok(identifier)
    }
}

/// How many there are of each kind. Identifiers are checked against these.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) classes: usize,
    pub(super) types: usize,
    pub(super) roles: usize,
    pub(super) users: usize,
    pub(super) sensitivities: usize,
    pub(super) categories: usize,
    pub(super) booleans: usize,
    pub(super) mls: bool,
}

impl Counts {
    pub(super) fn level(&self, stream: &mut Stream<'_>) -> Result<Level, DumpError> {
        let sensitivity = stream.within(u32::from(self.mls), self.sensitivities)?;
        Ok(Level { sensitivity, categories: stream.categories(self.categories)? })
    }

    pub(super) fn range(&self, stream: &mut Stream<'_>) -> Result<model::Range, DumpError> {
        Ok(model::Range { low: self.level(stream)?, high: self.level(stream)? })
    }

    pub(super) fn context(&self, stream: &mut Stream<'_>) -> Result<Context, DumpError> {
        Ok(Context {
            user: stream.within(1, self.users)?,
            role: stream.within(1, self.roles)?,
            type_: stream.within(1, self.types)?,
            range: self.range(stream)?,
        })
    }
}
