//! Shares of what all need, and who holds most of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use tollgate_abi::enforcer::{TG_ROOM_CREDENTIALS, TG_ROOM_LABELS, TG_ROOM_OBJECTS, TG_ROOM_OWNERS, tg_room};

/// What there is so much of: places in the map of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Room {
    /// Credentials of confined processes, and of files that they have opened.
    Credentials,
    /// Labels of files that are not their directories'.
    Labels,
    /// System V objects, messages, keys, performance events, BPF maps and programs.
    Objects,
    /// Files whose owner gets signals (`F_SETOWN`).
    Owners,
}

impl Room {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Credentials, Self::Labels, Self::Objects, Self::Owners];
    /// Fewer places leave no shares; more are more memory than a machine has, or more credentials than the 120 that may be
    /// in the map for one place of the array before it (bpf/credential_put.h), were they 64 on an average.
    #[must_use]
    pub fn sizes(self) -> std::ops::RangeInclusive<u32> {
        64..=if self == Self::Credentials { 1 << 20 } else { 1 << 26 }
    }

    /// The name of its map.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Labels => "labels",
            Self::Objects => "objects",
            Self::Owners => "owners",
        }
    }

    /// Its number among the rooms (`enum tg_room`).
    #[must_use]
    pub fn number(self) -> usize {
        let number: tg_room = match self {
            Self::Credentials => TG_ROOM_CREDENTIALS,
            Self::Labels => TG_ROOM_LABELS,
            Self::Objects => TG_ROOM_OBJECTS,
            Self::Owners => TG_ROOM_OWNERS,
        };
        number as usize
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What somebody holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Of what.
    pub room: Room,
    /// A user's name or number, a domain's context, or those who have no share of their own together.
    pub holder: String,
    /// How much.
    pub held: u32,
    /// How much he may hold; of the machine, how much there is.
    pub share: u32,
    /// Labels of his files found no room: those of his files whose label is not written down have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlabelled: bool,
}
