//! When the use of a descriptor is checked that another domain opened, or that a process took along into another domain.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// When descriptors are checked. Chosen when enforcement starts (docs/adr/0011-descriptors.md); the default is `Check`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Descriptors {
    /// When they change hands. A process that may not use one of its descriptors in a domain is denied to enter that domain.
    #[default]
    Check,
    /// At each use, as in SELinux. Each read and write costs more.
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
            _ => Err(format!("descriptors cannot be checked at {name:?}: check (when they change hands) or use")),
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
