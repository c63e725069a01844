//! The steps of a change, in an order in which each can be undone.

use std::{
    fs::File,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use tollgate_client::{Client, sanity};
use tollgate_enforcer::labels::changed::Changed;
use tollgate_policy::{
    built::Built,
    store::{Contents, Staged, Store},
};

use super::{
    Options,
    labels::{self, Plan},
    report::Report,
};
use crate::{difference, interrupt, policies};

/// The policy in force, and the connection that can replace it.
pub(crate) struct Running {
    pub(crate) client: Client,
    pub(crate) built: Built,
    /// The path by which it was given.
    pub(crate) name: PathBuf,
}

/// A change of the policy of the next start and of the one in force.
pub(crate) struct Change<'s> {
    pub(crate) store: &'s Store,
    /// What the change does, one line per change.
    pub(crate) done: Vec<String>,
    /// The policy of the next start, as it is now.
    pub(crate) kept: Option<Built>,
    /// The policy of the next start after the change; `None`: it stays.
    pub(crate) next: Option<Built>,
    /// The sources before and after.
    pub(crate) sources: (Contents, Contents),
    /// The policy in force; `None`: no daemon runs, or it is left alone.
    pub(crate) running: Option<Running>,
    /// The policy to put in force.
    pub(crate) forced: Option<Built>,
}

impl Change<'_> {
    /// Prints the change, and makes it unless it is a dry run.
    pub(crate) fn apply(mut self, options: &Options) -> anyhow::Result<ExitCode> {
        let next = self.forced.as_ref().or(self.next.as_ref()).context("nothing is to be changed")?;
        let before = self.running.as_ref().map(|running| &running.built).or(self.kept.as_ref());
        let difference = before.map(|before| difference::between(before, next)).transpose()?;
        policies::warn(next, &self.store.policy_name())?;
        self.ask(next)?;
        let changed = Changed::between(&before.unwrap_or(next).file_contexts, &next.file_contexts)?;
        let plan = match &mut self.running {
            Some(running) if !options.no_restore => labels::plan(&mut running.client, changed)?,
            _ => Plan::nothing(changed),
        };
        let mut report = Report::new(std::mem::take(&mut self.done), options.dry_run);
        report.diff = difference;
        report.relabelled = plan.files();
        if !options.dry_run {
            // From here on Ctrl-C undoes what has been done.
            interrupt::flag()?;
            let staged = self.stage()?;
            report.kept = staged.is_some();
            report.generation = self.put_in_force(options, &plan, staged)?;
        }
        report.in_force = self.running.is_some();
        report.tell(options, self.store, &plan)
    }

    /// Checks the decisions that every policy must make, if there is a file of them.
    fn ask(&self, forced: &Built) -> anyhow::Result<()> {
        let Some(path) = self.store.sanity() else { return Ok(()) };
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let questions = sanity::parse(&text).with_context(|| path.display().to_string())?;
        for built in self.next.iter().chain([forced]) {
            tollgate_enforcer::sanity::ask(built, &questions).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Prepares the files to keep; a full disk is noticed here.
    fn stage(&self) -> anyhow::Result<Option<Staged>> {
        let (before, after) = &self.sources;
        Ok(self.next.as_ref().map(|next| self.store.stage(before, after, next)).transpose()?)
    }

    /// Puts the policy in force, restores labels and keeps both, or undoes all of it; returns the generation, if there is a
    /// new one.
    fn put_in_force(&mut self, options: &Options, plan: &Plan, staged: Option<Staged>) -> anyhow::Result<Option<u32>> {
        let keep = |staged: Option<Staged>| staged.map_or(Ok(()), |staged| Ok(staged.commit()?));
        let (Some(running), Some(forced)) = (&mut self.running, &self.forced) else {
            return keep(staged).map(|()| None);
        };
        let mut generation = None;
        if !is_like(&running.built, forced) {
            let name = self.next.as_ref().map_or_else(|| running.name.clone(), |_| self.store.policy_name());
            let sanity = self.store.sanity();
            generation = Some(running.reload(forced, &name, options.accept_missing, sanity.as_deref())?);
        }
        let mut restored = Vec::new();
        let kept = plan.restore(&mut running.client, &mut restored).and_then(|()| keep(staged));
        let Err(cause) = kept else { return Ok(generation) };
        let back = if generation.is_some() { running.put_back() } else { Ok(()) };
        match back.and_then(|()| plan.undo(&mut running.client, &restored)) {
            Ok(()) => Err(cause.context("everything is as it was before")),
            Err(failed) => Err(cause.context(format!("what was in force could not be put back ({failed:#})"))),
        }
    }
}

impl Running {
    /// Puts a policy in force under the name of a file; it is taken back if a sanity question fails.
    fn reload(
        &mut self,
        built: &Built,
        name: &Path,
        accept_missing: bool,
        sanity: Option<&Path>,
    ) -> anyhow::Result<u32> {
        let open = |path: &Path| File::open(path).with_context(|| format!("cannot read {}", path.display()));
        let questions = sanity.map(open).transpose()?;
        let policy = policies::file_of(built, name)?;
        Ok(self.client.reload(policy.as_fd(), accept_missing, questions.as_ref().map(AsFd::as_fd))?)
    }

    /// Puts the previous policy back; this kernel enforces as much of it as before.
    fn put_back(&mut self) -> anyhow::Result<()> {
        let policy = policies::file_of(&self.built, &self.name)?;
        Ok(self.client.reload(policy.as_fd(), true, None).map(drop)?)
    }
}

/// Whether both policies decide and label alike.
fn is_like(one: &Built, other: &Built) -> bool {
    (&one.image, &one.file_contexts) == (&other.image, &other.file_contexts)
}
