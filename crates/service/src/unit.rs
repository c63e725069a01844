//! A systemd unit, as `systemctl show` describes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The suffix of services.
const SUFFIX: &str = ".service";
/// Suffixes of other units, which start services or belong to them.
const OTHERS: [&str; 10] =
    [".socket", ".timer", ".path", ".target", ".mount", ".automount", ".swap", ".slice", ".scope", ".device"];

/// Why a unit cannot be confined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// It is not a service.
    #[error("{name} is not a service: name the service that it starts{}", hint(.triggers))]
    NoService {
        /// Name of the unit.
        name: String,
        /// The units that it starts.
        triggers: Vec<String>,
    },
    /// systemd does not know it.
    #[error("there is no {0}: `systemctl list-units --type=service` lists what runs")]
    Unknown(String),
    /// It cannot run.
    #[error("{0} is masked: `systemctl unmask {0}` first")]
    Masked(String),
    /// Its unit file has an error.
    #[error("systemd cannot use {0}: `systemctl status {0}` says why")]
    Bad(String),
    /// A template has no processes.
    #[error("{0} is a template: name one of its instances, such as {1}")]
    Template(String, String),
    /// It only groups other units.
    #[error("{name} runs nothing itself: name a service that belongs to it{}", hint(.parts))]
    Umbrella {
        /// Name of the unit.
        name: String,
        /// The units that belong to it.
        parts: Vec<String>,
    },
    /// The service sees its files under other paths.
    #[error("{0} runs with another root directory (RootDirectory=, RootImage=), whose files file_contexts cannot name")]
    OtherRoot(String),
    /// It must run to show what it listens on and what its program becomes.
    #[error("{0} is not running, so it is not known what it listens on: `systemctl start {0}` first")]
    Inactive(String),
}

fn hint(units: &[String]) -> String {
    if units.is_empty() { String::new() } else { format!(": {}", units.join(", ")) }
}

/// A unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unit {
    /// Name of the unit, with its suffix.
    pub name: String,
    /// `Type=`.
    pub kind: String,
    /// Whether it is running.
    pub active: bool,
    /// Path of its unit file.
    pub fragment: Option<PathBuf>,
    /// The words of each `ExecStart=`.
    pub start: Vec<Vec<String>>,
    /// The programs of its other commands: before and after it starts, to reload and to stop it.
    pub helpers: BTreeSet<PathBuf>,
    /// The user it runs as; empty: root.
    pub user: String,
    /// Whether systemd allocates a user for it (`DynamicUser=`).
    pub dynamic_user: bool,
    /// Its working directory.
    pub folder: PathBuf,
    /// Directories that systemd makes for it.
    pub directories: Directories,
    /// `ReadWritePaths=`.
    pub writable: Vec<PathBuf>,
    /// The file with its process number.
    pub pid_file: Option<PathBuf>,
    /// Number of its main process.
    pub main: Option<i32>,
    /// Path of its cgroup, below the root of cgroups.
    pub cgroup: Option<PathBuf>,
    /// Units that start it on demand, such as sockets.
    pub triggered_by: Vec<String>,
    /// The capabilities that its processes may have, such as `net_bind_service`.
    pub capabilities: BTreeSet<String>,
    /// The capabilities that it has although it does not run as root.
    pub ambient: BTreeSet<String>,
}

/// Directories that systemd makes before a service starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directories {
    /// `ConfigurationDirectory=`, below `/etc`.
    pub configuration: Vec<PathBuf>,
    /// `StateDirectory=`, below `/var/lib`.
    pub state: Vec<PathBuf>,
    /// `CacheDirectory=`, below `/var/cache`.
    pub cache: Vec<PathBuf>,
    /// `LogsDirectory=`, below `/var/log`.
    pub logs: Vec<PathBuf>,
    /// `RuntimeDirectory=`, below `/run`.
    pub runtime: Vec<PathBuf>,
}

/// The name of a service with the suffix, which may be omitted.
pub fn service_name(name: &str) -> Result<String, UnitError> {
    if OTHERS.iter().any(|other| name.ends_with(other)) {
        return Err(UnitError::NoService { name: name.to_owned(), triggers: Vec::new() });
    }
    Ok(if name.ends_with(SUFFIX) { name.to_owned() } else { format!("{name}{SUFFIX}") })
}

impl Unit {
    /// Reads the output of `systemctl show NAME.service`.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let shown = Shown::of(text);
        let name = shown.one("Id").to_owned();
        match shown.one("LoadState") {
            "loaded" => {}
            "masked" => return Err(UnitError::Masked(name)),
            "not-found" | "" => return Err(UnitError::Unknown(name)),
            _ => return Err(UnitError::Bad(name)),
        }
        if let Some((stem, rest)) = name.split_once('@').filter(|(_, rest)| *rest == "service" || rest.starts_with('.'))
        {
            let example = format!("{stem}@one.{}", rest.trim_start_matches('.'));
            return Err(UnitError::Template(name, example));
        }
        let unit = Self {
            kind: shown.one("Type").to_owned(),
            active: matches!(shown.one("ActiveState"), "active" | "activating" | "reloading"),
            fragment: shown.path("FragmentPath"),
            start: shown.commands(&["ExecStart"]),
            helpers: shown.programs(&HELPERS),
            user: shown.one("User").to_owned(),
            dynamic_user: shown.one("DynamicUser") == "yes",
            folder: shown.path("WorkingDirectory").unwrap_or_else(|| PathBuf::from("/")),
            directories: shown.directories(),
            writable: shown.words("ReadWritePaths").filter_map(bare).collect(),
            pid_file: shown.path("PIDFile"),
            main: shown.one("MainPID").parse().ok().filter(|pid| *pid > 0),
            cgroup: shown.path("ControlGroup"),
            triggered_by: shown.words("TriggeredBy").map(str::to_owned).collect(),
            capabilities: shown.capabilities("CapabilityBoundingSet"),
            ambient: shown.capabilities("AmbientCapabilities"),
            name,
        };
        unit.checked(&shown)
    }

    fn checked(self, shown: &Shown<'_>) -> Result<Self, UnitError> {
        if ["RootDirectory", "RootImage"].iter().any(|root| !matches!(shown.one(root), "" | "/")) {
            return Err(UnitError::OtherRoot(self.name));
        }
        let idle = |words: &Vec<String>| words.first().is_some_and(|first| first.ends_with("/true"));
        if self.start.iter().all(idle) {
            let parts = shown.words("ConsistsOf").filter(|name| name.ends_with(SUFFIX)).map(str::to_owned).collect();
            return Err(UnitError::Umbrella { name: self.name, parts });
        }
        Ok(self)
    }

    /// Checks that it is known what it listens on and what its program becomes: it is running, or it is a job, or it is
    /// started on demand.
    pub fn is_seen(&self) -> Result<(), UnitError> {
        let may_wait = self.is_job() || !self.triggered_by.is_empty();
        if self.active || may_wait { Ok(()) } else { Err(UnitError::Inactive(self.name.clone())) }
    }

    /// Whether it runs for a moment and ends, as jobs do.
    #[must_use]
    pub fn is_job(&self) -> bool {
        self.kind == "oneshot"
    }

    /// Whether its processes belong to root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        matches!(self.user.as_str(), "" | "root" | "0") && !self.dynamic_user
    }

    /// Its name without `.service`.
    #[must_use]
    pub fn stem(&self) -> &str {
        self.name.strip_suffix(SUFFIX).unwrap_or(&self.name)
    }
}

/// The commands beside `ExecStart=`.
const HELPERS: [&str; 6] = ["ExecCondition", "ExecStartPre", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost"];

/// The output as `NAME=VALUE` lines. A name may occur more than once.
struct Shown<'t>(BTreeMap<&'t str, Vec<&'t str>>);

impl<'t> Shown<'t> {
    fn of(text: &'t str) -> Self {
        let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            all.entry(name).or_default().push(value);
        }
        Self(all)
    }

    fn all(&self, name: &str) -> &[&'t str] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn one(&self, name: &str) -> &'t str {
        self.all(name).first().copied().unwrap_or_default()
    }

    fn words(&self, name: &str) -> impl Iterator<Item = &'t str> {
        self.one(name).split_whitespace()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        bare(self.one(name))
    }

    /// The words of each command in these properties.
    fn commands(&self, names: &[&str]) -> Vec<Vec<String>> {
        let values = names.iter().flat_map(|name| self.all(name));
        values.filter_map(|value| command(value)).collect()
    }

    fn programs(&self, names: &[&str]) -> BTreeSet<PathBuf> {
        self.commands(names).into_iter().filter_map(|words| words.into_iter().next()).map(PathBuf::from).collect()
    }

    fn directories(&self) -> Directories {
        let below = |root: &str, name: &str| self.words(name).map(|name| Path::new(root).join(name)).collect();
        Directories {
            configuration: below("/etc", "ConfigurationDirectory"),
            state: below("/var/lib", "StateDirectory"),
            cache: below("/var/cache", "CacheDirectory"),
            logs: below("/var/log", "LogsDirectory"),
            runtime: below("/run", "RuntimeDirectory"),
        }
    }

    fn capabilities(&self, name: &str) -> BTreeSet<String> {
        self.words(name).filter_map(|name| name.strip_prefix("cap_")).map(str::to_owned).collect()
    }
}

/// A path without its prefix: it may be missing (`-`), is relative to the unit's root (`+`), or concerns home
/// directories (`!`).
fn bare(path: &str) -> Option<PathBuf> {
    let path = path.trim_start_matches(['-', '+', '!']);
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// The words of `{ path=/usr/bin/python3 ; argv[]=/usr/bin/python3 /opt/web.py ; ignore_errors=no ; ... }`, with the
/// path of the program. systemd joins words by spaces, so a word with a space comes out as two.
fn command(value: &str) -> Option<Vec<String>> {
    let path = value.split_once("path=")?.1.split(" ; ").next()?;
    let arguments = value.split_once("argv[]=").map_or("", |(_, rest)| rest);
    let arguments = arguments.split_once(" ; ignore_errors=").map_or(arguments, |(words, _)| words);
    let rest = arguments.split_whitespace().skip(1);
    Some(std::iter::once(path).chain(rest).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: &str = include_str!("../fixtures/python.show");
    const NGINX: &str = include_str!("../fixtures/nginx.show");
    const POSTGRESQL: &str = include_str!("../fixtures/postgresql@15-main.show");
    const UMBRELLA: &str = include_str!("../fixtures/postgresql.show");
    const CRON: &str = include_str!("../fixtures/cron.show");

    fn unit(text: &str) -> Unit {
        Unit::parse(text).unwrap()
    }

    #[test]
    fn reads_a_service_of_an_interpreter() {
        let unit = unit(PYTHON);
        assert_eq!(unit.start, [["/usr/bin/python3", "-u", "/opt/notes/notes.py", "--port", "8085"]]);
        assert_eq!((unit.stem(), unit.user.as_str(), unit.is_root()), ("notes", "notes", false));
        assert_eq!(unit.directories.state, [PathBuf::from("/var/lib/notes")]);
        assert_eq!(unit.directories.runtime, [PathBuf::from("/run/notes")]);
        assert_eq!(unit.cgroup.as_deref(), Some(Path::new("/system.slice/notes.service")));
        assert!(unit.active && !unit.is_job() && unit.main.is_some());
    }

    #[test]
    fn reads_the_commands_beside_the_one_that_starts() {
        let unit = unit(NGINX);
        assert_eq!(unit.start[0][0], "/usr/sbin/nginx");
        assert!(unit.helpers.contains(Path::new("/usr/sbin/nginx")), "{:?}", unit.helpers);
        assert!(unit.helpers.contains(Path::new("/sbin/start-stop-daemon")), "{:?}", unit.helpers);
        assert_eq!(unit.pid_file.as_deref(), Some(Path::new("/run/nginx.pid")));
        assert!(unit.is_root() && unit.capabilities.contains("net_bind_service"));
    }

    #[test]
    fn reads_an_instance_and_a_service_that_debian_has_everywhere() {
        assert_eq!(unit(POSTGRESQL).stem(), "postgresql@15-main");
        assert_eq!(unit(POSTGRESQL).start[0][0], "/usr/bin/pg_ctlcluster");
        assert_eq!(unit(CRON).start[0][..2], ["/usr/sbin/cron", "-f"]);
    }

    #[test]
    fn refuses_a_unit_that_stands_for_others_and_names_them() {
        let error = Unit::parse(UMBRELLA).unwrap_err();
        assert!(error.to_string().contains("postgresql@15-main.service"), "{error}");
    }

    #[test]
    fn refuses_what_cannot_run_and_says_what_helps() {
        let error = |text: &str| Unit::parse(text).unwrap_err().to_string();
        assert!(error("Id=x.service\nLoadState=not-found\n").contains("there is no x.service"));
        assert!(error("Id=x.service\nLoadState=masked\n").contains("systemctl unmask x.service"));
        assert!(error("Id=x.service\nLoadState=bad-setting\n").contains("systemctl status x.service"));
        assert!(error("Id=x@.service\nLoadState=loaded\n").contains("x@one.service"));
        let root =
            "Id=x.service\nLoadState=loaded\nRootDirectory=/srv/root\nExecStart={ path=/bin/x ; argv[]=/bin/x ; }\n";
        assert!(error(root).contains("another root directory"));
    }

    #[test]
    fn refuses_a_service_that_does_not_run_unless_it_would_not_always() {
        let stopped = PYTHON.replace("ActiveState=active", "ActiveState=inactive");
        let error = unit(&stopped).is_seen().unwrap_err().to_string();
        assert!(error.contains("systemctl start notes.service"), "{error}");
        assert!(unit(&stopped.replace("Type=simple", "Type=oneshot")).is_seen().is_ok());
        assert!(unit(&format!("{stopped}TriggeredBy=notes.socket\n")).is_seen().is_ok());
        assert!(unit(PYTHON).is_seen().is_ok());
    }

    #[test]
    fn completes_a_service_s_name_and_refuses_other_units() {
        assert_eq!(service_name("web").unwrap(), "web.service");
        assert_eq!(service_name("web.service").unwrap(), "web.service");
        assert_eq!(service_name("a.b").unwrap(), "a.b.service");
        assert!(service_name("web.socket").is_err() && service_name("web.timer").is_err());
    }
}
