//! Audit: denials logged to the kernel's audit, to files and for people, explained, and turned into rules. No BPF.
//!
//! The object managers put a `tg_event` into a ring buffer, which the enforcer reads. [`avc`] turns it into a
//! [`Denial`] and writes that as the kernel's audit does. A [`Dispatcher`] has a thread in which [`storm`] merges equal
//! denials and [`sink`] writes them to the kernel's audit or to a file, and to the JSON log. [`log`] reads that log,
//! [`follow`] prints it, and [`text`] reads the kernel's form. [`explain`] says why something was denied, and [`learn`]
//! which rules would allow it. docs/audit.md describes the formats.

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

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
pub mod rotated;
pub mod sink;
pub mod storm;
pub mod text;
pub mod untrusted;

use serde::{Deserialize, Serialize};

pub use self::{
    avc::Denial,
    dispatcher::{Dispatcher, Health, booted},
    untrusted::Untrusted,
};

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Entry {
    /// An act that was denied, or that was granted and is audited.
    Avc(Denial),
    /// Events that were lost, with their number.
    Lost(Lost),
    /// A fleet's generation that was put in force, or refused.
    Load(Load),
}

impl Entry {
    /// Time of the entry, in milliseconds since 1970.
    #[must_use]
    pub fn time(&self) -> u64 {
        match self {
            Self::Avc(denial) => denial.time,
            Self::Lost(lost) => lost.time,
            Self::Load(load) => load.time,
        }
    }
}

/// What became of a generation that a node of a fleet was offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// When, in milliseconds since 1970.
    #[serde(with = "avc::time")]
    pub time: u64,
    /// The hash of the generation; `None`: what was offered is not believed to be one.
    pub generation: Option<String>,
    /// `shadow`, `permissive` or `enforcing`.
    pub mode: Option<String>,
    /// Whether it is in force. Otherwise what was in force before is.
    pub success: bool,
    /// Why not.
    pub cause: Option<String>,
}

/// How many events were lost, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// When the loss was noticed, in milliseconds since 1970.
    #[serde(with = "avc::time")]
    pub time: u64,
    /// Number of events.
    pub count: u64,
    /// Where they were lost.
    pub reason: Reason,
}

/// Where events can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The ring buffer was full: the daemon was too slow, or not running.
    RingBuffer,
    /// The object managers may report only so many per second (`--audit-limit`).
    KernelLimit,
    /// The daemon may record only so many different ones per second.
    DaemonLimit,
    /// The event was not in a format that this program knows.
    Malformed,
    /// The kernel's audit left records out: its backlog was full, or there were more than it prints.
    KernelAudit,
    /// Hooks did not run, so nothing was checked meanwhile.
    HooksOff,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 6] =
        [Self::RingBuffer, Self::KernelLimit, Self::DaemonLimit, Self::Malformed, Self::KernelAudit, Self::HooksOff];

    /// The reason in words, as logs and messages have it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::RingBuffer => "the ring buffer was full",
            Self::KernelLimit => "more than the kernel's programs may report in a second",
            Self::DaemonLimit => "more than the daemon may record in a second",
            Self::Malformed => "not in a known format",
            Self::KernelAudit => "the kernel's audit left them out",
            Self::HooksOff => "hooks did not run",
        }
    }
}
