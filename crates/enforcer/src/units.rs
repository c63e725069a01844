//! Contexts of systemd units. A process of the machine that executes a program in a unit's cgroup gets the unit's
//! context (`bpf/unit.h`). The administrator sets it by `SELinuxContext=` in unit files and drop-ins, or by `tollgate
//! unit`.

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

/// The minimum time between two readings of unit files. A service manager may write many in a row.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(500);

/// The context of a unit's processes, as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The context; empty: the rules of the policy decide.
    pub context: String,
    /// Whether the unit runs even if the policy does not have the context (`SELinuxContext=-...`).
    pub ignorable: bool,
    /// The file that sets it.
    pub source: PathBuf,
}

impl Setting {
    /// Reads a value of `SELinuxContext=` in a file.
    fn of(value: &str, source: &Path) -> Self {
        let (context, ignorable) = value.strip_prefix('-').map_or((value, false), |context| (context, true));
        Self { context: context.trim().replace("%%", "%"), ignorable, source: source.to_owned() }
    }
}

/// A unit as the daemon reports it to clients.
#[must_use]
pub fn unit(name: &Name, setting: Setting, problem: Option<String>) -> Unit {
    let Setting { context, ignorable, source } = setting;
    Unit { name: name.to_string(), context, source, problem, ignorable }
}

/// Where units and their contexts are configured.
#[derive(Debug, Clone)]
pub struct Places {
    /// systemd's directories of unit files. The first one with a file counts.
    pub load: Vec<PathBuf>,
    /// The file that `tollgate unit` writes.
    pub local: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { load: systemd::LOAD_PATH.map(PathBuf::from).to_vec(), local: local::FILE.into() }
    }
}

/// What was read from all places.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Settings by unit.
    pub units: BTreeMap<Name, Setting>,
    /// What could not be read, with the reasons.
    pub messages: Vec<String>,
}

impl Table {
    /// Reads all places. The local file takes precedence over systemd's.
    #[must_use]
    pub fn read(places: &Places) -> Self {
        let (mut units, mut messages) = systemd::read(&places.load);
        match local::read(&places.local) {
            Ok(lines) => units.extend(lines),
            Err(cause) => messages.push(cause.to_string()),
        }
        // An instance without a setting is included only if its template has one.
        let spoken: BTreeSet<Name> =
            units.iter().filter(|(_, setting)| !setting.context.is_empty()).map(|(name, _)| name.clone()).collect();
        units.retain(|name, setting| {
            !setting.context.is_empty() || name.template().is_some_and(|template| spoken.contains(&template))
        });
        Self { units, messages }
    }
}

/// The table as it was last read.
#[derive(Debug)]
pub struct Units {
    places: Places,
    watch: Option<Watch>,
    changed: bool,
    read: Instant,
}

impl Units {
    /// Begins to watch. If that is not possible, the table is read only when a client requests it.
    #[must_use]
    pub fn new(places: Places) -> Self {
        let watch = Watch::new().inspect_err(|cause| {
            warn!(%cause, "changes of unit files are seen by `tollgate unit list` only: {cause}");
        });
        Self { places, watch: watch.ok(), changed: true, read: Instant::now() }
    }

    /// Becomes readable when a file has changed.
    pub fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// The table, if a file has changed since it was last read, and that is long enough ago. `came`: whether
    /// [`Self::wakes`] is readable.
    pub fn changed(&mut self, came: bool) -> Option<Table> {
        self.changed |= came && self.watch.as_ref().is_some_and(Watch::take);
        (self.changed && self.read.elapsed() >= MIN_READ_INTERVAL).then(|| self.read())
    }

    /// The table as it is now.
    pub fn read(&mut self) -> Table {
        // This comes before the files are read, so that changes made meanwhile are seen.
        let watched = self.watch.as_mut().map_or(Ok(()), |watch| {
            watch.take();
            let mut watched = systemd::watched(&self.places.load);
            watched.files.insert(self.places.local.clone());
            watch.look_at(&watched)
        });
        let mut table = Table::read(&self.places);
        table
            .messages
            .extend(watched.err().map(|cause: io::Error| format!("changes of unit files are not noticed: {cause}")));
        (self.changed, self.read) = (false, Instant::now());
        table
    }
}

#[cfg(test)]
mod tests;
