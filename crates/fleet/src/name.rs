//! Names of fleets, groups and nodes.

use std::{fmt, str::FromStr};

use serde::Serialize;

/// The name of a fleet, of a group of nodes, or of a node: 1 to 64 letters, digits, `-`, `_` and `.`, of which a letter
/// or a digit is the first. So it is the name of a file, too, and never hidden nor a folder's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Name(String);

impl Name {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name: use 1 to 64 letters, digits, `-`, `_` and `.`, and begin with a letter or a digit")]
pub struct NoName(String);

impl FromStr for Name {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins && text.len() <= 64 && text.bytes().all(is_known) {
            return Ok(Self(text.to_owned()));
        }
        Err(NoName(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_file_of_a_folder() {
        for name in ["web-1.example.org", "7", &"x".repeat(64)] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
        for text in ["", ".", "..", ".hidden", "a/b", "-o", "a b", "\u{e9}", "a\n", &"x".repeat(65)] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }
}
