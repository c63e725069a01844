//! A node's part of a fleet: which generations the daemon takes of those that the fleet's agent offers (docs/fleet.md).
//!
//! The daemon trusts nothing of the agent. It copies what the agent's descriptors hold, and checks the copy, so nothing
//! changes after the check. What it has accepted lies in a folder that only root may write to.
//!
//! A power cut may come at any instant. So the steps have this order, and each is on the disk before the next begins:
//!
//! 1. The generation is written beside the current one, to which the link still leads.
//! 2. It is put in force. If a sanity question fails, nothing else is done: the number stays as it was.
//! 3. The manifest is kept. From now on nothing older is accepted.
//! 4. The link leads to the generation, with which the daemon starts next time, if it is enforced.
//!
//! Between 3 and 4 the daemon would start with the generation before, and take the new one again when it is offered. With
//! 4 before 3, a store could put back an older manifest than the one that was in force.
//!
//! It goes back in this order: what it went back from is noted, so that it is not taken again; the link leads to the
//! generation before; that one is put in force. If the power goes after the first step, [`Fleet::open`] does the second.

mod agent;
mod back;
mod disbelieved;
mod files;
mod offer;
mod settings;
mod trial;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tollgate_audit::Load;
use tollgate_client::{
    fleet::{Looked, Report},
    protocol::{Mode, Refusal},
    sanity,
    status::Status,
};
use tollgate_fleet::{
    Hash, Kept, Manifest, Time, kept::KeptError, manifest::Progress, rollout::Duty, shelf::Shelf, stage, trust::Checked,
};
use tracing::{error, info, warn};

pub use self::files::Files;
pub use self::settings::{Settings, SettingsError};
use self::{
    agent::Agent,
    disbelieved::Disbelieved,
    trial::{Denials, Trial},
};
use super::{
    machine::{Database, Machine, With},
    peer::Process,
};

/// Where an administrator says to which fleet this node belongs.
pub const SETTINGS: &str = "/etc/tollgate/fleet";
/// Where the daemon keeps what it has accepted.
pub const KEPT: &str = "/var/lib/tollgate/accepted";

/// Why the daemon cannot belong to its fleet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The administrator's files are wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// What it has kept is wrong.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// It cannot go back from a generation.
    #[error("cannot go back to the generation before: {0}; look whether the disk is full")]
    Back(io::Error),
}

/// The files of the last good generation, with which the daemon of a node starts; `None`: there is none, or it is not
/// whole.
#[must_use]
pub fn first(settings: &Path, kept: &Path) -> Option<Files> {
    let shelf = Shelf::of(kept);
    let hash = shelf.hash().filter(|hash| settings.exists() && shelf.is_whole(*hash))?;
    Some(Files::of(&shelf.folder(hash)))
}

/// Why nothing is answered where no fleet is.
pub(super) fn none() -> Refusal {
    Refusal::new(libc::ENOENT, "this node belongs to no fleet: see docs/fleet.md, `Take what is published`")
}

/// What the daemon knows of its fleet.
#[derive(Debug)]
pub struct Fleet {
    settings: Settings,
    folder: PathBuf,
    kept: Kept,
    shelf: Shelf,
    trial: Option<Trial>,
    denials: Denials,
    /// Why what was offered last is not in force.
    refused: Option<String>,
    /// How many offers were refused since this daemon began.
    refusals: u64,
    disbelieved: Disbelieved,
    agent: Agent,
}

impl Fleet {
    /// The fleet to which the administrator's files say that this node belongs; `None`: to none.
    pub fn open(settings: &Path, kept: &Path) -> Result<Option<Self>, FleetError> {
        let Some((settings, root)) = Settings::read(settings)? else { return Ok(None) };
        let kept_there = match Kept::open(kept) {
            Err(KeptError::New(_)) => Kept::begin(kept, &root),
            other => other,
        };
        let (shelf, trial, folder) = (Shelf::of(kept), Trial::read(kept), kept.to_owned());
        let (denials, disbelieved) = (Denials::default(), Disbelieved::default());
        let agent = Agent::new(Time::now().seconds());
        let kept = kept_there?;
        // Nobody else writes here: there is one daemon.
        if let Err(cause) = kept.sweep(Duration::ZERO) {
            warn!(%cause, "{cause}");
        }
        let fleet =
            Self { settings, folder, kept, shelf, trial, denials, refused: None, refusals: 0, disbelieved, agent };
        if fleet.shelf.hash().is_some_and(|hash| fleet.went_back(hash).is_some()) {
            fleet.shelf.back().map_err(FleetError::Back)?;
        }
        Ok(Some(fleet))
    }

    /// Why this node went back from a generation, if it did.
    fn went_back(&self, generation: Hash) -> Option<&str> {
        self.trial.as_ref().filter(|trial| trial.is_of(generation))?.back.as_deref()
    }

    /// Whether a user may offer something: the agent's user. Root may, too.
    pub(super) fn is_agent(&self, uid: u32) -> bool {
        self.settings.agent == Some(uid)
    }

    /// Called once enforcement has begun: nothing is left permissive by the trial of an earlier daemon.
    pub(super) fn begin(&self, machine: &mut dyn Machine) -> Result<(), Refusal> {
        let (Some(trial), status) = (&self.trial, machine.status()?) else { return Ok(()) };
        let is_over = self.in_force(&status).is_some_and(|hash| !trial.is_of(hash)) && trial.back.is_none();
        if trial.permissive && is_over && trial.was != status.mode {
            machine.set_mode(trial.was, None)?;
        }
        Ok(())
    }

    /// Takes the next version of the root file. Returns its version.
    pub(super) fn follow(&mut self, machine: &mut dyn Machine, root: File) -> Result<u64, Refusal> {
        let followed =
            offer::copy(root, offer::MAX_DOCUMENT, "the root file").and_then(|bytes| match self.kept.follow(&bytes) {
                Err(KeptError::Root(cause)) => Err(self.disbelieve(machine, refused(&cause))),
                other => other.map_err(|cause| refused(&cause)),
            });
        self.counted(followed)?;
        Ok(self.kept.root().version)
    }

    /// Takes what the agent says of its last look into the store.
    pub(super) fn looked(&mut self, looked: Looked, process: Process) {
        self.agent.looked(Time::now().seconds(), looked, process);
    }

    fn counted<T>(&mut self, offered: Result<T, Refusal>) -> Result<T, Refusal> {
        self.refusals += u64::from(offered.is_err());
        offered
    }

    /// Checks what an agent offers, and does what the manifest says that this node must do. Returns what was done.
    pub(super) fn take(
        &mut self,
        machine: &mut dyn Machine,
        manifest: File,
        parts: Vec<(String, File)>,
    ) -> Result<String, Refusal> {
        let taken = self.take_signed(machine, manifest, parts);
        self.counted(taken)
    }

    fn take_signed(
        &mut self,
        machine: &mut dyn Machine,
        manifest: File,
        parts: Vec<(String, File)>,
    ) -> Result<String, Refusal> {
        let bytes = offer::copy(manifest, offer::MAX_DOCUMENT, "the manifest")?;
        let checked = self.kept.check(&bytes, &self.settings.group, Time::now());
        let checked = checked.map_err(|cause| self.disbelieve(machine, refused(&cause)))?;
        let manifest = checked.manifest();
        let (number, hash) = (manifest.number, manifest.generation());
        let by_itself = manifest.progress != Progress::Emergency;
        let done = match self.duty(&checked) {
            Duty::Wait => self.end_shadow(machine).map(|()| "it is not this node's turn".to_owned()),
            Duty::Keep(_) => Ok("it is paused".to_owned()),
            Duty::Take(mode) => match self.went_back(hash).filter(|_| by_itself) {
                Some(why) => Ok(format!("this node went back from its generation: {why}")),
                None => match self.put(machine, manifest, mode, parts) {
                    Ok(()) => Ok(mode.to_string()),
                    Err(refusal) => Err(self.refuse(machine, manifest, mode, refusal)),
                },
            },
        };
        let said = done?;
        self.kept.accept(&bytes, checked).map_err(|cause| refused(&cause))?;
        self.refused = None;
        self.lead(machine, hash)?;
        Ok(format!("manifest {number}: {said}"))
    }

    fn duty(&self, checked: &Checked) -> Duty {
        checked.manifest().duty(&self.settings.node, &self.settings.groups)
    }

    /// Says that something is not put in force, once.
    fn refuse(
        &mut self,
        machine: &mut dyn Machine,
        manifest: &Manifest,
        mode: stage::Mode,
        refusal: Refusal,
    ) -> Refusal {
        let text = format!("manifest {} is refused, what is in force stays: {refusal}", manifest.number);
        if self.refused.as_ref() != Some(&text) {
            error!("{text}");
            machine.record(load(manifest.generation(), mode, Some(refusal.text.clone())));
            self.refused = Some(text);
        }
        refusal
    }

    /// Puts a generation in force, or into shadow, unless it is.
    fn put(
        &mut self,
        machine: &mut dyn Machine,
        manifest: &Manifest,
        mode: stage::Mode,
        parts: Vec<(String, File)>,
    ) -> Result<(), Refusal> {
        let (hash, status) = (manifest.generation(), machine.status()?);
        if self.present(machine, &status) == Some((hash, mode)) {
            return Ok(());
        }
        let generation = offer::generation(manifest, parts)?;
        self.shelf.write(hash, &generation).map_err(|cause| unwritten(&cause))?;
        let questions = self.files(hash).check(&generation)?;
        let before = self.trial.clone();
        self.keep(Trial::new(hash, mode, status.mode, self.denials.a_minute())).map_err(|cause| unwritten(&cause))?;
        if let Err(refusal) = self.apply(machine, hash, &questions, mode) {
            if let Some(Err(cause)) = before.map(|before| self.keep(before)) {
                warn!(%cause, "{}", unwritten(&cause));
            }
            return Err(refusal);
        }
        self.denials = Denials::default();
        info!("generation {hash} of manifest {}: {mode}", manifest.number);
        machine.record(load(hash, mode, None));
        Ok(())
    }

    fn keep(&mut self, trial: Trial) -> io::Result<()> {
        let kept = trial.keep(&self.folder);
        self.trial = Some(trial);
        kept
    }

    fn files(&self, hash: Hash) -> Files {
        Files::of(&self.shelf.folder(hash))
    }

    /// Does what `tollgate reload --sanity`, `tollgate mode`, `tollgate shadow start` and `tollgate guard load` do. The
    /// guard has no trial: its database is in force with the stage that enforces.
    fn apply(
        &self,
        machine: &mut dyn Machine,
        hash: Hash,
        questions: &[sanity::Question],
        mode: stage::Mode,
    ) -> Result<(), Refusal> {
        let Files { policy, beside } = self.files(hash);
        let policy = File::open(policy).map_err(|cause| unwritten(&cause))?;
        if mode == stage::Mode::Shadow {
            return machine.start_shadow(policy).map(drop);
        }
        self.end_shadow(machine)?;
        let guard = match mode {
            stage::Mode::Enforcing => Database::of(beside.guard.as_deref()),
            _ => Database::Present,
        };
        let with = With { network: beside.network.as_deref(), guard };
        let before = machine.mode();
        // Nothing is denied by a policy that is only tried, not even for an instant.
        if mode == stage::Mode::Permissive {
            machine.set_mode(Mode::Permissive, None)?;
        }
        let reloaded = machine.reload(policy, with, self.settings.accept_missing, questions);
        match (reloaded, mode) {
            (Err(refusal), stage::Mode::Permissive) => machine.set_mode(before, None).and(Err(refusal)),
            (Ok(_), stage::Mode::Enforcing) => machine.set_mode(Mode::Enforcing, None),
            (reloaded, _) => reloaded.map(drop),
        }
    }

    /// Ends the trial in shadow of a generation of the fleet.
    fn end_shadow(&self, machine: &mut dyn Machine) -> Result<(), Refusal> {
        if self.in_shadow(&machine.status()?).is_some() { machine.stop_shadow() } else { Ok(()) }
    }

    /// The daemon starts with what it enforces. What is only tried is not what it starts with.
    fn lead(&self, machine: &mut dyn Machine, hash: Hash) -> Result<(), Refusal> {
        let status = machine.status()?;
        if self.present(machine, &status) == Some((hash, stage::Mode::Enforcing)) {
            self.shelf.lead(hash).map_err(|cause| unwritten(&cause))?;
        }
        Ok(())
    }

    /// The generation of the fleet whose policy is in force.
    fn in_force(&self, status: &Status) -> Option<Hash> {
        self.named(&status.policy)
    }

    fn in_shadow(&self, status: &Status) -> Option<Hash> {
        self.named(&status.shadow.as_ref()?.policy)
    }

    /// The generation whose policy has this path.
    fn named(&self, policy: &str) -> Option<Hash> {
        let hash = Path::new(policy).parent()?.file_name()?.to_str()?.parse().ok()?;
        (self.shelf.folder(hash).join("policy") == Path::new(policy)).then_some(hash)
    }

    /// The generation that this node has, and its mode as it is now: an administrator may have changed it. It has none
    /// unless all parts are in force.
    fn present(&self, machine: &mut dyn Machine, status: &Status) -> Option<(Hash, stage::Mode)> {
        let mode = match status.mode {
            Mode::Enforcing => stage::Mode::Enforcing,
            Mode::Permissive => stage::Mode::Permissive,
        };
        let shadow = self.in_shadow(status).map(|hash| (hash, stage::Mode::Shadow));
        shadow.or_else(|| {
            let hash = self.in_force(status)?;
            let (meant, now) = (self.files(hash).beside, machine.beside());
            let is_guarded = mode == stage::Mode::Permissive || now.guard == meant.guard;
            (is_guarded && now.network == meant.network).then_some((hash, mode))
        })
    }

    /// What an agent puts into the node's state.
    pub(super) fn report(&self, machine: &mut dyn Machine) -> Result<Report, Refusal> {
        let (status, newest) = (machine.status()?, self.kept.newest());
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let (generation, mode) = self.present(machine, &status).unzip();
        let back = self.trial.as_ref().and_then(|trial| trial.back.clone());
        let (now, expires) = (Time::now().seconds(), newest.map(|newest| newest.manifest().expires.seconds()));
        Ok(Report {
            fleet: self.kept.root().fleet.to_string(),
            node: self.settings.node.to_string(),
            group: self.settings.group.to_string(),
            root: self.kept.root().version,
            number: newest.map_or(0, |newest| newest.manifest().number),
            manifest: newest.map(|newest| newest.hash().to_string()),
            generation: generation.map(|hash| hash.to_string()),
            tables: machine.tables(mode == Some(stage::Mode::Shadow)).map(|tables| Hash::of(&tables).to_string()),
            mode: mode.map(|mode| mode.to_string()),
            hooks: small(status.hooks.attached.len() as u64),
            unenforced: small(status.not_enforced.len() as u64),
            failures: small(status.failures.values().sum()),
            denials: small(self.denials.a_minute()),
            refused: self.refused.clone().or(back),
            refusals: self.refusals,
            expires,
            stale_since: self.agent.stale_since(now, expires),
            agent: self.agent.report(now),
        })
    }
}

/// What became of a generation, for the audit log: in force, unless there is a cause why not.
fn load(generation: Hash, mode: stage::Mode, cause: Option<String>) -> Load {
    let (generation, mode, success) = (Some(generation.to_string()), Some(mode.to_string()), cause.is_none());
    Load { time: 0, generation, mode, success, cause }
}

fn refused(cause: &impl ToString) -> Refusal {
    Refusal::new(libc::EACCES, cause.to_string())
}

fn unwritten(cause: &io::Error) -> Refusal {
    Refusal::new(libc::EIO, format!("cannot keep the generation: {cause}; look whether the disk is full"))
}
