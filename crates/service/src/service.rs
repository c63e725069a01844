//! A service: what starts it, what runs, which package it comes from, what it listens on.

use std::path::{Path, PathBuf};

use crate::{
    listening::Listening,
    package::Package,
    program::Program,
    unit::{Unit, UnitError},
};

/// What starts a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Starter {
    /// systemd, through a unit.
    Unit(Box<Unit>),
    /// Any process that executes the program, for example cron or a user's shell.
    Anyone,
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// What starts it.
    pub starter: Starter,
    /// What it runs.
    pub program: Program,
    /// Whether the program is a script (`#!`), which an interpreter runs.
    pub is_script: bool,
    /// Its package; `None`: it does not come from one.
    pub package: Option<Package>,
    /// What it listens on now.
    pub listening: Listening,
}

/// How processes enter its domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// By executing its program, which has a label of its own.
    Program,
    /// By being started in its unit, whatever the program.
    Unit,
}

impl Service {
    /// The service of a unit, about which nothing else is known yet.
    pub fn of_unit(unit: Unit) -> Result<Self, UnitError> {
        let program = unit.start.first().and_then(|words| Program::of(words, &unit.folder));
        let Some(program) = program else { return Err(UnitError::Umbrella { name: unit.name, parts: Vec::new() }) };
        let starter = Starter::Unit(Box::new(unit));
        Ok(Self { starter, program, is_script: false, package: None, listening: Listening::default() })
    }

    /// The service of a program that something other than systemd starts.
    #[must_use]
    pub fn of_program(path: &Path) -> Self {
        Self {
            starter: Starter::Anyone,
            program: Program::Own(path.to_path_buf()),
            is_script: false,
            package: None,
            listening: Listening::default(),
        }
    }

    /// Its unit; `None`: it is not started by one.
    #[must_use]
    pub fn unit(&self) -> Option<&Unit> {
        match &self.starter {
            Starter::Unit(unit) => Some(unit),
            Starter::Anyone => None,
        }
    }

    /// Its name: that of the unit without `.service`, or of the program without directory and extension.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.starter {
            Starter::Unit(unit) => unit.stem().to_owned(),
            Starter::Anyone => {
                let stem = self.program.path().file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            }
        }
    }

    /// How its domain is entered.
    #[must_use]
    pub fn entry(&self) -> Entry {
        match self.program {
            Program::Own(_) => Entry::Program,
            Program::Shared { .. } => Entry::Unit,
        }
    }

    /// Whether its processes belong to root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.unit().is_none_or(Unit::is_root)
    }
}

/// The role of a file in a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The program by which the domain is entered.
    Program,
    /// Content of the service, which everybody may read.
    Content,
    /// Configuration.
    Configuration,
    /// Data that the service keeps.
    Data,
    /// Logs.
    Log,
    /// Files that exist while it runs: sockets, PID files.
    Run,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Program, Self::Content, Self::Configuration, Self::Data, Self::Log, Self::Run];

    /// The type of such files in the service's block.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Program => "exec_t",
            Self::Content => "content_t",
            Self::Configuration => "conf_t",
            Self::Data => "data_t",
            Self::Log => "log_t",
            Self::Run => "run_t",
        }
    }
}

/// A file of a service, or a directory with everything in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Path of the file or directory.
    pub path: PathBuf,
    /// What it is to the service.
    pub kind: Kind,
    /// Whether it is a directory.
    pub is_folder: bool,
}

/// Each directory in these belongs to one service. With the kind of files there.
const ROOTS: [(&str, Kind); 13] = [
    ("/opt", Kind::Content),
    ("/srv", Kind::Content),
    ("/usr/local/lib", Kind::Content),
    ("/usr/local/share", Kind::Content),
    ("/usr/share", Kind::Content),
    ("/etc", Kind::Configuration),
    ("/usr/local/etc", Kind::Configuration),
    ("/var/lib/private", Kind::Data),
    ("/var/lib", Kind::Data),
    ("/var/cache", Kind::Data),
    ("/var/spool", Kind::Data),
    ("/var/log", Kind::Log),
    ("/run", Kind::Run),
];

/// Directories in them that many services share.
const SHARED: [&str; 14] = [
    "/etc/default",
    "/etc/init.d",
    "/etc/systemd",
    "/etc/cron.d",
    "/etc/logrotate.d",
    "/etc/ssl",
    "/etc/pam.d",
    "/var/lib/dpkg",
    "/var/lib/private",
    "/var/lib/systemd",
    "/var/spool/cron",
    "/run/systemd",
    "/run/lock",
    "/run/user",
];

/// The service's own directory that contains a path, and the kind of files there.
fn own_folder(path: &Path) -> Option<Place> {
    let path = match path.strip_prefix("/var/run") {
        Ok(rest) => Path::new("/run").join(rest),
        Err(_) => path.to_path_buf(),
    };
    let (root, kind) = ROOTS.iter().find(|(root, _)| path.starts_with(root) && path != Path::new(root))?;
    let first = path.strip_prefix(root).ok()?.components().next()?;
    let folder = Path::new(root).join(first);
    let shared = SHARED.iter().any(|shared| folder == Path::new(shared));
    (!shared).then_some(Place { path: folder, kind: *kind, is_folder: true })
}

/// The place of a file: its service's directory if there is one, else the file itself.
fn around(file: &Path) -> Option<Place> {
    let place = own_folder(file)?;
    let is_folder = place.path != file;
    Some(Place { is_folder, ..place })
}

impl Service {
    /// The service's own files. Directories come before what is in them.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let mut found: Vec<Place> = Vec::new();
        if let Some(file) = self.program.file() {
            found.push(Place { path: file.to_path_buf(), kind: Kind::Program, is_folder: false });
            found.extend(around(file).filter(|place| place.is_folder && place.kind == Kind::Content));
        }
        if let Some(unit) = self.unit() {
            found.extend(of_unit(unit));
        }
        found.extend(self.listening.sockets.iter().filter_map(|socket| around(socket)));
        if let Some(package) = &self.package {
            found.extend(package.folders.iter().filter_map(|folder| own_folder(folder)));
            let in_etc = |path: &&PathBuf| path.parent() == Some(Path::new("/etc"));
            let file = |path: &PathBuf| Place { path: path.clone(), kind: Kind::Configuration, is_folder: false };
            found.extend(package.conffiles.iter().filter(in_etc).map(file));
        }
        settle(found)
    }
}

/// The places in the unit's settings.
fn of_unit(unit: &Unit) -> Vec<Place> {
    let directories = &unit.directories;
    let named = [
        (&directories.configuration, Kind::Configuration),
        (&directories.state, Kind::Data),
        (&directories.cache, Kind::Data),
        (&directories.logs, Kind::Log),
        (&directories.runtime, Kind::Run),
    ];
    let mut found: Vec<Place> = Vec::new();
    for (paths, kind) in named {
        found.extend(paths.iter().map(|path| Place { path: path.clone(), kind, is_folder: true }));
        if unit.dynamic_user {
            found.extend(paths.iter().filter_map(|path| private(path)).map(|path| Place {
                path,
                kind,
                is_folder: true,
            }));
        }
    }
    found.extend(unit.pid_file.as_deref().and_then(around));
    found.extend(unit.writable.iter().filter_map(|path| {
        let place = own_folder(path)?;
        // A service does not write to its own content, so this is data.
        let kind = if place.kind == Kind::Content { Kind::Data } else { place.kind };
        Some(Place { path: path.clone(), kind, ..place })
    }));
    found.extend(own_folder(&unit.folder));
    found
}

/// Where systemd keeps the directories of a dynamic user.
fn private(path: &Path) -> Option<PathBuf> {
    let roots = ["/var/lib", "/var/cache", "/var/log"];
    roots.iter().find_map(|root| Some(Path::new(root).join("private").join(path.strip_prefix(root).ok()?)))
}

/// Each path once, with the first kind that was found, without paths in a directory of the same kind.
fn settle(found: Vec<Place>) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for place in found {
        if !places.iter().any(|other| other.path == place.path) {
            places.push(place);
        }
    }
    places.sort();
    let holds = |other: &Place, place: &Place| {
        other.is_folder && other.kind == place.kind && other.path != place.path && place.path.starts_with(&other.path)
    };
    let kept = places.iter().filter(|place| !places.iter().any(|other| holds(other, place)));
    kept.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listening::{Port, Protocol};

    const PYTHON: &str = include_str!("../fixtures/python.show");
    const NGINX: &str = include_str!("../fixtures/nginx.show");

    fn service(text: &str) -> Service {
        Service::of_unit(Unit::parse(text).unwrap()).unwrap()
    }

    fn texts(places: &[Place]) -> Vec<String> {
        let text = |place: &Place| {
            let tree = if place.is_folder { "/" } else { "" };
            format!("{}{tree} {}", place.path.display(), place.kind.type_name())
        };
        places.iter().map(text).collect()
    }

    #[test]
    fn enters_by_the_unit_where_an_interpreter_runs_and_by_the_program_elsewhere() {
        assert_eq!((service(PYTHON).entry(), service(PYTHON).name()), (Entry::Unit, "notes".to_owned()));
        assert_eq!((service(NGINX).entry(), service(NGINX).name()), (Entry::Program, "nginx".to_owned()));
        let script = Service::of_program(Path::new("/usr/local/sbin/report.sh"));
        assert_eq!((script.entry(), script.name()), (Entry::Program, "report".to_owned()));
    }

    #[test]
    fn finds_the_files_that_the_unit_names() {
        let mut service = service(PYTHON);
        service.listening.ports.insert(Port { protocol: Protocol::Tcp, number: 8085 });
        service.listening.sockets.insert("/run/other/socket".into());
        let expected = [
            "/opt/notes/ content_t",
            "/opt/notes/notes.py exec_t",
            "/run/notes/ run_t",
            "/run/other/ run_t",
            "/var/lib/notes/ data_t",
        ];
        assert_eq!(texts(&service.places()), expected);
    }

    #[test]
    fn finds_the_files_of_the_package() {
        let mut service = service(NGINX);
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        service.package = Some(Package {
            name: "nginx-common".to_owned(),
            conffiles: paths(&["/etc/nginx/nginx.conf", "/etc/nginx.conf", "/etc/default/nginx"]),
            folders: paths(&["/etc/nginx", "/usr/share/nginx", "/var/lib/nginx", "/var/log/nginx"]),
        });
        let expected = [
            "/etc/nginx/ conf_t",
            "/etc/nginx.conf conf_t",
            "/run/nginx.pid run_t",
            "/usr/sbin/nginx exec_t",
            "/usr/share/nginx/ content_t",
            "/var/lib/nginx/ data_t",
            "/var/log/nginx/ log_t",
        ];
        assert_eq!(texts(&service.places()), expected);
    }

    #[test]
    fn labels_no_directory_that_others_have_files_in() {
        for path in
            ["/", "/usr/bin/x", "/etc", "/etc/default/x", "/var/lib", "/run", "/home/ann/x", "/tmp/x", "/run/user/0/x"]
        {
            assert_eq!(own_folder(Path::new(path)), None, "{path}");
        }
        assert_eq!(own_folder(Path::new("/var/run/x/y")).unwrap().path, Path::new("/run/x"));
    }

    #[test]
    fn knows_where_the_directories_of_a_made_up_user_are() {
        let mut unit = Unit { dynamic_user: true, ..Unit::default() };
        unit.directories.state.push("/var/lib/notes".into());
        assert_eq!(texts(&settle(of_unit(&unit))), ["/var/lib/notes/ data_t", "/var/lib/private/notes/ data_t"]);
    }
}
