//! Labels of the files that other file contexts name.
//!
//! They are found before the policy changes, while the labels still have their meaning, and set afterwards. Both walks go
//! from directory to directory by descriptors, so that no name is resolved twice.

use std::{
    collections::{BTreeSet, HashMap},
    fmt, fs, io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::Serialize;
use tollgate_audit::untrusted::for_people;
use tollgate_client::{Client, ClientError, tree};
use tollgate_enforcer::labels::{changed::Changed, object::Object};
use tollgate_policy::context::restored;

use crate::interrupt;

/// A file that gets another label.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Labelled {
    path: PathBuf,
    before: String,
    label: String,
}

impl fmt::Display for Labelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, before, label } = self;
        write!(f, "{before} -> {label} {}", for_people(path.as_os_str().as_encoded_bytes()))
    }
}

/// Device and inode number.
type Place = (u64, u64);

/// Which files get which labels.
#[derive(Debug)]
pub(super) struct Plan {
    changed: Changed,
    files: HashMap<Place, Labelled>,
}

/// Finds the files whose labels differ from those that the new file contexts give them.
pub(super) fn plan(client: &mut Client, changed: Changed) -> anyhow::Result<Plan> {
    let mut files = HashMap::new();
    let unlabelled = client.unlabelled()?;
    walk(&changed, &mut |path, object, file| {
        let Some(default) = changed.label(path, object.mode())? else { return Ok(()) };
        let before = match client.label(file) {
            // The file has no label.
            Err(ClientError::Refused(_)) => String::new(),
            label => label?,
        };
        if let Some(label) = restored(&before, &default, &unlabelled, false) {
            files.insert(object.place(), Labelled { path: path.to_owned(), before, label });
        }
        Ok(())
    })?;
    Ok(Plan { changed, files })
}

impl Plan {
    /// A plan that changes no label.
    pub(super) fn nothing(changed: Changed) -> Self {
        Self { changed, files: HashMap::new() }
    }

    /// The files, by path.
    pub(super) fn files(&self) -> Vec<Labelled> {
        let mut files: Vec<Labelled> = self.files.values().cloned().collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }

    /// Existing paths at which files may have other labels.
    pub(super) fn places(&self) -> Vec<String> {
        let there = |prefix: String| {
            let mut ancestors = Path::new(&prefix).ancestors();
            ancestors.find(|path| path.exists()).map(|path| path.display().to_string())
        };
        self.changed.prefixes().filter_map(there).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Sets the labels; `done` collects the files that have theirs, also if it fails.
    pub(super) fn restore(&self, client: &mut Client, done: &mut Vec<Place>) -> anyhow::Result<()> {
        self.each(|place, planned, file| {
            if interrupt::came() {
                bail!("interrupted");
            }
            let set = client.set_label(file, &planned.label);
            set.with_context(|| format!("cannot label {} {}", planned.path.display(), planned.label))?;
            done.push(place);
            Ok(())
        })
    }

    /// Sets the previous labels again.
    pub(super) fn undo(&self, client: &mut Client, done: &[Place]) -> anyhow::Result<()> {
        self.each(|place, planned, file| {
            if done.contains(&place) && !planned.before.is_empty() {
                let set = client.set_label(file, &planned.before);
                set.with_context(|| format!("cannot label {} {}", planned.path.display(), planned.before))?;
            }
            Ok(())
        })
    }

    fn each(&self, mut act: impl FnMut(Place, &Labelled, BorrowedFd<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        walk(&self.changed, &mut |_, object, file| {
            let place = object.place();
            self.files.get(&place).map_or(Ok(()), |planned| act(place, planned, file))
        })
    }
}

type Visit<'v> = dyn FnMut(&Path, Object<'_>, BorrowedFd<'_>) -> anyhow::Result<()> + 'v;

/// Visits all files that may get another label; directories that cannot be read are reported.
fn walk(changed: &Changed, visit: &mut Visit<'_>) -> anyhow::Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let mountinfo = fs::read("/proc/self/mountinfo").context("cannot read what is mounted")?;
    for mount in changed.places(&mountinfo) {
        let mut visit = |path: &Path, file: BorrowedFd<'_>| visit(path, Object::anywhere(file)?, file);
        let mut skip = |path: &Path, cause: io::Error| {
            eprintln!("tollgate: {}: {cause}", for_people(path.as_os_str().as_encoded_bytes()))
        };
        tree::walk_where(&mount.point, &|path| changed.concerns(path), &mut visit, &mut skip)
            .with_context(|| format!("below {}", mount.point.display()))?;
    }
    Ok(())
}
