//! The way back: a node leaves a generation by itself when denials pass the limit of its stage.

use std::{fs::File, time::Instant};

use tollgate_client::protocol::{Mode, Refusal};
use tollgate_fleet::Time;
use tracing::{error, warn};

use super::{Files, Fleet, load, unwritten};
use crate::daemon::machine::{Database, Machine, With};

impl Fleet {
    /// Called once a second: counts denials, and goes back if there are too many.
    pub(in crate::daemon) fn wake(&mut self, machine: &mut dyn Machine, now: Instant) {
        if !self.denials.is_due(now) {
            return;
        }
        self.agent.wake(Time::now().seconds());
        self.record_disbelieved(machine, now);
        self.denials.count(now, machine.denials());
        let (found, Some(limit)) = (self.denials.a_minute(), self.limit()) else { return };
        if found <= limit {
            return;
        }
        let why = format!("{found} denials in a minute, where the stage accepts {limit}");
        if let Err(refusal) = self.back(machine, why) {
            error!("cannot go back to the generation before: {refusal}");
        }
    }

    /// How many denials a minute the stage of this node accepts of what is tried; `None`: as many as there are.
    fn limit(&self) -> Option<u64> {
        let (trial, manifest) = (self.trial.as_ref()?, self.kept.newest()?.manifest());
        let stage = manifest.stage(&self.settings.node, &self.settings.groups)?;
        let is_tried = trial.back.is_none() && stage.denials < u32::MAX && trial.is_of(manifest.generation());
        is_tried.then(|| trial.before.saturating_add(stage.denials.into()))
    }

    /// Goes back to the last good generation, or to the policy that the daemon was started with if there is none.
    fn back(&mut self, machine: &mut dyn Machine, why: String) -> Result<(), Refusal> {
        let (status, Some(mut trial)) = (machine.status()?, self.trial.clone()) else { return Ok(()) };
        // Unless an administrator has put something else in force.
        let Some((hash, mode)) = self.present(machine, &status).filter(|(hash, _)| trial.is_of(*hash)) else {
            return Ok(());
        };
        error!("this node goes back from generation {hash}: {why}");
        machine.record(load(hash, mode, Some(why.clone())));
        let was = trial.was;
        trial.back = Some(why);
        let good = if self.shelf.hash() == Some(hash) { self.shelf.before() } else { self.shelf.hash() };
        // A full disk must not keep a bad policy in force.
        let noted = self.keep(trial).and_then(|()| match self.shelf.hash() {
            Some(current) if current == hash => self.shelf.back(),
            _ => Ok(()),
        });
        if let Err(cause) = noted {
            warn!(%cause, "this node may take generation {hash} again: {}", unwritten(&cause));
        }
        self.denials = Default::default();
        if self.in_shadow(&status).is_some() {
            return machine.stop_shadow();
        }
        let good = good.filter(|good| self.shelf.is_whole(*good)).map(|good| self.files(good));
        let guard = Database::of(good.as_ref().and_then(|files| files.beside.guard.as_deref()));
        // A guard that cannot go back must not keep a bad policy in force.
        let guarded = self.put_back(machine, good.as_ref(), guard);
        if guarded.is_err() {
            self.put_back(machine, good.as_ref(), Database::Present)?;
        }
        machine.set_mode(if good.is_some() { Mode::Enforcing } else { was }, None).and(guarded)
    }

    /// Puts a generation in force again; `None`: the policy that the daemon was started with.
    fn put_back(&self, machine: &mut dyn Machine, good: Option<&Files>, guard: Database<'_>) -> Result<(), Refusal> {
        let Some(Files { policy, beside }) = good else { return machine.reread(guard).map(drop) };
        let policy = File::open(policy).map_err(|cause| unwritten(&cause))?;
        let with = With { network: beside.network.as_deref(), guard };
        machine.reload(policy, with, self.settings.accept_missing, &[]).map(drop)
    }
}
