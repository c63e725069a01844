//! What an option says: a sensitivity and categories, in the numbers of a domain of interpretation.

use std::{fmt, num::NonZeroU32};

use crate::{categories::Categories, error::ReadError};

/// A level in the numbers of an option. How they map to the policy's levels is a matter of the DOI, not of this crate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Level {
    /// The sensitivity, 0 the lowest. All of 0 to 255 are valid in CIPSO and CALIPSO.
    pub sensitivity: u8,
    /// The categories; RFC 5570 calls them compartments.
    pub categories: Categories,
}

impl Level {
    /// A level with these categories.
    #[must_use]
    pub fn new(sensitivity: u8, categories: impl IntoIterator<Item = u16>) -> Self {
        Self { sensitivity, categories: categories.into_iter().collect() }
    }
}

/// As SELinux writes a level: `s3:c0,c1`.
impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.categories.is_empty() { "" } else { ":" };
        write!(formatter, "s{}{colon}{}", self.sensitivity, self.categories)
    }
}

/// A domain of interpretation: whose numbers a label has. 0 is reserved, by the CIPSO draft and RFC 5570 alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Doi(NonZeroU32);

impl Doi {
    /// The domain with this number.
    ///
    /// # Errors
    ///
    /// If the number is 0; NetLabel defines it as `CIPSO_V4_DOI_UNKNOWN` and `CALIPSO_DOI_UNKNOWN`.
    pub const fn new(number: u32) -> Result<Self, ReadError> {
        match NonZeroU32::new(number) {
            Some(number) => Ok(Self(number)),
            None => Err(ReadError::ReservedDoi),
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Doi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::{Doi, Level};
    use crate::ReadError;

    #[test]
    fn writes_levels_as_selinux_does() {
        assert_eq!(Level::new(3, [0, 1]).to_string(), "s3:c0,c1");
        assert_eq!(Level::new(255, []).to_string(), "s255");
    }

    #[test]
    fn refuses_domain_0() {
        assert_eq!(Doi::new(0), Err(ReadError::ReservedDoi));
        assert_eq!(Doi::new(u32::MAX).map(Doi::number), Ok(u32::MAX));
    }
}
