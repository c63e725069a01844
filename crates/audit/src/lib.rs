//! Audit: denials logged to the kernel's audit, to files and for people; explained, and made rules of. No BPF.
//!
//! The object managers put a `tg_event` into a ring buffer, which the enforcer reads. [`avc`] makes it a [`Denial`] and writes
//! that as the kernel's audit does. A [`Dispatcher`] has a thread in which [`storm`] merges equal ones and [`sink`] hands them to
//! the kernel's audit or to a file, and to the JSON log. [`log`] reads that log, [`follow`] prints it, and [`text`] reads the kernel's
//! form. [`explain`] says why something was denied, and [`learn`] which rules would allow it. docs/audit.md describes the forms.

mod auditor;
pub mod avc;
pub mod clock;
mod dispatcher;
pub mod endpoints;
pub mod explain;
pub mod follow;
pub mod learn;
pub mod log;
mod netlink;
mod rotated;
pub mod sink;
pub mod storm;
pub mod text;
pub mod untrusted;

use serde::{Deserialize, Serialize};

pub use self::{
    avc::Denial,
    dispatcher::{Dispatcher, Health},
    untrusted::Untrusted,
};

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "nearly all entries are denials")]
pub enum Entry {
    /// A denial, or what was granted and is to be audited.
    Avc(Denial),
    /// Events that nobody can tell any more.
    Lost(Lost),
}

impl Entry {
    /// When, in milliseconds since 1970.
    #[must_use]
    pub fn time(&self) -> u64 {
        match self {
            Self::Avc(denial) => denial.time,
            Self::Lost(lost) => lost.time,
        }
    }
}

/// How many events were lost, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// When that was noticed, in milliseconds since 1970.
    #[serde(with = "avc::time")]
    pub time: u64,
    /// How many.
    pub count: u64,
    /// Where.
    pub reason: Reason,
}

/// Where events are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The ring buffer was full: the daemon was too slow, or dead.
    RingBuffer,
    /// More in a second than the object managers may tell.
    KernelLimit,
    /// More different ones in a second than the daemon may record.
    DaemonLimit,
    /// They were not what this program knows as an event.
    Malformed,
    /// The kernel's audit left records out: its backlog was full, or there were more than it prints.
    KernelAudit,
    /// Hooks did not run: what was done meanwhile was asked about by nobody.
    HooksOff,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::RingBuffer, Self::KernelLimit, Self::DaemonLimit, Self::Malformed, Self::KernelAudit, Self::HooksOff];

    /// For people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::RingBuffer => "the ring buffer was full",
            Self::KernelLimit => "more than the kernel's programs may tell in a second",
            Self::DaemonLimit => "more than the daemon may record in a second",
            Self::Malformed => "not of a known form",
            Self::KernelAudit => "the kernel's audit left them out",
            Self::HooksOff => "hooks did not run",
        }
    }
}
