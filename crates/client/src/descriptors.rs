//! When a process is asked about descriptors that another domain opened, or that it took along into another domain.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// When descriptors are asked about: chosen when enforcement starts (docs/adr/0011-descriptors.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Descriptors {
    /// When they change hands: who enters a domain that may not use one is denied to enter.
    #[default]
    Check,
    /// At each use, as SELinux does: each read and write costs more.
    Use,
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Check => "check",
            Self::Use => "use",
        })
    }
}

impl FromStr for Descriptors {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "check" => Ok(Self::Check),
            "use" => Ok(Self::Use),
            _ => Err(format!("descriptors are asked about at their check or at their use, not {name:?}: check or use")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        for descriptors in [Descriptors::Check, Descriptors::Use] {
            assert_eq!(descriptors.to_string().parse(), Ok(descriptors));
        }
        assert!("".parse::<Descriptors>().is_err() && "Use".parse::<Descriptors>().is_err());
    }
}
