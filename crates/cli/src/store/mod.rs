//! Changes to the policy of this machine: built and checked, printed, put in force, its labels restored, and kept for the
//! next start. A failure at any step leaves everything as it was.

mod change;
mod labels;
mod report;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_client::{Client, ClientError};
use tollgate_enforcer::{
    labels::file_contexts::FileContexts,
    progress::{Progress, Telling},
};
use tollgate_policy::{
    booleans,
    built::Built,
    context::{Kind, Names},
    origin::Origin,
    store::{Contents, Lock, Next, Store},
};

use crate::policies;

pub(crate) use change::{Change, Running};

/// The machine whose policy is changed.
#[derive(Debug, Args)]
pub(crate) struct Root {
    /// Change the system below this folder, such as an image that is being made: nothing is put in force or labelled here
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
}

impl Root {
    pub(crate) fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The store of that machine's policy.
    pub(crate) fn store(&self) -> Store {
        let program = env::current_exe().ok().filter(|_| self.is_here());
        Store::below(&self.root, program.as_deref().and_then(|program| program.parent()?.parent()))
    }
}

/// The store of this machine.
pub(crate) fn here() -> Store {
    Root { root: "/".into() }.store()
}

/// Options of commands that change the policy of a machine.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only print what would be done
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Keep the change for the next start, and leave the policy in force as it is
    #[arg(long)]
    pub(crate) no_reload: bool,
    /// Leave the labels of files as they are
    #[arg(long)]
    pub(crate) no_restore: bool,
    /// Make the change even if this kernel cannot enforce all of the policy
    #[arg(long)]
    pub(crate) accept_missing: bool,
    #[command(flatten)]
    pub(crate) root: Root,
    /// Print all names of long lists
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not print the changed rules: the calling command prints its own report
    #[arg(skip)]
    pub(crate) brief: bool,
}

impl Options {
    /// Options for a command that changes the policy beside other things.
    pub(crate) fn brief() -> Self {
        Self {
            dry_run: false,
            no_reload: false,
            no_restore: false,
            accept_missing: false,
            root: Root { root: "/".into() },
            all: false,
            json: false,
            brief: true,
        }
    }

    /// Locks and opens the store, so that no other command changes it meanwhile.
    pub(crate) fn open(&self) -> anyhow::Result<(Store, Option<Lock>)> {
        let store = self.root.store();
        let waits = || eprintln!("tollgate: waiting for another command, which changes the policy");
        let lock = if self.dry_run { None } else { Some(store.lock(waits)?) };
        Ok((store, lock))
    }

    /// The policy in force here that is to be replaced.
    pub(crate) fn running(&self) -> anyhow::Result<Option<Running>> {
        if self.no_reload || !self.root.is_here() {
            return Ok(None);
        }
        match Client::connect() {
            Ok(mut client) => {
                let name = client.status()?.policy.into();
                Ok(Some(Running { client, built: policies::running()?.0, name }))
            }
            Err(ClientError::NoDaemon { .. }) => Ok(None),
            Err(cause) => Err(cause.into()),
        }
    }
}

/// The policy of the store's present sources.
pub(crate) struct Current<'s> {
    pub(crate) kept: Option<&'s Built>,
    pub(crate) sources: &'s Contents,
}

impl Current<'_> {
    /// Gives the policy of the next start, or, if its sources have changed since, one that is built from them.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Built) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let sources = self.sources.sources();
        let is_current = |built: &&Built| built.origin.as_ref().is_some_and(|origin| origin.sources == sources);
        match self.kept.filter(is_current) {
            Some(built) => read(built),
            None => read(&self.sources.build()?.built),
        }
    }
}

/// Changes sources and builds them. `edit` returns a description of what it did.
pub(crate) fn change(
    options: &Options,
    edit: impl FnOnce(&mut Contents, &Current<'_>) -> anyhow::Result<Vec<String>>,
) -> anyhow::Result<ExitCode> {
    let (store, lock) = options.open()?;
    let kept = store.kept().context("`tollgate policy rebuild --force` replaces it")?;
    let running = options.running()?;
    if let Some(kept) = &kept {
        own(&store, kept.origin.as_ref(), &store.policy_name().display().to_string())?;
    }
    if let Some(Running { built, name, .. }) = &running {
        own(&store, built.origin.as_ref(), &format!("the policy in force ({})", name.display()))?;
    }
    rebuild(options, (store, lock), kept, running, edit)
}

/// Builds the sources, whatever the two present policies were built from.
pub(crate) fn rebuild(
    options: &Options,
    (store, _lock): (Store, Option<Lock>),
    kept: Option<Built>,
    running: Option<Running>,
    edit: impl FnOnce(&mut Contents, &Current<'_>) -> anyhow::Result<Vec<String>>,
) -> anyhow::Result<ExitCode> {
    let before = store.read()?;
    let mut after = before.clone();
    let done = edit(&mut after, &Current { kept: kept.as_ref(), sources: &before })?;
    let telling = building();
    let Next { built, notes } = after.build()?;
    drop(telling);
    notes.iter().for_each(|note| eprintln!("tollgate: {note}"));
    expressions(&after, &built)?;
    let forced = running.as_ref().map(|running| in_force(&built, &running.built, kept.as_ref())).transpose()?;
    let sources = (before, after);
    Change { store: &store, done, kept, next: Some(built), sources, running, forced }.apply(options)
}

/// Reports every few seconds that a policy is being built.
fn building() -> Telling {
    let progress = Progress::default();
    progress.begin("building the policy");
    progress.tell(|text| eprintln!("tollgate: {text}"))
}

/// Refuses to replace a policy that was built from other sources.
fn own(store: &Store, origin: Option<&Origin>, what: &str) -> anyhow::Result<()> {
    let of = match origin {
        Some(origin) if store.has_built(origin) => return Ok(()),
        Some(origin) => format!("{what} was built from {}", origin.folders()),
        None => format!("nobody knows what {what} was built from"),
    };
    bail!(
        "{of}: it is somebody's own, and is left as it is; `tollgate policy rebuild --force` replaces it by the shipped policy \
         with the modules in /etc/tollgate/policy.d"
    )
}

/// The policy to put in force: booleans that were set until the next start keep their values.
fn in_force(next: &Built, running: &Built, kept: Option<&Built>) -> anyhow::Result<Built> {
    let set = |built: Option<&Built>| {
        built.and_then(|built| built.origin.as_ref()).map(|origin| origin.booleans.clone()).unwrap_or_default()
    };
    let lasting = set(kept);
    let names = Names::of(&next.policy);
    let from_now_on = set(Some(next));
    let until_next_start = set(Some(running))
        .into_iter()
        .filter(|(name, value)| lasting.get(name) != Some(value) && from_now_on.get(name) != Some(value));
    let known: Vec<_> = until_next_start.filter(|(name, _)| names.find(Kind::Boolean, name).is_ok()).collect();
    if known.is_empty() {
        return Ok(Built::from_bytes(&next.to_bytes())?);
    }
    Ok(booleans::set(next, &known)?)
}

/// Checks that libselinux accepts all expressions: each file alone, so that an error names it, then all together.
fn expressions(sources: &Contents, built: &Built) -> anyhow::Result<()> {
    for (name, text) in sources.local_file_contexts() {
        FileContexts::new(text).with_context(|| name)?;
    }
    FileContexts::new(&built.file_contexts).context("file contexts, all together")?;
    Ok(())
}
