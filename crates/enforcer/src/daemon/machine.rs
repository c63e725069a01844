//! What the daemon needs of the enforcement that is on: the seam between orders and the kernel.

use std::{
    fs::File,
    os::fd::{BorrowedFd, RawFd},
    time::Instant,
};

use tollgate_abi::enforcer::tg_task;
use tollgate_client::{
    protocol::{Mode, Refusal},
    sanity::Question,
    services::Service,
    shadow::Report,
    status::{Manager, Status},
    units::Unit,
};

use crate::{contexts::Sid, shares::Holder};

/// A permission of a class, in the object managers' numbers (classes.txt).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// The class, from 1.
    pub class: u32,
    /// The permission's bit.
    pub vector: u32,
}

impl Permission {
    /// That of these names; `None` where classes.txt has none.
    #[must_use]
    pub fn find(class: &str, permission: &str) -> Option<Self> {
        let (number, class) = (1..).zip(tollgate_abi::CLASSES).find(|(_, own)| own.name == class)?;
        let bit = class.permissions.iter().position(|own| *own == permission)?;
        Some(Self { class: number, vector: 1 << bit })
    }
}

/// An object's label and its file system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels {
    /// The object's.
    pub object: Sid,
    /// The object's class, of a socket and of what else has one that its mode does not tell.
    pub class: Option<&'static str>,
    /// The file system's.
    pub filesystem: Sid,
    /// Why the object's cannot be set; `None`: it can.
    pub fixed: Option<&'static str>,
}

/// Enforcement that is on.
pub trait Machine {
    /// Descriptors to wake up for.
    fn wakes(&self) -> Vec<RawFd>;
    /// What is to be done when one of them can be read, and once a second.
    fn wake(&mut self);
    /// When it wants to be woken, if that is sooner than once a second.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Does what is to be done before the daemon ends.
    fn end(&mut self);
    /// Puts the policy that the daemon was started with in force again, as it is now (SIGHUP).
    fn reread(&mut self) -> Result<u32, Refusal>;

    /// A process's contexts; `None`: the machine's.
    fn task(&mut self, process: BorrowedFd<'_>) -> Result<Option<tg_task>, Refusal>;
    /// The user whom a uid belongs to: of a subordinate one who has it.
    fn main_user(&self, uid: u32) -> u32;
    /// Whether a domain is asked nothing.
    fn is_unconfined(&mut self, sid: Sid) -> bool;
    /// Asks the kernel's tables, with audit and in the mode that is in force, for a process of this number.
    fn check(&mut self, source: Sid, target: Sid, permission: Permission, process: i32) -> Result<bool, Refusal>;
    /// Asks the constraints on new labels (validatetrans).
    fn validate(&mut self, old: Sid, new: Sid, task: Sid, class: u32) -> Result<bool, Refusal>;
    /// A context's SID; a new one is given, or, unless all that are free may be taken, only as long as half of them are.
    fn intern(&mut self, context: &str, all: bool) -> Result<Sid, Refusal>;
    /// What a SID stands for.
    fn text(&mut self, sid: Sid) -> Option<String>;
    /// The names of what a context may do to another.
    fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, Refusal>;

    /// What labels are in force.
    fn labels(&mut self, object: BorrowedFd<'_>) -> Result<Labels, Refusal>;
    /// Puts another label in force, for good; it is in the share of `holder`.
    fn set_label(&mut self, holder: Holder, object: BorrowedFd<'_>, label: Sid) -> Result<(), Refusal>;
    /// The label that the policy's file_contexts give.
    fn default_label(&mut self, object: BorrowedFd<'_>) -> Result<Option<String>, Refusal>;

    /// What is enforced.
    fn status(&mut self) -> Result<Status, Refusal>;
    /// The mode.
    fn mode(&self) -> Mode;
    /// Sets the mode, of all or of a domain.
    fn set_mode(&mut self, mode: Mode, domain: Option<&str>) -> Result<(), Refusal>;
    /// Puts a built policy in force, and takes it back when it answers a question otherwise.
    fn reload(&mut self, policy: File, accept_missing: bool, questions: &[Question]) -> Result<u32, Refusal>;
    /// Has a built policy asked beside the one in force: the contexts in use that it does not permit.
    fn start_shadow(&mut self, policy: File) -> Result<Vec<String>, Refusal>;
    /// Asks it no longer.
    fn stop_shadow(&mut self) -> Result<(), Refusal>;
    /// What it would have decided otherwise.
    fn shadow(&mut self) -> Result<Option<Report>, Refusal>;
    /// Ends enforcement.
    fn stop(&mut self) -> Result<(), Refusal>;
    /// The units that have a context, as unit files are now.
    fn units(&mut self) -> Result<Vec<Unit>, Refusal>;
    /// Services as they should be and as they are.
    fn services(&mut self) -> Result<Vec<Service>, Refusal>;
    /// Takes what runs for what should.
    fn accept_services(&mut self) -> Result<(), Refusal>;
    /// Counts.
    fn statistics(&mut self) -> Vec<Manager>;
    /// Whether to count; said at each turn.
    fn count(&mut self, on: bool);
}
