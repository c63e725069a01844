//! What clients request: whether they may, which the policy in force decides, and what is done then.
//!
//! The checks are those of SELinux's hooks and of selinuxfs. A change of enforcement also needs root, as the file modes
//! of selinuxfs do.

mod containers;
mod fleet;
mod sockets;

use std::{
    fs::File,
    io::Read,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use tollgate_abi::enforcer::{SECINITSID_SECURITY, TG_SID_MACHINE, TG_TASK_MIXED, tg_task};
use tollgate_client::{
    protocol::{Attribute, Network, Refusal, Reply, Request},
    sanity,
    status::Status,
};

use super::{
    fleet::Fleet,
    machine::{Labels, Machine, Permission, With},
    object::Object,
    peer::Peer,
};
use crate::{contexts::Sid, shares::Holder};

/// The maximum size of a file of sanity questions, in bytes.
const MAX_SANITY_SIZE: u64 = 1 << 20;

/// The result of a request.
pub(crate) struct Answer {
    /// The reply to the client.
    pub(crate) reply: Reply,
    /// Whether the daemon must end, because enforcement was ended.
    pub(crate) stopped: bool,
    /// Whether statistics are counted while the client is connected; `None`: as before.
    pub(crate) counts: Option<bool>,
}

/// Does what a client requests, or refuses it with a reason.
pub(crate) fn answer(
    machine: &mut dyn Machine,
    fleet: &mut Result<Fleet, Refusal>,
    peer: &Peer,
    request: Request,
    with: Vec<OwnedFd>,
) -> Answer {
    let stop = request == Request::Stop;
    let counts = if let Request::Count(on) = request { Some(on) } else { None };
    let reply = expect_descriptors(&request, with.len())
        .and_then(|()| Order::of(machine, fleet, peer))
        .and_then(|mut order| order.run(request, with));
    Answer { stopped: stop && reply.is_ok(), counts: counts.filter(|_| reply.is_ok()), reply }
}

/// The SID of a process. The machine's processes have no entry.
pub(crate) fn sid_of(task: Option<tg_task>) -> Sid {
    task.map_or(TG_SID_MACHINE, |task| task.sid)
}

fn expect_descriptors(request: &Request, came: usize) -> Result<(), Refusal> {
    let expected = request.descriptors();
    if expected.contains(&came) {
        return Ok(());
    }
    let (least, most) = (expected.start(), expected.end());
    let text = if least == most { least.to_string() } else { format!("{least} to {most}") };
    Err(Refusal::new(libc::EINVAL, format!("{came} descriptors came with the request, expected {text}")))
}

/// A request and its client.
struct Order<'a> {
    machine: &'a mut dyn Machine,
    fleet: &'a mut Result<Fleet, Refusal>,
    peer: &'a Peer,
    task: Option<tg_task>,
    sid: Sid,
    unconfined: bool,
    /// Whether threads of the process have different contexts.
    mixed: bool,
}

impl<'a> Order<'a> {
    fn of(
        machine: &'a mut dyn Machine,
        fleet: &'a mut Result<Fleet, Refusal>,
        peer: &'a Peer,
    ) -> Result<Self, Refusal> {
        let task = machine.task(peer.process())?;
        let sid = sid_of(task);
        if sid != peer.sid {
            let text = "the context of this process has changed since it connected: connect again";
            return Err(Refusal::new(libc::EAGAIN, text));
        }
        let mixed = task.is_some_and(|task| task.flags & TG_TASK_MIXED != 0);
        let unconfined = !mixed && machine.is_unconfined(sid);
        Ok(Self { machine, fleet, peer, task, sid, unconfined, mixed })
    }

    fn run(&mut self, request: Request, mut with: Vec<OwnedFd>) -> Reply {
        let first =
            |with: &mut Vec<OwnedFd>| with.drain(..).next().ok_or_else(|| Refusal::new(libc::EBADF, "no descriptor"));
        match request {
            Request::Status => {
                let fleet = self.fleet.as_ref().ok().map(|fleet| fleet.report(self.machine)).transpose()?;
                Ok(vec![json(&Status { fleet, ..self.machine.status()? })?])
            }
            Request::Why(hook) => self.report(|machine| machine.why(hook.as_deref())),
            Request::Mode => Ok(vec![self.machine.mode().to_string()]),
            Request::SetMode { mode, domain } => {
                self.administrator(&["setenforce"])?;
                self.machine.set_mode(mode, domain.as_deref())?;
                Ok(vec![])
            }
            Request::Reload { accept_missing } => self.reload(accept_missing, with),
            Request::Stop => {
                self.administrator(&["setenforce", "load_policy"])?;
                self.machine.stop()?;
                Ok(vec![])
            }
            Request::Get(attribute) => self.get(attribute, with.first().map(AsFd::as_fd)),
            Request::Sid { attribute, context } => self.sid(attribute, &context),
            Request::Text(sid) => {
                let unknown = || Refusal::new(libc::ENOENT, format!("no context has the SID {sid}"));
                Ok(vec![self.machine.text(sid).ok_or_else(unknown)?])
            }
            Request::Access { source, target, class } => {
                self.administrator(&["compute_av"])?;
                self.machine.access(&source, &target, &class)
            }
            Request::Peer { from } => self.peer_of(first(&mut with)?.as_fd(), from),
            Request::Act(acting) => self.act(first(&mut with)?.as_fd(), acting),
            Request::Label => self.label(first(&mut with)?.as_fd()),
            Request::SetLabel(context) => self.set_label(first(&mut with)?.as_fd(), &context),
            Request::DefaultLabel => {
                let label = self.machine.default_label(first(&mut with)?.as_fd())?;
                Ok(vec![label.unwrap_or_default()])
            }
            Request::StartShadow => {
                self.administrator(&["load_policy"])?;
                self.machine.start_shadow(regular(first(&mut with)?)?)
            }
            Request::StopShadow => {
                self.administrator(&["load_policy"])?;
                self.machine.stop_shadow()?;
                Ok(vec![])
            }
            Request::Shadow => {
                self.administrator(&["read_policy"])?;
                let report = self.machine.shadow()?;
                Ok(vec![report.map_or_else(|| Ok(String::new()), |report| json(&report))?])
            }
            Request::Units => self.report(|machine| machine.units()),
            Request::Network(network) => {
                self.administrator(&["read_policy"])?;
                Ok(vec![match network {
                    Network::Report => json(&self.machine.network()?)?,
                    Network::Trace(after) => json(&self.machine.trace(after)?)?,
                    Network::Peers => json(&self.machine.flows()?)?,
                }])
            }
            Request::Containers(asked) => self.containers(asked, &with),
            Request::Fleet(asked) => self.fleet(asked, with),
            Request::Services => self.report(|machine| machine.services()),
            Request::AcceptServices => {
                self.administrator(&["setenforce"])?;
                self.machine.accept_services()?;
                Ok(vec![])
            }
            Request::Statistics => Ok(vec![json(&self.machine.statistics())?]),
            Request::Count(on) => {
                self.administrator(&["setsecparam"])?;
                // Counting ends when no client wants it any more (Daemon::run).
                if on {
                    self.machine.count(true);
                }
                Ok(vec![])
            }
        }
    }

    /// Checks a permission for the client, as avc_has_perm does.
    fn may(&mut self, target: Sid, class: &str, permission: &str) -> Result<(), Refusal> {
        if self.unconfined {
            return Ok(());
        }
        if self.mixed {
            let text = "threads of this process have different contexts: which of them asks is not known";
            return Err(Refusal::new(libc::EPERM, text));
        }
        self.ask(self.sid, target, class, permission)
    }

    fn ask(&mut self, source: Sid, target: Sid, class: &str, permission: &str) -> Result<(), Refusal> {
        let unknown = || Refusal::new(libc::EACCES, format!("no object manager knows {class} {permission}"));
        let asked = Permission::find(class, permission).ok_or_else(unknown)?;
        if self.machine.check(source, target, asked, self.peer.pid)? {
            return Ok(());
        }
        let mut text = |sid| self.machine.text(sid).unwrap_or_else(|| format!("SID {sid}"));
        let (source, target) = (text(source), text(target));
        Err(Refusal::new(libc::EACCES, format!("the policy does not allow {source} {target} {class} {permission}")))
    }

    /// Checks that the client may change what is enforced: it must be root, with these permissions of class security.
    fn administrator(&mut self, permissions: &[&str]) -> Result<(), Refusal> {
        if !self.peer.is_root() {
            return Err(Refusal::new(libc::EPERM, "only root may do this"));
        }
        permissions.iter().try_for_each(|permission| self.may(SECINITSID_SECURITY, "security", permission))
    }

    /// What the machine reports to those who may read the policy.
    fn report<T: serde::Serialize>(&mut self, of: impl FnOnce(&mut dyn Machine) -> Result<T, Refusal>) -> Reply {
        self.administrator(&["read_policy"])?;
        Ok(vec![json(&of(self.machine)?)?])
    }

    /// sel_write_load.
    fn reload(&mut self, accept_missing: bool, with: Vec<OwnedFd>) -> Reply {
        self.administrator(&["load_policy"])?;
        let mut files = with.into_iter().map(regular);
        let policy = files.next().unwrap_or_else(|| Err(Refusal::new(libc::EBADF, "no descriptor")))?;
        let questions = match files.next() {
            Some(file) => {
                let mut text = String::new();
                let unreadable = |cause| Refusal::new(libc::EIO, format!("cannot read the sanity questions: {cause}"));
                file?.take(MAX_SANITY_SIZE).read_to_string(&mut text).map_err(unreadable)?;
                sanity::parse(&text).map_err(|cause| Refusal::new(libc::EINVAL, cause.to_string()))?
            }
            None => Vec::new(),
        };
        let generation = self.machine.reload(policy, With::default(), accept_missing, &questions)?;
        Ok(vec![generation.to_string()])
    }

    /// selinux_getprocattr.
    fn get(&mut self, attribute: Attribute, process: Option<BorrowedFd<'_>>) -> Reply {
        let task = match process {
            Some(process) => {
                let task = self.machine.task(process)?;
                if !self.peer.has(process) {
                    self.may(task.map_or(TG_SID_MACHINE, |task| task.sid), "process", "getattr")?;
                }
                task
            }
            None => self.task,
        };
        let machine = tg_task { sid: TG_SID_MACHINE, old_sid: TG_SID_MACHINE, ..tg_task::default() };
        let sid = of_task(&task.unwrap_or(machine), attribute);
        if sid == 0 {
            return Ok(vec![String::new()]);
        }
        Ok(vec![self.machine.text(sid).ok_or_else(|| Refusal::new(libc::EINVAL, format!("SID {sid} has no context")))?])
    }

    /// The first half of selinux_setprocattr. The hook task_prctl does the rest (bpf/attribute.h).
    fn sid(&mut self, attribute: Attribute, context: &str) -> Reply {
        let permission = match attribute {
            Attribute::Current => "setcurrent",
            Attribute::Exec => "setexec",
            Attribute::FsCreate => "setfscreate",
            Attribute::KeyCreate => "setkeycreate",
            Attribute::SockCreate => "setsockcreate",
            Attribute::Previous => return Err(Refusal::new(libc::EINVAL, "the previous context cannot be set")),
        };
        self.may(self.sid, "process", permission)?;
        let sid = match attribute {
            Attribute::FsCreate => self.intern_or_defer(context)?,
            _ => self.intern(context)?,
        };
        Ok(vec![sid.to_string()])
    }

    /// The SID of a context. Only root may take the last free ones, because root and the kernel need them.
    fn intern(&mut self, context: &str) -> Result<Sid, Refusal> {
        self.machine.intern(context, self.peer.is_root())
    }

    /// The SID of a context for files. A domain with `mac_admin` may name one that no policy has yet (has_cap_mac_admin).
    /// An unconfined domain may not: nothing is checked for it, and it is most likely mistaken.
    fn intern_or_defer(&mut self, context: &str) -> Result<Sid, Refusal> {
        match self.intern(context) {
            Err(refusal) if refusal.errno == libc::EINVAL => {
                let may = !self.unconfined
                    && self.peer.has_mac_admin()
                    && self.may(self.sid, "capability2", "mac_admin").is_ok();
                if may { self.machine.defer(context, self.peer.is_root()) } else { Err(refusal) }
            }
            known => known,
        }
    }

    /// The context of a label that no policy has yet, for a domain that may give such labels. A denial is not audited.
    fn undefined(&mut self, label: Sid) -> Option<String> {
        let context = self.machine.undefined(label)?;
        if self.unconfined || self.mixed || !self.peer.has_mac_admin() {
            return None;
        }
        let own = self.machine.text(self.sid)?;
        let may = self.machine.access(&own, &own, "capability2").ok()?;
        may.iter().any(|permission| permission == "mac_admin").then_some(context)
    }

    /// selinux_inode_getsecurity, which checks nothing: a process that reads attributes has passed inode_getxattr.
    fn label(&mut self, object: BorrowedFd<'_>) -> Reply {
        let by_mode = Object::of(object)?.class;
        let Labels { object: label, class, .. } = self.machine.labels(object)?;
        self.may(label, class.unwrap_or(by_mode), "getattr")?;
        if let Some(context) = self.undefined(label) {
            return Ok(vec![context]);
        }
        Ok(vec![self.machine.text(label).ok_or_else(|| Refusal::new(libc::ENODATA, "it has no label"))?])
    }

    /// selinux_inode_setxattr.
    fn set_label(&mut self, object: BorrowedFd<'_>, context: &str) -> Reply {
        let Object { class: by_mode, owner, .. } = Object::of(object)?;
        let old = self.machine.labels(object)?;
        if let Some(reason) = old.fixed {
            return Err(Refusal::new(libc::EOPNOTSUPP, reason));
        }
        if !self.peer.is_root() && self.peer.uid != owner {
            return Err(Refusal::new(libc::EPERM, "only the owner and root may label it"));
        }
        let class = old.class.unwrap_or(by_mode);
        self.may(old.object, class, "relabelfrom")?;
        let new = self.intern_or_defer(context)?;
        self.may(new, class, "relabelto")?;
        if !self.unconfined {
            self.validate(old.object, new, class)?;
            self.ask(new, old.filesystem, "filesystem", "associate")?;
        }
        let holder = Holder::of(self.peer.uid, self.sid, self.unconfined);
        self.machine.set_label(holder, object, new)?;
        Ok(vec![self.machine.text(old.object).unwrap_or_default()])
    }

    fn validate(&mut self, old: Sid, new: Sid, class: &str) -> Result<(), Refusal> {
        let number = Permission::find(class, "relabelto").map_or(0, |permission| permission.class);
        if self.machine.validate(old, new, self.sid, number)? {
            return Ok(());
        }
        Err(Refusal::new(libc::EPERM, format!("a constraint (validatetrans) of class {class} forbids this new label")))
    }
}

fn of_task(task: &tg_task, attribute: Attribute) -> Sid {
    match attribute {
        Attribute::Current => task.sid,
        Attribute::Previous => task.old_sid,
        Attribute::Exec => task.exec_sid,
        Attribute::FsCreate => task.create_sid,
        Attribute::KeyCreate => task.key_create_sid,
        Attribute::SockCreate => task.socket_create_sid,
    }
}

/// Accepts a regular file only. Reading any other file could keep the daemon waiting.
fn regular(descriptor: OwnedFd) -> Result<File, Refusal> {
    if Object::of(descriptor.as_fd())?.class == "file" {
        return Ok(descriptor.into());
    }
    Err(Refusal::new(libc::EINVAL, "the descriptor is not of a regular file"))
}

fn json(value: &impl serde::Serialize) -> Result<String, Refusal> {
    serde_json::to_string(value).map_err(|cause| Refusal::new(libc::EIO, cause.to_string()))
}
