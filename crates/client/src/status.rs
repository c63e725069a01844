//! What the daemon reports about enforcement.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use tollgate_abi::enforcer::{
    TG_FAILED_AWAITED, TG_FAILED_CONNECTIONS, TG_FAILED_CREDENTIALS, TG_FAILED_DESCRIPTORS, TG_FAILED_EVENT_LIMIT,
    TG_FAILED_EVENT_LOST, TG_FAILED_INODE_STORAGE, TG_FAILED_LABELS_FULL, TG_FAILED_LABELS_LOST, TG_FAILED_LEVELS_FULL,
    TG_FAILED_NAMESPACES, TG_FAILED_NEW_LABEL, TG_FAILED_NO_CONTEXT, TG_FAILED_NO_GENERATION, TG_FAILED_NO_LABEL,
    TG_FAILED_NOT_LABELLED, TG_FAILED_OBJECTS_FULL, TG_FAILED_OWNERS_FULL, TG_FAILED_SCRATCH, TG_FAILED_SHADOW,
    TG_FAILED_SHARE, TG_FAILED_SIDS_FULL, TG_FAILED_SOCKET_STORAGE, TG_FAILED_SUPERBLOCK, TG_FAILED_TASK_STORAGE,
    TG_FAILED_UNIT, TG_ROOM_CREDENTIALS, TG_ROOM_LABELS, TG_ROOM_OBJECTS, TG_ROOM_OWNERS,
};

use crate::{
    after_gap::AfterGap, descriptors::Descriptors, fleet::Report, guard::GuardStatus, protocol::Mode,
    shadow::Candidate, shares::Held,
};

/// Why a confined process was denied though no rule decided it (`enum tg_failure`), in words.
pub const FAILURES: &[(u32, &str)] = &[
    (TG_FAILED_NO_GENERATION, "no policy in force"),
    (TG_FAILED_NO_CONTEXT, "a SID without context"),
    (TG_FAILED_NO_LABEL, "an object without label"),
    (TG_FAILED_TASK_STORAGE, "no storage of a task"),
    (TG_FAILED_INODE_STORAGE, "no storage of an inode"),
    (TG_FAILED_SIDS_FULL, "no SID left"),
    (TG_FAILED_LEVELS_FULL, "no level left"),
    (TG_FAILED_LABELS_FULL, "no room for a label"),
    (TG_FAILED_SUPERBLOCK, "a file system that is not known"),
    (TG_FAILED_CREDENTIALS, "overridden credentials"),
    (TG_FAILED_EVENT_LOST, "event lost"),
    (TG_FAILED_EVENT_LIMIT, "event above the limit"),
    (TG_FAILED_DESCRIPTORS, "too many descriptors"),
    (TG_FAILED_NEW_LABEL, "a new object's context is not permitted"),
    (TG_FAILED_SCRATCH, "too many decisions at once"),
    (TG_FAILED_OWNERS_FULL, "who set a file's owner is not known"),
    (TG_FAILED_OBJECTS_FULL, "who made an object without inode is not known"),
    (TG_FAILED_SOCKET_STORAGE, "no storage of a socket"),
    (TG_FAILED_LABELS_LOST, "a label lost in a crash (tollgate label lost)"),
    (TG_FAILED_SHADOW, "shadow policy not asked"),
    (TG_FAILED_NOT_LABELLED, "a file that could not be labelled (the journal names it)"),
    (TG_FAILED_CONNECTIONS, "a connection from a network that has begun too many, each with another level"),
    (TG_FAILED_NAMESPACES, "too many network namespaces: a socket is denied in a new one"),
    (TG_FAILED_AWAITED, "packets have no labels yet in a new network namespace: nothing is sent or received there"),
    (TG_FAILED_UNIT, "a unit's context that is none (tollgate unit list)"),
    (TG_FAILED_SHARE + TG_ROOM_CREDENTIALS, "above a share of credentials"),
    (TG_FAILED_SHARE + TG_ROOM_LABELS, "above a share of labels"),
    (TG_FAILED_SHARE + TG_ROOM_OBJECTS, "above a share of objects"),
    (TG_FAILED_SHARE + TG_ROOM_OWNERS, "above a share of owners"),
];

/// The name that belongs to a number, or `number N`.
fn name(names: &[(u32, &str)], number: usize) -> String {
    let name = names.iter().find(|(own, _)| *own as usize == number).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("number {number}"))
}

/// Reported for labels that are not in an attribute of their file.
const UNWRITTEN: &str = "a label not written to its file";

/// All failures with a count above 0, by name. `unwritten` is the number of labels that are not in their files.
pub fn failures(counts: &[u64], unwritten: u64) -> BTreeMap<String, u64> {
    let counts = counts.iter().enumerate().map(|(number, count)| (name(FAILURES, number), *count));
    counts.chain([(UNWRITTEN.to_owned(), unwritten)]).filter(|(_, count)| *count > 0).collect()
}

/// The name of an object manager (`enum tg_manager`).
pub fn manager(number: usize) -> String {
    name(tollgate_abi::MANAGERS, number)
}

/// What is enforced, since when, and what failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What happens when the policy denies something.
    pub mode: Mode,
    /// Path of the policy as the user named it.
    pub policy: String,
    /// Number of the policy generation in force, counted from 1 since enforcement began.
    pub generation: u32,
    /// When that generation was put in force, in seconds since 1970.
    pub generation_since: u64,
    /// When enforcement began, in seconds since 1970.
    pub since: u64,
    /// The daemon's process number.
    pub daemon: u32,
    /// The hooks of the kernel that have a program.
    pub hooks: Hooks,
    /// What the policy may deny though no hook of this kernel checks it, and labels that the policy gives to what
    /// cannot hold one.
    pub not_enforced: Vec<String>,
    /// When descriptors are checked.
    pub descriptors: Descriptors,
    /// Types of the permissive domains: what is denied to them is granted and audited.
    pub permissive: Vec<String>,
    /// When each of them became permissive, in seconds since 1970.
    #[serde(default)]
    pub permissive_since: BTreeMap<String, u64>,
    /// Types of the unconfined domains, for which nothing is checked.
    pub unconfined: Vec<String>,
    /// The policy that is checked beside the policy in force, if there is one.
    #[serde(default)]
    pub shadow: Option<Candidate>,
    /// What processes hold open or mapped although the policy in force denies it.
    #[serde(default)]
    pub revoked: Revoked,
    /// Number of processes that were killed because a mapping of theirs was taken away.
    #[serde(default)]
    pub killed: u64,
    /// Confined contexts that at least one process has or had.
    pub subjects: Vec<String>,
    /// How many contexts have a SID.
    pub contexts: u64,
    /// Whether every file that existed when enforcement began has its label.
    pub labelling_complete: bool,
    /// Number of denials and of acts that the policy audits, since enforcement began.
    pub events: u64,
    /// Failures by reason, with their number. A confined process was denied each time. Reasons that begin with `event`
    /// count denials that are missing from the log.
    pub failures: BTreeMap<String, u64>,
    /// The largest holders of each limited resource.
    #[serde(default)]
    pub shares: Vec<Held>,
    /// Whether denials go to the kernel's audit; `false`: to a file.
    pub audit: bool,
    /// Number of records that could not be written.
    pub audit_errors: u64,
    /// Why hooks do not run, or may not run; `None` while all is well.
    #[serde(default)]
    pub alarm: Option<AlarmStatus>,
    /// The last gaps in which hooks did not run, as far as this daemon has seen them.
    #[serde(default)]
    pub gaps: Vec<GapStatus>,
    /// Number of gaps since this daemon began.
    #[serde(default)]
    pub gaps_seen: u64,
    /// What should be confined and is not, with the reason.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Number of services that run confined as expected.
    #[serde(default)]
    pub confined: u64,
    /// The guard, if it runs beside the policy.
    #[serde(default)]
    pub guard: Option<GuardStatus>,
    /// What this node enforces of what its fleet has published; `None`: it belongs to no fleet.
    #[serde(default)]
    pub fleet: Option<Report>,
}

/// What is held open or mapped against the policy in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Number of descriptors. Reading or writing through them is denied.
    pub descriptors: u64,
    /// Number of mappings of files. Memory is used without a check.
    pub mappings: u64,
    /// Number of processes that hold either.
    pub processes: u64,
}

/// What the canary found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The canary was granted what must be denied: no hook runs.
    Off,
    /// The canary did not answer, so it is not known whether hooks run.
    Silent,
    /// No daemon was there to watch, or the daemon itself was frozen.
    Unwatched,
}

/// A problem that lasts. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmStatus {
    /// What the canary found.
    pub kind: Kind,
    /// When hooks ran for the last time, as far as is known.
    pub since: u64,
    /// The finding, the reason if it is known, and the remedy.
    pub text: String,
    /// Processes that may have left their confinement since then. They are dealt with when hooks run again.
    pub slipped: Vec<Slipped>,
}

/// A gap that has ended. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapStatus {
    /// What the canary had found.
    pub kind: Kind,
    /// When hooks ran for the last time before the gap.
    pub from: u64,
    /// When hooks ran again.
    pub to: u64,
    /// Processes that may have left their confinement in the gap.
    pub slipped: Vec<Slipped>,
    /// Processes of the machine that execute a program with a domain of its own, which they did not enter.
    pub not_entered: Vec<Slipped>,
}

/// Processes with the same name that lost the same label, or never got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slipped {
    /// Their name (`comm`), which they can choose.
    pub name: String,
    /// The context that they should have; the context of unlabelled objects if it is not known.
    pub context: String,
    /// What was done with them.
    pub fate: AfterGap,
    /// Their process numbers.
    pub processes: Vec<u32>,
}

impl fmt::Display for Slipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.fate {
            AfterGap::Confine => "confined again",
            AfterGap::Kill => "killed",
            AfterGap::Tell => "left alone",
        };
        let Self { name, context, processes, .. } = self;
        write!(f, "{} of {name}, which should have {context}: {done}:", counted(processes.len()))?;
        processes.iter().try_for_each(|process| write!(f, " {process}"))
    }
}

fn counted(processes: usize) -> String {
    if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") }
}

/// The hooks of enforcement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// Hooks with a program attached.
    pub attached: Vec<String>,
    /// Hooks without a program, at which no rule of this policy can deny anything.
    pub not_needed: Vec<String>,
}

/// The counters of one object manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Name of the object manager.
    pub name: String,
    /// Number of checks.
    pub asked: u64,
    /// Number of checks that a cache answered.
    pub cached: u64,
    /// Number of checks that the decision tables answered.
    pub tables: u64,
    /// Number of checks that were denied.
    pub denied: u64,
}
