//! Contexts of systemd's units: who executes a program in a unit's cgroup, and is the machine's, gets the unit's context
//! (`bpf/unit.h`). Whoever runs the machine says which, by `SELinuxContext=` in unit files and drop-ins, or by `tollgate unit`.

pub mod local;
pub mod names;
pub mod systemd;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tollgate_client::units::Unit;
use tracing::warn;

use self::{names::Name, watch::Watch};

/// Unit files are not read again more often than that: a service manager may make many in a row.
const PAUSE: Duration = Duration::from_millis(500);

/// What the processes of a unit become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The context; empty: what the policy says.
    pub context: String,
    /// The unit runs also where the policy does not know the context (`SELinuxContext=-...`).
    pub ignorable: bool,
    /// The file that says so.
    pub source: PathBuf,
}

impl Setting {
    /// That of a value of `SELinuxContext=`, in a file.
    fn of(value: &str, source: &Path) -> Self {
        let (context, ignorable) = value.strip_prefix('-').map_or((value, false), |context| (context, true));
        Self { context: context.trim().replace("%%", "%"), ignorable, source: source.to_owned() }
    }
}

/// A unit for callers of the daemon, as it is written down.
#[must_use]
pub fn unit(name: &Name, setting: Setting, problem: Option<String>) -> Unit {
    let Setting { context, ignorable, source } = setting;
    Unit { name: name.to_string(), context, source, problem, ignorable }
}

/// Where units and their contexts are written down.
#[derive(Debug, Clone)]
pub struct Places {
    /// systemd's directories of unit files; the first that has a file counts.
    pub load: Vec<PathBuf>,
    /// What `tollgate unit` writes.
    pub local: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { load: systemd::LOAD_PATH.map(PathBuf::from).to_vec(), local: local::FILE.into() }
    }
}

/// What was read of all places.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Settings by unit.
    pub units: BTreeMap<Name, Setting>,
    /// What could not be read.
    pub told: Vec<String>,
}

impl Table {
    /// Reads all places; the local file counts more than systemd's.
    #[must_use]
    pub fn read(places: &Places) -> Self {
        let (mut units, mut told) = systemd::read(&places.load);
        match local::read(&places.local) {
            Ok(lines) => units.extend(lines),
            Err(cause) => told.push(cause.to_string()),
        }
        // An instance that says nothing is told only where its template would speak for it.
        let spoken: BTreeSet<Name> =
            units.iter().filter(|(_, setting)| !setting.context.is_empty()).map(|(name, _)| name.clone()).collect();
        units.retain(|name, setting| {
            !setting.context.is_empty() || name.template().is_some_and(|template| spoken.contains(&template))
        });
        Self { units, told }
    }
}

/// The table, kept as it is written down.
#[derive(Debug)]
pub struct Units {
    places: Places,
    watch: Option<Watch>,
    changed: bool,
    read: Instant,
}

impl Units {
    /// Begins to watch. Where that cannot be, the table is read when it is asked for.
    #[must_use]
    pub fn new(places: Places) -> Self {
        let watch = Watch::new().inspect_err(|cause| {
            warn!(%cause, "changes of unit files are seen by `tollgate unit list` only: {cause}");
        });
        Self { places, watch: watch.ok(), changed: true, read: Instant::now() }
    }

    /// What can be read from when a file has changed.
    pub fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// The table, if a file has changed since it was last read and that is not too short ago.
    pub fn changed(&mut self) -> Option<Table> {
        self.changed |= self.watch.as_ref().is_some_and(Watch::take);
        (self.changed && self.read.elapsed() >= PAUSE).then(|| self.read())
    }

    /// The table as it is now.
    pub fn read(&mut self) -> Table {
        // Before files are read: what changes meanwhile is seen.
        let watched = self.watch.as_mut().map_or(Ok(()), |watch| {
            watch.take();
            watch.look_at(&systemd::directories(&self.places.load), &self.places.local)
        });
        let mut table = Table::read(&self.places);
        table.told.extend(watched.err().map(|cause: io::Error| format!("changes of unit files are not seen: {cause}")));
        (self.changed, self.read) = (false, Instant::now());
        table
    }
}

#[cfg(test)]
mod tests;
