//! The result of a change, or of a dry run.

use std::process::ExitCode;

use serde::Serialize;
use tollgate_enforcer::programs::{self, Pins};
use tollgate_policy::{diff::Diff, store::Store};

use super::{
    Options,
    labels::{Labelled, Plan},
};
use crate::{difference, output};

/// How many relabelled files are listed.
const MAX_SHOWN: usize = 8;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    done: Vec<String>,
    dry_run: bool,
    /// What the change grants and takes away, compared with the policy in force, or else with that of the next start; `None`:
    /// there was none.
    pub(super) diff: Option<Diff>,
    /// Whether a daemon has it in force.
    pub(super) in_force: bool,
    /// The generation that was put in force; `None`: the policy in force is the same, or no daemon runs.
    pub(super) generation: Option<u32>,
    /// Files that get other labels.
    pub(super) relabelled: Vec<Labelled>,
    /// Whether the next start puts it in force.
    pub(super) kept: bool,
}

impl Report {
    pub(super) fn new(done: Vec<String>, dry_run: bool) -> Self {
        let relabelled = Vec::new();
        Self { done, dry_run, diff: None, in_force: false, generation: None, relabelled, kept: false }
    }

    pub(super) fn tell(&self, options: &Options, store: &Store, plan: &Plan) -> anyhow::Result<ExitCode> {
        if options.json {
            output::json(self)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text: String = self.done.iter().map(|line| format!("{line}\n")).collect();
        text.extend(self.diff.iter().filter(|_| !options.brief).map(|found| difference::text(found, options.all)));
        let shown = if options.all { self.relabelled.len() } else { MAX_SHOWN };
        for file in self.relabelled.iter().take(shown) {
            text.push_str(&format!("{file}\n"));
        }
        if self.relabelled.len() > shown {
            text.push_str(&format!("(and {} more files: --all)\n", self.relabelled.len() - shown));
        }
        self.end(store).iter().for_each(|line| text.push_str(&format!("{line}\n")));
        output::write(&text)?;
        if !self.in_force && !self.dry_run {
            self.warn(options, plan);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Lines that say where the policy is in force.
    fn end(&self, store: &Store) -> Vec<String> {
        let files = self.relabelled.len();
        let labels = (files > 0).then(|| format!("files with another label: {files}"));
        if self.dry_run {
            return labels.into_iter().chain(["nothing was changed: this was a dry run".to_owned()]).collect();
        }
        let now = match (self.in_force, self.generation) {
            (false, _) => None,
            (true, Some(generation)) => Some(format!("in force: generation {generation}")),
            (true, None) => Some("in force: what was in force says the same".to_owned()),
        };
        let next = if self.kept { store.policy_name().display().to_string() } else { "as before".to_owned() };
        let next = format!("at the next start: {next}");
        labels.into_iter().chain(now).chain([next]).collect()
    }

    /// Reports what was not done because no daemon runs.
    fn warn(&self, options: &Options, plan: &Plan) {
        if !options.root.is_here() {
            return;
        }
        if !options.no_reload {
            let attached = programs::attached(&Pins::default()).unwrap_or_default();
            let goes_on = if attached.is_empty() { "" } else { "; enforcement goes on with the policy before" };
            eprintln!("tollgate: nothing was put in force, because no daemon answers{goes_on}");
        }
        let places = plan.places();
        if !places.is_empty() {
            eprintln!(
                "tollgate: labels are as they were: once it is in force, `tollgate label restore -R {}`",
                places.join(" ")
            );
        }
    }
}
