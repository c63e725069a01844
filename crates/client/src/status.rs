//! What the daemon tells of enforcement.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use tollgate_abi::enforcer::{
    TG_FAILED_CREDENTIALS, TG_FAILED_DESCRIPTORS, TG_FAILED_EVENT_LIMIT, TG_FAILED_EVENT_LOST, TG_FAILED_INODE_STORAGE,
    TG_FAILED_LABELS_FULL, TG_FAILED_LABELS_LOST, TG_FAILED_LEVELS_FULL, TG_FAILED_NEW_LABEL, TG_FAILED_NO_CONTEXT,
    TG_FAILED_NO_GENERATION, TG_FAILED_NO_LABEL, TG_FAILED_NOT_LABELLED, TG_FAILED_OBJECTS_FULL, TG_FAILED_OWNERS_FULL,
    TG_FAILED_SCRATCH, TG_FAILED_SHADOW, TG_FAILED_SHARE, TG_FAILED_SIDS_FULL, TG_FAILED_SOCKET_STORAGE,
    TG_FAILED_SUPERBLOCK, TG_FAILED_TASK_STORAGE, TG_FAILED_UNIT, TG_ROOM_CREDENTIALS, TG_ROOM_LABELS, TG_ROOM_OBJECTS,
    TG_ROOM_OWNERS,
};

use crate::{after_gap::AfterGap, descriptors::Descriptors, protocol::Mode, shadow::Candidate, shares::Held};

/// What can fail (`enum tg_failure`), for people.
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
    (TG_FAILED_UNIT, "a unit's context that is none (tollgate unit list)"),
    (TG_FAILED_SHARE + TG_ROOM_CREDENTIALS, "above a share of credentials"),
    (TG_FAILED_SHARE + TG_ROOM_LABELS, "above a share of labels"),
    (TG_FAILED_SHARE + TG_ROOM_OBJECTS, "above a share of objects"),
    (TG_FAILED_SHARE + TG_ROOM_OWNERS, "above a share of owners"),
];

/// The name of a place in an enumeration.
fn name(names: &[(u32, &str)], number: usize) -> String {
    let name = names.iter().find(|(own, _)| *own as usize == number).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("number {number}"))
}

/// The failure of labels that their files' attributes do not have.
const UNWRITTEN: &str = "a label not written to its file";

/// What failed at all, by name; `unwritten` labels are not in their files.
pub fn failures(counts: &[u64], unwritten: u64) -> BTreeMap<String, u64> {
    let counts = counts.iter().enumerate().map(|(number, count)| (name(FAILURES, number), *count));
    counts.chain([(UNWRITTEN.to_owned(), unwritten)]).filter(|(_, count)| *count > 0).collect()
}

/// An object manager's name.
pub fn manager(number: usize) -> String {
    name(tollgate_abi::MANAGERS, number)
}

/// What is enforced, since when, and what went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What happens to what policy denies.
    pub mode: Mode,
    /// The policy as the user named it.
    pub policy: String,
    /// Which generation of policy is in force, counted from the first since enforcement began.
    pub generation: u32,
    /// Since when, in seconds since 1970.
    pub generation_since: u64,
    /// When enforcement began, likewise.
    pub since: u64,
    /// The daemon's process number.
    pub daemon: u32,
    /// The hooks of the kernel.
    pub hooks: Hooks,
    /// What the policy may deny and no hook of this kernel asks, and labels that it gives and nothing can hold.
    pub not_enforced: Vec<String>,
    /// When descriptors are asked about.
    pub descriptors: Descriptors,
    /// Domains whose denials are granted, and audited.
    pub permissive: Vec<String>,
    /// Since when each of them is, in seconds since 1970.
    #[serde(default)]
    pub permissive_since: BTreeMap<String, u64>,
    /// Domains that are asked nothing.
    pub unconfined: Vec<String>,
    /// The policy that is asked beside the one in force.
    #[serde(default)]
    pub shadow: Option<Candidate>,
    /// What processes have open or mapped though the policy in force denies it.
    #[serde(default)]
    pub revoked: Revoked,
    /// Processes that were killed because of memory that was taken away.
    #[serde(default)]
    pub killed: u64,
    /// Confined contexts that a process has or had.
    pub subjects: Vec<String>,
    /// How many contexts have a SID.
    pub contexts: u64,
    /// Whether all that was there when enforcement began has its label.
    pub labelling_complete: bool,
    /// Denials, and acts that policy wants audited, since enforcement began.
    pub events: u64,
    /// Why something failed, and how often; a confined process was denied each time. What `event` begins are denials that
    /// are in no log.
    pub failures: BTreeMap<String, u64>,
    /// Who holds most of what all need.
    #[serde(default)]
    pub shares: Vec<Held>,
    /// Whether denials go to the kernel's audit; else to a file.
    pub audit: bool,
    /// Records that could not be written.
    pub audit_errors: u64,
    /// Why hooks do not run, or are not known to, as long as that lasts.
    #[serde(default)]
    pub alarm: Option<AlarmStatus>,
    /// When that was so, and is over: the last ones that this daemon has seen.
    #[serde(default)]
    pub gaps: Vec<GapStatus>,
    /// How often that was so since this daemon began.
    #[serde(default)]
    pub gaps_seen: u64,
    /// What should be confined and is not, and why.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Services that are confined as they should be.
    #[serde(default)]
    pub confined: u64,
}

/// How much is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Descriptors: what is done by them is denied.
    pub descriptors: u64,
    /// Mappings of files: memory, which is used without asking.
    pub mappings: u64,
    /// Processes that have either.
    pub processes: u64,
}

/// What is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The canary was granted what must be denied: no hook runs.
    Off,
    /// It did not answer, so nobody knows.
    Silent,
    /// No daemon was there to ask, or it was frozen itself.
    Unwatched,
}

/// What the canary has found. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmStatus {
    /// What it is.
    pub kind: Kind,
    /// When hooks ran for the last time, as far as is known.
    pub since: u64,
    /// What it is, why, and what to do.
    pub text: String,
    /// Who may have slipped out of confinement meanwhile, and is dealt with when hooks run again.
    pub slipped: Vec<Slipped>,
}

/// What is over. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapStatus {
    /// What it was.
    pub kind: Kind,
    /// When hooks ran for the last time before.
    pub from: u64,
    /// When they ran again.
    pub to: u64,
    /// Who may have slipped out of confinement meanwhile.
    pub slipped: Vec<Slipped>,
    /// Processes of the machine's that execute what has a domain of its own, which they did not enter.
    pub not_entered: Vec<Slipped>,
}

/// Processes of one name that have lost one label, or never got it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slipped {
    /// Their name, as they say themselves.
    pub name: String,
    /// The context that they should have; unlabelled where it is not known.
    pub context: String,
    /// What became of them.
    pub fate: AfterGap,
    /// Their numbers.
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

/// Where enforcement is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// Hooks with a program.
    pub attached: Vec<String>,
    /// Hooks at which no rule of this policy can deny anything.
    pub not_needed: Vec<String>,
}

/// How often one object manager was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// Questions.
    pub asked: u64,
    /// Those that a cache answered.
    pub cached: u64,
    /// Those that the tables answered.
    pub tables: u64,
    /// Those that were answered with no.
    pub denied: u64,
}
