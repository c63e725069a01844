//! What this machine knows about a service, through `systemctl`, `dpkg-query` and `/proc`.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    listening::{Listening, Protocol, inodes},
    package::{self, Package},
    service::Service,
    unit::{Unit, UnitError, service_name},
};

/// Where cgroup v2 is mounted.
const CGROUPS: &str = "/sys/fs/cgroup";
/// The first port that the kernel assigns by itself, if /proc does not say which it is.
const EPHEMERAL: u16 = 32768;

/// Why a service cannot be examined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// Its unit cannot be confined.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A program failed.
    #[error("`{command}` failed: {why}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// Its error message.
        why: String,
    },
    /// The program of a service cannot be read.
    #[error("cannot look at {}: {cause}", path.display())]
    Program {
        /// Path of the program.
        path: PathBuf,
        /// What the system returned.
        cause: io::Error,
    },
    /// The file cannot be executed.
    #[error("{} is not a program: it is not an executable file (chmod +x, and a #! line if it is a script)", .0.display())]
    NoProgram(PathBuf),
}

/// The service with this name: that of a unit, with or without `.service`, or the path of a program that something
/// other than systemd starts.
pub fn service(name: &str) -> Result<Service, MachineError> {
    let mut service = match name.starts_with('/') {
        true => Service::of_program(&executable(Path::new(name))?),
        false => Service::of_unit(unit(name)?)?,
    };
    service.package = package_of(&service);
    if is_of_others(&service) {
        service.program = service.program.shared();
    }
    service.is_script = is_script(service.program.path());
    service.listening = listening(&service);
    Ok(service)
}

/// The unit with this name.
pub fn unit(name: &str) -> Result<Unit, MachineError> {
    let named = service_name(name).map_err(|error| match error {
        UnitError::NoService { name, .. } => {
            let triggers =
                run("systemctl", &["show", "--property=Triggers", "--value", "--", &name]).unwrap_or_default();
            UnitError::NoService { name, triggers: triggers.split_whitespace().map(str::to_owned).collect() }
        }
        other => other,
    })?;
    Ok(Unit::parse(&run("systemctl", &["show", "--", &named])?)?)
}

fn executable(path: &Path) -> Result<PathBuf, MachineError> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |cause| MachineError::Program { path: path.to_path_buf(), cause };
    let path = fs::canonicalize(path).map_err(failed)?;
    let found = fs::metadata(&path).map_err(failed)?;
    if found.is_file() && found.permissions().mode() & 0o111 != 0 {
        Ok(path)
    } else {
        Err(MachineError::NoProgram(path))
    }
}

fn is_script(path: &Path) -> bool {
    let mut first = [0; 2];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"#!"
}

/// Runs a program and returns its output.
fn run(program: &str, arguments: &[&str]) -> Result<String, MachineError> {
    let command = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output();
    let output = output.map_err(|cause| MachineError::Failed { command: command(), why: cause.to_string() })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(MachineError::Failed { command: command(), why })
}

/// The processes in a cgroup and in those below it.
#[must_use]
pub fn processes(cgroup: &Path) -> Vec<i32> {
    let mut folders = vec![Path::new(CGROUPS).join(cgroup.strip_prefix("/").unwrap_or(cgroup))];
    let mut pids = Vec::new();
    while let Some(folder) = folders.pop() {
        let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        pids.extend(listed.lines().filter_map(|line| line.parse::<i32>().ok()));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    pids
}

/// What the processes of a service listen on now.
#[must_use]
pub fn listening(service: &Service) -> Listening {
    let mut listening = Listening::default();
    let Some(cgroup) = service.unit().and_then(|unit| unit.cgroup.as_deref()) else { return listening };
    let pids = processes(cgroup);
    let held: BTreeSet<u64> = pids.iter().flat_map(|pid| open_sockets(*pid)).collect();
    let Some(first) = pids.first() else { return listening };
    // The tables of the service's network namespace, which may not be this program's.
    let table = |name: &str| fs::read_to_string(format!("/proc/{first}/net/{name}")).unwrap_or_default();
    let ephemeral = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ephemeral = ephemeral.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(EPHEMERAL);
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for file in protocol.files() {
            listening.add_inet(protocol, &table(file), &held, ephemeral);
        }
    }
    listening.add_unix(&table("unix"), &held);
    listening
}

fn open_sockets(pid: i32) -> BTreeSet<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let links: Vec<String> = links.filter_map(|link| link.into_os_string().into_string().ok()).collect();
    inodes(links.iter().map(String::as_str))
}

/// The program that a process runs.
#[must_use]
pub fn program_of(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The package of a service, if dpkg knows one: that of its unit, or else of its program.
fn package_of(service: &Service) -> Option<Package> {
    let name = match service.unit() {
        Some(unit) => unit.fragment.as_deref().and_then(owner),
        None => owner(service.program.path()),
    }?;
    let source = source(&name)?;
    let files: BTreeSet<PathBuf> = packages_of(&source).iter().flat_map(|package| files(package)).collect();
    let conffiles = run("dpkg-query", &["--show", "--showformat=${Conffiles}\n", "--", &name]);
    Some(Package {
        conffiles: package::conffiles(&conffiles.unwrap_or_default()),
        folders: own_folders(&files, &source),
        name,
    })
}

/// Whether the program of a unit belongs to a package that is not built from the unit's source: then others start it as
/// well.
fn is_of_others(service: &Service) -> bool {
    let Some(package) = service.unit().and_then(|_| owner(service.program.path())) else { return false };
    let own = service.package.as_ref().and_then(|package| source(&package.name));
    source(&package) != own
}

/// The directories among these files in which no package of another source has files.
fn own_folders(files: &BTreeSet<PathBuf>, own: &str) -> BTreeSet<PathBuf> {
    let folders = package::folders(files.iter().map(PathBuf::as_path));
    let names: Vec<&str> = folders.iter().filter_map(|folder| folder.to_str()).collect();
    if names.is_empty() {
        return BTreeSet::new();
    }
    let owners = package::owners(&run("dpkg-query", &[&["--search", "--"], &names[..]].concat()).unwrap_or_default());
    let is_own = |packages: &BTreeSet<String>| packages.iter().all(|package| source(package).as_deref() == Some(own));
    owners.into_iter().filter(|(_, packages)| is_own(packages)).map(|(path, _)| path).collect()
}

/// The package of a file. If /bin is a link to /usr/bin, dpkg may know the file by either name.
fn owner(path: &Path) -> Option<String> {
    let other = match path.strip_prefix("/usr") {
        Ok(rest) => Path::new("/").join(rest),
        Err(_) => Path::new("/usr").join(path.strip_prefix("/").unwrap_or(path)),
    };
    [path, &other].into_iter().find_map(|path| {
        let found = run("dpkg-query", &["--search", "--", path.to_str()?]).ok()?;
        package::owners(&found).remove(path)?.into_iter().next()
    })
}

/// The source from which a package was built.
fn source(package: &str) -> Option<String> {
    let shown = run("dpkg-query", &["--show", "--showformat=${source:Package}\n", "--", package]).ok()?;
    shown.lines().next().map(str::to_owned)
}

/// The installed packages that were built from a source.
fn packages_of(source: &str) -> Vec<String> {
    let format = "--showformat=${source:Package} ${db:Status-Status} ${binary:Package}\n";
    let shown = run("dpkg-query", &["--show", format]).unwrap_or_default();
    let name = |line: &str| {
        let rest = line.strip_prefix(source)?.strip_prefix(" installed ")?;
        Some(rest.to_owned())
    };
    shown.lines().filter_map(name).collect()
}

fn files(package: &str) -> Vec<PathBuf> {
    let listed = run("dpkg-query", &["--listfiles", "--", package]).unwrap_or_default();
    listed.lines().filter(|line| line.starts_with('/')).map(PathBuf::from).collect()
}
