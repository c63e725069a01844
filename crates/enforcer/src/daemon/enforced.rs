//! The running enforcement, as the daemon works with it.

mod networks;
mod policy;
mod status;
mod upkeep;

use std::{
    fs::File,
    io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tollgate_abi::enforcer::{tg_socket, tg_task};
use tollgate_audit::{Dispatcher, Load};
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
use tracing::{error, info, warn};

pub use self::policy::{First, Reread};
use self::policy::{read, refused, stopped};
use super::{
    devices::Devices,
    gaps::Gaps,
    machine::{Beside, Database, Labels, Machine, Permission, Ready, With},
    messages,
    object::{Object, path_of},
    trace::Trace,
};
use crate::{
    asking::Asking,
    containers::Container,
    contexts::{self, Sid},
    datapath::{Source, running::Datapath},
    enforcer::{Enforcer, Known, task_of},
    events::Reader,
    guard, guarded,
    inquiries::Inquiries,
    labels,
    programs::{self, Pins, ProgramsError},
    shares::Holder,
};

/// Why the daemon cannot take over enforcement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnforcedError {
    /// The programs in the kernel are not as they should be.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// Events cannot be read.
    #[error("cannot read events: {0}")]
    Events(libbpf_rs::Error),
    /// Denials cannot be logged.
    #[error("cannot write the log below {}: {cause}", .folder.display())]
    Log {
        /// The directory of the log.
        folder: PathBuf,
        /// Why it cannot be written.
        cause: io::Error,
    },
}

/// Running enforcement, with what reports on it.
pub struct Enforced {
    /// `None`: enforcement was ended.
    enforcer: Option<Enforcer>,
    inquiries: Inquiries,
    events: Reader,
    /// `None`: the kernel's announcements cannot be received.
    devices: Option<Devices>,
    audit: Dispatcher,
    /// How many denials have come, and were lost.
    denials: u64,
    /// The last packets that were denied or dropped.
    trace: Trace,
    /// The user's name for the policy in force.
    policy: String,
    reread: Reread,
    /// Where the machine's own labelled networks are configured.
    network: Source,
    gaps: Gaps,
    asking: Asking,
    /// The guard's log, if the guard runs beside the policy.
    guard: Option<guard::Log>,
    /// When entries for owners of files that no longer exist were last removed.
    swept: Instant,
}

impl Enforced {
    /// Takes over what `enforcer` has started or adopted. `policy` is the user's name for the policy, and `network` where
    /// the machine's own labelled networks are configured. Denials are logged below `log`. `devices` must have been opened
    /// before files were labelled.
    pub fn new(
        enforcer: Enforcer,
        devices: Option<Devices>,
        policy: String,
        network: Source,
        reread: Reread,
        log: &Path,
    ) -> Result<Self, EnforcedError> {
        let inquiries = Inquiries::open(&enforcer.options().pins)?;
        let events = programs::map(&enforcer.options().pins, "events")?;
        let events = Reader::new(events).map_err(EnforcedError::Events)?;
        let audit = Dispatcher::start(log);
        let audit = audit.map_err(|cause| EnforcedError::Log { folder: log.to_owned(), cause })?;
        let gaps = Gaps::watch(&enforcer.options().pins)?;
        Ok(Self {
            enforcer: Some(enforcer),
            inquiries,
            events,
            devices,
            audit,
            denials: 0,
            trace: Trace::default(),
            policy,
            reread,
            network,
            gaps,
            asking: Asking::default(),
            guard: None,
            swept: Instant::now(),
        })
    }

    /// Logs what the guard denies, too.
    pub fn watch_guard(&mut self, log: guard::Log) {
        let connect = |enforcer: &Enforcer| guarded::connect(&enforcer.options().pins, &Pins::of_guard());
        if let Some(Err(cause)) = self.enforcer.as_ref().map(connect) {
            error!(%cause, "the guard does not see who enters domains with the attribute `guarded`: {cause}");
        }
        self.guard = Some(log);
    }

    /// Logs calls that no rule of the guard allows.
    fn log_guard(&mut self) {
        let Some(log) = &mut self.guard else { return };
        match log.wait(Duration::ZERO) {
            Ok(lines) => lines.iter().for_each(|line| warn!("{line}")),
            Err(cause) => error!(%cause, "cannot read the guard's events: {cause}"),
        }
    }

    /// What is in force, in one line: policy, mode, and what was labelled.
    #[must_use]
    pub fn summary(&self) -> String {
        let Some(enforcer) = &self.enforcer else { return "nothing is enforced any more".to_owned() };
        messages::in_force(&self.policy, enforcer.generation().number, self.mode(), enforcer.labelled().0)
    }

    /// The directory of the pins, which the daemon holds open.
    #[must_use]
    pub fn pins(&self) -> Option<BorrowedFd<'_>> {
        self.enforcer.as_ref()?.held().first().map(AsFd::as_fd)
    }

    fn on(&self) -> Result<&Enforcer, Refusal> {
        self.enforcer.as_ref().ok_or_else(stopped)
    }

    fn on_mut(&mut self) -> Result<&mut Enforcer, Refusal> {
        self.enforcer.as_mut().ok_or_else(stopped)
    }

    /// The enforcer, if a context has a SID or may get one. Unless `all` is set, none is given once half of them are used.
    fn with_room(&mut self, context: &str, all: bool) -> Result<&mut Enforcer, Refusal> {
        let enforcer = self.on_mut()?;
        if !all && enforcer.contexts().sid(context).is_none() && enforcer.is_half_full() {
            let text = "half of all security contexts or levels are in use: root may name new ones, nobody else";
            return Err(Refusal::new(libc::ENOSPC, text));
        }
        Ok(enforcer)
    }

    /// What could not be labelled or written when enforcement started.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        self.enforcer.as_ref().map(|enforcer| enforcer.labelled().0.messages.clone()).unwrap_or_default()
    }

    /// Logs what is in force from now on.
    fn log_in_force(&self, number: u32) {
        let text = messages::in_force(&self.policy, number, self.mode(), &labels::walk::Report::default());
        info!(policy = self.policy, generation = number, "{text}");
    }
}

impl Machine for Enforced {
    fn wakes(&self) -> Vec<RawFd> {
        let events = self.enforcer.iter().map(|enforcer| enforcer.maps().events.as_fd().as_raw_fd());
        let labels = self.enforcer.iter().map(|enforcer| enforcer.labels_written().as_raw_fd());
        let devices = self.devices.iter().map(|devices| devices.as_fd().as_raw_fd());
        let units = self.enforcer.iter().filter_map(|enforcer| enforcer.units_changed().map(|units| units.as_raw_fd()));
        let replaced =
            self.enforcer.iter().filter_map(|enforcer| enforcer.replaced_wakes().map(|names| names.as_raw_fd()));
        let networks = self.enforcer.iter().filter_map(|enforcer| Some(enforcer.datapath()?.as_fd().as_raw_fd()));
        let asking = self.asking.wake().map(|wake| wake.as_raw_fd());
        let guard = self.guard.iter().map(|log| log.as_fd().as_raw_fd());
        let events = events.chain(networks).chain(asking).chain(guard);
        events.chain(labels).chain(devices).chain(units).chain(replaced).chain(self.gaps.wakes()).collect()
    }

    fn due(&self) -> Option<Instant> {
        let enforcer = self.enforcer.as_ref()?;
        let devices = enforcer.datapath().and_then(Datapath::due);
        Some(devices.into_iter().chain(self.asking.due()).fold(enforcer.services_due(), Instant::min))
    }

    fn wake(&mut self, ready: &Ready) {
        self.upkeep(ready);
        self.log_guard();
    }

    fn end(&mut self) {
        self.enforcer.iter_mut().for_each(Enforcer::write_last_labels);
    }

    fn reread(&mut self, guard: Database<'_>) -> Result<u32, Refusal> {
        let First { built, name, network } = (self.reread)().map_err(|cause| Refusal::new(libc::EINVAL, cause))?;
        let number = self.put_with(built, network, guard, self.on()?.options().accept_missing, &[])?;
        self.policy = name;
        self.log_in_force(number);
        Ok(number)
    }

    fn task(&mut self, process: BorrowedFd<'_>) -> Result<Option<tg_task>, Refusal> {
        let failed = |cause| Refusal::new(libc::ESRCH, format!("cannot find the process's context: {cause}"));
        let enforcer = self.on()?;
        task_of(&enforcer.options().pins, &enforcer.maps().tasks, process).map_err(failed)
    }

    fn main_user(&self, uid: u32) -> u32 {
        self.enforcer.as_ref().map_or(uid, |enforcer| enforcer.state().shares().main_user(uid))
    }

    fn is_unconfined(&mut self, sid: Sid) -> bool {
        self.on().is_ok_and(|enforcer| enforcer.generation().is_unconfined(sid))
    }

    fn check(&mut self, source: Sid, target: Sid, permission: Permission, process: i32) -> Result<bool, Refusal> {
        let Permission { class, vector } = permission;
        let answer = self.inquiries.check(source, target, class, vector, process.cast_unsigned());
        answer.map_err(|cause| Refusal::new(libc::EIO, cause.to_string()))
    }

    fn validate(&mut self, old: Sid, new: Sid, task: Sid, class: u32) -> Result<bool, Refusal> {
        let answer = self.inquiries.validate(old, new, task, class);
        answer.map_err(|cause| Refusal::new(libc::EIO, cause.to_string()))
    }

    fn intern(&mut self, context: &str, all: bool) -> Result<Sid, Refusal> {
        let enforcer = self.with_room(context, all)?;
        enforcer.intern(context).map_err(|cause| refused(&cause))
    }

    fn defer(&mut self, context: &str, all: bool) -> Result<Sid, Refusal> {
        if !contexts::may_be_one(context) {
            return Err(Refusal::new(
                libc::EINVAL,
                "no policy can have such a context: USER:ROLE:TYPE, or with a range",
            ));
        }
        let enforcer = self.with_room(context, all)?;
        enforcer.defer(context).map_err(|cause| refused(&cause))
    }

    fn undefined(&mut self, sid: Sid) -> Option<String> {
        let enforcer = self.enforcer.as_mut()?;
        enforcer.learn();
        enforcer.undefined(sid).map(str::to_owned)
    }

    fn text(&mut self, sid: Sid) -> Option<String> {
        let enforcer = self.enforcer.as_mut()?;
        enforcer.learn();
        known(enforcer, sid)
    }

    fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, Refusal> {
        let answer = self.on_mut()?.access(source, target, class);
        answer.map_err(|cause| Refusal::new(libc::EINVAL, cause.to_string()))
    }

    fn labels(&mut self, object: BorrowedFd<'_>) -> Result<Labels, Refusal> {
        let enforcer = self.on()?;
        let Known { sid, class } = enforcer.known(object).map_err(|cause| refused(&cause))?;
        let place = enforcer.place(object).map_err(|cause| refused(&cause))?;
        let class = tollgate_abi::class(class).map(|class| class.name);
        Ok(Labels { object: sid, class, filesystem: place.sid, fixed: place.fixed })
    }

    fn socket(&mut self, socket: BorrowedFd<'_>) -> Result<Option<tg_socket>, Refusal> {
        self.on()?;
        self.inquiries.socket_label(socket).map_err(|cause| Refusal::new(libc::EIO, cause.to_string()))
    }

    fn heard(&mut self, socket: BorrowedFd<'_>, sender: SocketAddr) -> Result<Option<Sid>, Refusal> {
        self.on()?.heard(socket, sender).map_err(|cause| refused(&cause))
    }

    fn set_label(&mut self, holder: Holder, object: BorrowedFd<'_>, label: Sid) -> Result<(), Refusal> {
        self.on_mut()?.set_label_for(holder, object, label).map(drop).map_err(|cause| refused(&cause))
    }

    fn default_label(&mut self, object: BorrowedFd<'_>) -> Result<Option<String>, Refusal> {
        let failed = |cause| Refusal::new(libc::ENOENT, format!("cannot find the object's path: {cause}"));
        let path = path_of(object).map_err(failed)?;
        let mode = Object::of(object)?.mode;
        self.on_mut()?.default_label(&path, mode).map_err(|cause| refused(&cause))
    }

    fn status(&mut self) -> Result<Status, Refusal> {
        self.report()
    }

    fn why(&mut self, hook: Option<&str>) -> Result<Vec<Why>, Refusal> {
        self.on()?.why(hook).map_err(|cause| refused(&cause))
    }

    fn mode(&self) -> Mode {
        let enforcing = self.enforcer.as_ref().is_some_and(|enforcer| enforcer.state().enforcing());
        if enforcing { Mode::Enforcing } else { Mode::Permissive }
    }

    fn set_mode(&mut self, mode: Mode, domain: Option<&str>) -> Result<(), Refusal> {
        let permissive = mode == Mode::Permissive;
        self.on_mut()?.set_permissive(domain, permissive).map_err(|cause| refused(&cause))
    }

    fn reload(
        &mut self,
        policy: File,
        With { network, guard }: With<'_>,
        accept_missing: bool,
        questions: &[Question],
    ) -> Result<u32, Refusal> {
        let (built, name) = read(policy)?;
        let network = network.map_or_else(|| self.network.clone(), |file| Source::named(file.to_owned()));
        let number = self.put_with(built, network, guard, accept_missing, questions)?;
        self.policy = name;
        self.log_in_force(number);
        Ok(number)
    }

    fn beside(&mut self) -> Beside {
        self.in_force_beside()
    }

    fn start_shadow(&mut self, policy: File) -> Result<Vec<String>, Refusal> {
        let (built, name) = read(policy)?;
        self.on_mut()?.start_shadow(built, &name).map_err(|cause| refused(&cause))
    }

    fn stop_shadow(&mut self) -> Result<(), Refusal> {
        self.on_mut()?.stop_shadow().map_err(|cause| refused(&cause))
    }

    fn shadow(&mut self) -> Result<Option<Report>, Refusal> {
        self.on_mut()?.shadow_report().map_err(|cause| refused(&cause))
    }

    fn stop(&mut self) -> Result<(), Refusal> {
        self.on_mut()?.write_last_labels();
        // Otherwise the canary would report that nothing denies its acts any more.
        self.gaps.end();
        let (stopped, pins) = (self.on()?.stop(), self.on()?.options().pins.clone());
        if stopped.is_err() {
            self.gaps.resume(&pins);
        }
        stopped.map_err(|cause| refused(&cause))?;
        self.enforcer = None;
        Ok(())
    }

    fn units(&mut self) -> Result<Vec<Unit>, Refusal> {
        Ok(self.on_mut()?.look_at_units().to_vec())
    }

    fn name_container(&mut self, process: BorrowedFd<'_>, names: [&str; 2], caller: i32) -> Result<Container, Refusal> {
        Ok(self.on_mut()?.name_container(process, names, caller)?)
    }

    fn contain(&mut self, container: &Container, root: Option<BorrowedFd<'_>>) -> Result<(), Refusal> {
        Ok(self.on_mut()?.contain(container, root)?)
    }

    fn sweep_containers(&mut self) -> Result<(), Refusal> {
        Ok(self.on_mut()?.sweep_containers()?)
    }

    fn containers(&mut self) -> Result<Vec<containers::Container>, Refusal> {
        Ok(self.on_mut()?.containers()?)
    }

    fn network(&mut self) -> Result<network::Report, Refusal> {
        self.network_report()
    }

    fn flows(&mut self) -> Result<network::Flows, Refusal> {
        self.flows_report()
    }

    fn trace(&mut self, after: u64) -> Result<Vec<network::Traced>, Refusal> {
        // What has come since the daemon was last woken.
        self.events();
        Ok(self.trace.after(after))
    }

    fn services(&mut self) -> Result<Vec<Service>, Refusal> {
        self.on_mut()?.services(true).map_err(|cause| refused(&cause))
    }

    fn accept_services(&mut self) -> Result<(), Refusal> {
        self.on_mut()?.accept_services().map_err(|cause| refused(&cause))
    }

    fn tables(&self, candidate: bool) -> Option<Vec<u8>> {
        let enforcer = self.enforcer.as_ref()?;
        let generation = if candidate { enforcer.shadow_generation()? } else { enforcer.generation() };
        Some(generation.tables_read_back())
    }

    fn denials(&mut self) -> u64 {
        let report = self.enforcer.as_mut().and_then(|enforcer| enforcer.shadow_report().ok().flatten());
        let differences = report.map(|report| report.differences).unwrap_or_default();
        let would_be = differences.iter().filter(|one| !one.denied.is_empty()).map(|one| one.count);
        self.denials + would_be.sum::<u64>()
    }

    fn record(&mut self, load: Load) {
        self.audit.load(load);
    }

    fn statistics(&mut self) -> Vec<Manager> {
        self.on().map(status::managers).unwrap_or_default()
    }

    fn count(&mut self, on: bool) {
        if let Some(enforcer) = &self.enforcer {
            enforcer.state().set_statistics(on);
        }
    }
}

/// The context of a SID, if this daemon knows it.
fn known(enforcer: &Enforcer, sid: Sid) -> Option<String> {
    enforcer.meaning(sid).map(str::to_owned)
}
