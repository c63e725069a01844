//! A machine that enforces nothing: it answers as a test says, and remembers what it was asked.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Read,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, RawFd},
    path::Path,
    sync::{Arc, Mutex},
};

use tollgate_abi::enforcer::{TG_SID_MACHINE, TG_TASK_MIXED, tg_socket, tg_task};
use tollgate_audit::Load;
use tollgate_client::{
    containers, network,
    protocol::{Mode, Refusal},
    sanity::Question,
    services::Service,
    shadow::{Candidate, Report},
    status::{Manager, Status},
    units::Unit,
    why::{Kind, Reason, Why},
};
use tollgate_fleet::Hash;

use crate::{
    containers::Container,
    contexts::Sid,
    daemon::{
        machine::{Beside, Database, Labels, Machine, Permission, Ready, With},
        object::path_of,
    },
    shares::Holder,
};

/// The SID of the caller when it is confined.
pub(super) const CONFINED: Sid = 40;

/// What is known of a machine that enforces nothing: what was asked, what is allowed.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) confined: bool,
    pub(super) mixed: bool,
    pub(super) counting: bool,
    /// Whether a sanity question fails.
    pub(super) fails: bool,
    /// How many denials there have been.
    pub(super) denials: u64,
    /// The mode; `None`: permissive.
    mode: Option<Mode>,
    /// The paths of the policy in force and of the candidate, if others than in status.json.
    policy: Option<String>,
    shadow: Option<String>,
    pub(super) beside: Beside,
    /// Whether the guard runs.
    pub(super) guarded: bool,
    pub(super) peer: Sid,
    pub(super) class: Option<&'static str>,
    pub(super) fixed: Option<&'static str>,
    pub(super) allowed: BTreeSet<(Sid, Sid, String, String)>,
    pub(super) asked: Vec<(Sid, Sid, String, String)>,
    pub(super) done: Vec<String>,
    /// What was recorded of a fleet's generations.
    pub(super) records: Vec<String>,
}

impl Known {
    fn replace_guard(&mut self, database: Database<'_>) -> Result<(), Refusal> {
        let file = match database {
            Database::Present => return Ok(()),
            Database::Of(_) if !self.guarded => {
                return Err(Refusal::new(libc::ENODEV, "the guard does not run here"));
            }
            Database::Own => None,
            Database::Of(file) => Some(file.to_owned()),
        };
        self.beside.guard = file;
        Ok(())
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Pretended(pub(super) Arc<Mutex<Known>>);

impl Pretended {
    fn done(&self, what: impl Into<String>) {
        self.0.lock().unwrap().done.push(what.into());
    }
}

fn path(file: &File) -> String {
    path_of(file.as_fd()).unwrap().display().to_string()
}

impl Machine for Pretended {
    fn wakes(&self) -> Vec<RawFd> {
        Vec::new()
    }
    fn wake(&mut self, _: &Ready) {}
    fn end(&mut self) {
        self.done("end");
    }
    fn reread(&mut self, guard: Database<'_>) -> Result<u32, Refusal> {
        self.done("reread");
        let mut known = self.0.lock().unwrap();
        known.replace_guard(guard)?;
        (known.policy, known.beside.network) = (None, None);
        Ok(2)
    }
    fn task(&mut self, _: BorrowedFd<'_>) -> Result<Option<tg_task>, Refusal> {
        let known = self.0.lock().unwrap();
        let flags = if known.mixed { TG_TASK_MIXED } else { 0 };
        let confined = tg_task { sid: CONFINED, old_sid: 41, flags, ..tg_task::default() };
        let machine = tg_task { sid: TG_SID_MACHINE, flags, ..tg_task::default() };
        Ok(if known.confined { Some(confined) } else { known.mixed.then_some(machine) })
    }
    fn main_user(&self, uid: u32) -> u32 {
        uid
    }
    fn is_unconfined(&mut self, sid: Sid) -> bool {
        sid == TG_SID_MACHINE
    }
    fn check(&mut self, source: Sid, target: Sid, permission: Permission, _: i32) -> Result<bool, Refusal> {
        let class = tollgate_abi::class(permission.class).unwrap();
        let name = class.permissions[permission.vector.trailing_zeros() as usize];
        let question = (source, target, class.name.to_owned(), name.to_owned());
        let mut known = self.0.lock().unwrap();
        known.asked.push(question.clone());
        Ok(known.allowed.contains(&question))
    }
    fn validate(&mut self, old: Sid, new: Sid, task: Sid, _: u32) -> Result<bool, Refusal> {
        self.done(format!("validate {old} {new} {task}"));
        Ok(true)
    }
    fn intern(&mut self, context: &str, _: bool) -> Result<Sid, Refusal> {
        context
            .strip_prefix("sid")
            .and_then(|sid| sid.parse().ok())
            .ok_or_else(|| Refusal::new(libc::EINVAL, "no context"))
    }
    fn defer(&mut self, _: &str, _: bool) -> Result<Sid, Refusal> {
        Err(Refusal::new(libc::EINVAL, "no context"))
    }
    fn undefined(&mut self, _: Sid) -> Option<String> {
        None
    }
    fn text(&mut self, sid: Sid) -> Option<String> {
        (sid < 100).then(|| format!("sid{sid}"))
    }
    fn access(&mut self, _: &str, _: &str, _: &str) -> Result<Vec<String>, Refusal> {
        Ok(vec!["read".into(), "write".into()])
    }
    fn labels(&mut self, _: BorrowedFd<'_>) -> Result<Labels, Refusal> {
        let known = self.0.lock().unwrap();
        Ok(Labels { object: 50, class: known.class, filesystem: 60, fixed: known.fixed })
    }
    fn socket(&mut self, _: BorrowedFd<'_>) -> Result<Option<tg_socket>, Refusal> {
        Ok(Some(tg_socket { sid: 50, class: 0, peer: self.0.lock().unwrap().peer, labelled: 0 }))
    }
    fn heard(&mut self, _: BorrowedFd<'_>, sender: SocketAddr) -> Result<Option<Sid>, Refusal> {
        Ok((sender.port() == 53).then_some(53))
    }
    fn set_label(&mut self, _: Holder, _: BorrowedFd<'_>, label: Sid) -> Result<(), Refusal> {
        self.done(format!("label {label}"));
        Ok(())
    }
    fn default_label(&mut self, _: BorrowedFd<'_>) -> Result<Option<String>, Refusal> {
        Ok(None)
    }
    fn status(&mut self) -> Result<Status, Refusal> {
        let (status, known): (Status, _) =
            (serde_json::from_str(include_str!("status.json")).unwrap(), self.0.lock().unwrap());
        Ok(Status {
            mode: known.mode.unwrap_or(Mode::Permissive),
            policy: known.policy.clone().unwrap_or(status.policy),
            shadow: known.shadow.clone().map(|policy| Candidate { policy, since: 0 }),
            ..status
        })
    }
    fn why(&mut self, hook: Option<&str>) -> Result<Vec<Why>, Refusal> {
        let reasons = vec![Reason::new(Kind::Labels, "labels are kept there")];
        Ok(vec![Why { hook: hook.unwrap_or("all").to_owned(), attached: true, reasons }])
    }
    fn mode(&self) -> Mode {
        self.0.lock().unwrap().mode.unwrap_or(Mode::Permissive)
    }
    fn set_mode(&mut self, mode: Mode, domain: Option<&str>) -> Result<(), Refusal> {
        self.done(format!("mode {mode} {domain:?}"));
        if domain.is_none() {
            self.0.lock().unwrap().mode = Some(mode);
        }
        Ok(())
    }
    fn reload(
        &mut self,
        mut policy: File,
        With { network, guard }: With<'_>,
        accept: bool,
        questions: &[Question],
    ) -> Result<u32, Refusal> {
        if self.0.lock().unwrap().fails {
            return Err(Refusal::new(libc::EINVAL, "a sanity question fails: a b file read is denied"));
        }
        self.0.lock().unwrap().replace_guard(guard)?;
        self.0.lock().unwrap().policy = Some(path(&policy));
        self.0.lock().unwrap().beside.network = network.map(Path::to_owned);
        let mut bytes = Vec::new();
        policy.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap_or_else(|other| Hash::of(other.as_bytes()).to_string());
        self.done(format!("reload {text} {accept} {}", questions.len()));
        Ok(7)
    }
    fn beside(&mut self) -> Beside {
        self.0.lock().unwrap().beside.clone()
    }
    fn stop(&mut self) -> Result<(), Refusal> {
        self.done("stop");
        Ok(())
    }
    fn start_shadow(&mut self, policy: File) -> Result<Vec<String>, Refusal> {
        self.done("shadow");
        self.0.lock().unwrap().shadow = Some(path(&policy));
        Ok(Vec::new())
    }
    fn stop_shadow(&mut self) -> Result<(), Refusal> {
        self.done("no shadow");
        self.0.lock().unwrap().shadow = None;
        Ok(())
    }
    fn shadow(&mut self) -> Result<Option<Report>, Refusal> {
        Ok(None)
    }
    fn units(&mut self) -> Result<Vec<Unit>, Refusal> {
        Ok(Vec::new())
    }
    fn name_container(
        &mut self,
        _: BorrowedFd<'_>,
        [context, files]: [&str; 2],
        caller: i32,
    ) -> Result<Container, Refusal> {
        self.done(format!("name {context} {files} {}", caller == std::process::id() as i32));
        let named = |name: &str| Ok::<_, Refusal>((self.clone().intern(name, true)?, name.to_owned()));
        Ok(Container { cgroup: 7, context: named(context)?, files: named(files)? })
    }
    fn contain(&mut self, container: &Container, root: Option<BorrowedFd<'_>>) -> Result<(), Refusal> {
        self.done(format!("contain {} {} {}", container.context.0, container.files.0, root.is_some()));
        Ok(())
    }
    fn sweep_containers(&mut self) -> Result<(), Refusal> {
        self.done("sweep");
        Ok(())
    }
    fn containers(&mut self) -> Result<Vec<containers::Container>, Refusal> {
        Ok(Vec::new())
    }
    fn network(&mut self) -> Result<network::Report, Refusal> {
        Ok(network::Report::default())
    }
    fn flows(&mut self) -> Result<network::Flows, Refusal> {
        Ok(network::Flows::default())
    }
    fn trace(&mut self, _after: u64) -> Result<Vec<network::Traced>, Refusal> {
        Ok(Vec::new())
    }
    fn services(&mut self) -> Result<Vec<Service>, Refusal> {
        Ok(Vec::new())
    }
    fn accept_services(&mut self) -> Result<(), Refusal> {
        Ok(())
    }
    fn tables(&self, candidate: bool) -> Option<Vec<u8>> {
        Some(if candidate { b"candidate".to_vec() } else { b"tables".to_vec() })
    }
    fn denials(&mut self) -> u64 {
        self.0.lock().unwrap().denials
    }
    fn record(&mut self, Load { mode, success, cause, .. }: Load) {
        let mode = mode.unwrap_or_else(|| "?".into());
        self.0.lock().unwrap().records.push(format!("{mode} {success} {}", cause.unwrap_or_default()));
    }
    fn statistics(&mut self) -> Vec<Manager> {
        Vec::new()
    }
    fn count(&mut self, on: bool) {
        self.0.lock().unwrap().counting = on;
    }
}
