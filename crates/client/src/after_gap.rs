//! What happens to processes that were made while hooks did not run, and that may have left their confinement.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What the administrator chose (`--after-gap`). The default is `Confine`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AfterGap {
    /// They get the label of the process that they come from.
    #[default]
    Confine,
    /// They are killed with SIGKILL.
    Kill,
    /// They are reported, and go on as they are.
    Tell,
}

impl fmt::Display for AfterGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Confine => "confine",
            Self::Kill => "kill",
            Self::Tell => "tell",
        })
    }
}

impl FromStr for AfterGap {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "confine" => Ok(Self::Confine),
            "kill" => Ok(Self::Kill),
            "tell" => Ok(Self::Tell),
            _ => Err(format!(
                "there is no treatment {name:?} of processes that left their confinement: confine, kill or tell"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        for chosen in [AfterGap::Confine, AfterGap::Kill, AfterGap::Tell] {
            assert_eq!(chosen.to_string().parse(), Ok(chosen));
        }
        assert!("".parse::<AfterGap>().is_err() && "Kill".parse::<AfterGap>().is_err());
    }
}
