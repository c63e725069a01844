//! Packets that were denied or dropped, one by one.

use serde::{Deserialize, Serialize};

use super::{FATES, Fate};

/// A packet that was denied or dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// Counts them, from 1. A gap means that older ones had to make room.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub time: u64,
    /// What became of it: the name of one of [`FATES`]; `None`: the policy denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fate: Option<String>,
    /// Its addresses, or the whole denial, as in the audit log.
    pub text: String,
}

impl Traced {
    /// What became of it, with the remedy; `None`: the policy denied it.
    #[must_use]
    pub fn fate(&self) -> Option<&'static Fate> {
        let name = self.fate.as_ref()?;
        FATES.iter().find(|fate| fate.name == name)
    }
}
