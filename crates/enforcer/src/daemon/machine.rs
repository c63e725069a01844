//! What the daemon's server needs of the running enforcement: the interface between orders and the kernel.

use std::{
    fs::File,
    net::SocketAddr,
    os::fd::{BorrowedFd, RawFd},
    path::{Path, PathBuf},
    time::Instant,
};

use tollgate_abi::enforcer::{tg_socket, tg_task};
use tollgate_audit::Load;
use tollgate_client::{
    containers, network,
    protocol::{Mode, Refusal},
    sanity::Question,
    services::Service,
    shadow::Report,
    status::{Manager, Status},
    units::Unit,
    why::Why,
};

use crate::{containers::Container, contexts::Sid, shares::Holder};

/// A permission of a class, in the object managers' numbers (classes.txt).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// Number of the class, from 1.
    pub class: u32,
    /// Bit of the permission.
    pub vector: u32,
}

impl Permission {
    /// The permission with these names; `None`: classes.txt does not have it.
    #[must_use]
    pub fn find(class: &str, permission: &str) -> Option<Self> {
        let (number, class) = (1..).zip(tollgate_abi::CLASSES).find(|(_, own)| own.name == class)?;
        let bit = class.permissions.iter().position(|own| *own == permission)?;
        Some(Self { class: number, vector: 1 << bit })
    }
}

/// The labels of an object and of its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels {
    /// The object's label.
    pub object: Sid,
    /// The class of a socket, an anonymous inode or a file in memory; `None`: the one of its mode.
    pub class: Option<&'static str>,
    /// The label of its file system.
    pub filesystem: Sid,
    /// Why the object's cannot be set; `None`: it can.
    pub fixed: Option<&'static str>,
}

/// The files of what a fleet puts in force beside the policy; `None`: the machine's own file counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    /// The guard's database.
    pub guard: Option<PathBuf>,
    /// Which networks' packets have labels.
    pub network: Option<PathBuf>,
}

/// The descriptors of [`Machine::wakes`] that are readable. Others are not read: an idle daemon wakes once per second, and
/// each read would be a system call.
#[derive(Debug, Clone, Default)]
pub struct Ready(pub Vec<RawFd>);

impl Ready {
    /// Whether a descriptor is among them.
    #[must_use]
    pub fn has(&self, wake: Option<RawFd>) -> bool {
        wake.is_some_and(|wake| self.0.contains(&wake))
    }
}

/// Which of the guard's databases is put in force with a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Database<'d> {
    /// The one that is.
    #[default]
    Present,
    /// The machine's own.
    Own,
    /// That of a file.
    Of(&'d Path),
}

impl<'d> Database<'d> {
    /// That of a file; `None`: the machine's own.
    #[must_use]
    pub fn of(file: Option<&'d Path>) -> Self {
        file.map_or(Self::Own, Self::Of)
    }
}

/// What is put in force with a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct With<'w> {
    /// The file of labelled networks; `None`: the machine's own.
    pub network: Option<&'w Path>,
    /// The guard's database.
    pub guard: Database<'w>,
}

/// Running enforcement.
pub trait Machine {
    /// Descriptors that wake the daemon.
    fn wakes(&self) -> Vec<RawFd>;
    /// Called when one of them is readable, and once per second.
    fn wake(&mut self, ready: &Ready);
    /// When to call `wake` next, if that is sooner than in a second.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Does what is necessary before the daemon ends.
    fn end(&mut self);
    /// Reads the policy that the daemon was started with again, and puts it in force (SIGHUP).
    fn reread(&mut self, guard: Database<'_>) -> Result<u32, Refusal>;

    /// The contexts of a process; `None`: the machine's.
    fn task(&mut self, process: BorrowedFd<'_>) -> Result<Option<tg_task>, Refusal>;
    /// The user to whom a uid belongs; for a subordinate uid, the user who has it.
    fn main_user(&self, uid: u32) -> u32;
    /// Whether a domain is unconfined.
    fn is_unconfined(&mut self, sid: Sid) -> bool;
    /// Checks a permission in the kernel's tables, with the mode and audit in force, on behalf of a process.
    fn check(&mut self, source: Sid, target: Sid, permission: Permission, process: i32) -> Result<bool, Refusal>;
    /// Checks the constraints on new labels (validatetrans).
    fn validate(&mut self, old: Sid, new: Sid, task: Sid, class: u32) -> Result<bool, Refusal>;
    /// The SID of a context. A new context is given a SID. Unless `all` is set, that is refused once half of them are
    /// used.
    fn intern(&mut self, context: &str, all: bool) -> Result<Sid, Refusal>;
    /// Likewise of a context that the policy in force does not have. Objects with it are unlabelled until a policy has it.
    fn defer(&mut self, context: &str, all: bool) -> Result<Sid, Refusal>;
    /// The context of a SID that [`Machine::defer`] has given, as long as no policy has it.
    fn undefined(&mut self, sid: Sid) -> Option<String>;
    /// The context of a SID.
    fn text(&mut self, sid: Sid) -> Option<String>;
    /// The names of the permissions that one context has on another.
    fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, Refusal>;

    /// The labels in force of an object and its file system.
    fn labels(&mut self, object: BorrowedFd<'_>) -> Result<Labels, Refusal>;
    /// The labels of a socket and of its peer; `None`: neither is known.
    fn socket(&mut self, socket: BorrowedFd<'_>) -> Result<Option<tg_socket>, Refusal>;
    /// The label that a datagram socket has received last from a sender; `None`: nothing was heard of it.
    fn heard(&mut self, socket: BorrowedFd<'_>, sender: SocketAddr) -> Result<Option<Sid>, Refusal>;
    /// Sets another label permanently. It counts in the share of `holder`.
    fn set_label(&mut self, holder: Holder, object: BorrowedFd<'_>, label: Sid) -> Result<(), Refusal>;
    /// The label that the policy's `file_contexts` give.
    fn default_label(&mut self, object: BorrowedFd<'_>) -> Result<Option<String>, Refusal>;

    /// The status of enforcement.
    fn status(&mut self) -> Result<Status, Refusal>;
    /// Why hooks have programs, or have none: one, or all that have a program.
    fn why(&mut self, hook: Option<&str>) -> Result<Vec<Why>, Refusal>;
    /// The mode of all domains that have none of their own.
    fn mode(&self) -> Mode;
    /// Sets the mode, of all domains or of one.
    fn set_mode(&mut self, mode: Mode, domain: Option<&str>) -> Result<(), Refusal>;
    /// Puts a built policy in force, with what belongs to it: whenever the daemon is killed, all of it is in force or
    /// nothing. If a sanity question is answered wrongly, what was in force before is put back.
    fn reload(
        &mut self,
        policy: File,
        with: With<'_>,
        accept_missing: bool,
        questions: &[Question],
    ) -> Result<u32, Refusal>;
    /// What is in force beside the policy, as read back from the kernel's memory.
    fn beside(&mut self) -> Beside;
    /// Makes a built policy the candidate. Returns the contexts in use that it does not permit.
    fn start_shadow(&mut self, policy: File) -> Result<Vec<String>, Refusal>;
    /// Stops checking the candidate.
    fn stop_shadow(&mut self) -> Result<(), Refusal>;
    /// What the candidate would have decided otherwise.
    fn shadow(&mut self) -> Result<Option<Report>, Refusal>;
    /// Ends enforcement.
    fn stop(&mut self) -> Result<(), Refusal>;
    /// The units that have a context, as unit files are now.
    fn units(&mut self) -> Result<Vec<Unit>, Refusal>;
    /// The context and label that a container gets whose first process this is ([`Enforcer::name_container`]).
    ///
    /// [`Enforcer::name_container`]: crate::enforcer::Enforcer::name_container
    fn name_container(&mut self, process: BorrowedFd<'_>, names: [&str; 2], caller: i32) -> Result<Container, Refusal>;
    /// Puts them in force. `root`: the directory that will be the container's root.
    fn contain(&mut self, container: &Container, root: Option<BorrowedFd<'_>>) -> Result<(), Refusal>;
    /// Takes back the contexts of containers that have ended.
    fn sweep_containers(&mut self) -> Result<(), Refusal>;
    /// The containers that have a context.
    fn containers(&mut self) -> Result<Vec<containers::Container>, Refusal>;
    /// Which networks are labelled, and what became of packets.
    fn network(&mut self) -> Result<network::Report, Refusal>;
    /// The flows of sockets that have labels.
    fn flows(&mut self) -> Result<network::Flows, Refusal>;
    /// The last packets that were denied or dropped, after the one with this number.
    fn trace(&mut self, after: u64) -> Result<Vec<network::Traced>, Refusal>;
    /// Services as expected and as they run.
    fn services(&mut self) -> Result<Vec<Service>, Refusal>;
    /// Makes what runs now what is expected of each service.
    fn accept_services(&mut self) -> Result<(), Refusal>;
    /// The decision tables in force, or those of the candidate, as read back from the kernel's memory; `None`: there are
    /// none.
    fn tables(&self, candidate: bool) -> Option<Vec<u8>>;
    /// How many denials there have been since the daemon began: what was granted all the same in the permissive mode, and
    /// what the candidate would have denied, are counted as well.
    fn denials(&mut self) -> u64;
    /// Records in the audit log what became of a fleet's generation.
    fn record(&mut self, load: Load);
    /// The counters of the object managers.
    fn statistics(&mut self) -> Vec<Manager>;
    /// Switches the counters on or off. Called in each turn.
    fn count(&mut self, on: bool);
}
