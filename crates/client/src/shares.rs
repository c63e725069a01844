//! Shares of limited resources, and who holds most of each.

use std::fmt;

use serde::{Deserialize, Serialize};
use tollgate_abi::enforcer::{TG_ROOM_CREDENTIALS, TG_ROOM_LABELS, TG_ROOM_OBJECTS, TG_ROOM_OWNERS, tg_room};

/// A limited resource: entries in the BPF map of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Room {
    /// Credentials of confined processes, and of the files that they have opened.
    Credentials,
    /// Labels of files that differ from their directory's.
    Labels,
    /// System V objects, messages, keys, performance events, BPF maps and programs.
    Objects,
    /// Files whose owner receives signals (`F_SETOWN`).
    Owners,
}

impl Room {
    /// All rooms.
    pub const ALL: [Self; 4] = [Self::Credentials, Self::Labels, Self::Objects, Self::Owners];
    /// The sizes that the map may have. Smaller rooms leave no shares; larger ones need more memory than a machine has.
    /// Credentials have a lower limit: one place of the array before the map may have at most 120 of them in the map
    /// (bpf/credential_put.h), and a larger room could exceed that at 64 per place on average.
    #[must_use]
    pub fn sizes(self) -> std::ops::RangeInclusive<u32> {
        64..=if self == Self::Credentials { 1 << 20 } else { 1 << 26 }
    }

    /// The name of its BPF map.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Labels => "labels",
            Self::Objects => "objects",
            Self::Owners => "owners",
        }
    }

    /// Its number in `enum tg_room`.
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

/// How much one holder has of one room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The limited resource.
    pub room: Room,
    /// A user, a domain's context, `the machine`, or `users without a share` and `domains without a share` together.
    pub holder: String,
    /// How many places are held.
    pub held: u32,
    /// How many places this holder may have; for the machine, how many there are.
    pub share: u32,
    /// Labels of the holder's files found no room: those of the files whose label is not written down have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlabelled: bool,
}
