//! `tollgate container hook`: what a runtime calls after it has made a container's first process and cgroup, and before that
//! executes the container's program. If it fails, the container does not start.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail, ensure};
use clap::Args;
use nix::unistd::getppid;
use serde::Deserialize;
use tollgate_client::{Client, pidfd};

/// The annotation that names another type for a container's processes.
const TYPE: &str = "tollgate/type";
/// The largest state and config.json that are read, in bytes.
const MAX_SIZE: u64 = 16 << 20;
/// Where podman and CRI-O keep the files that they make for each container: hosts, resolv.conf.
const STORES: [&str; 2] = ["/run/containers/storage", "/var/lib/containers/storage"];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The context of the container's processes; without a range, they get two categories that no other container has
    #[arg(long, default_value = "system_u:system_r:container_t")]
    context: String,
    /// The label of the container's files, likewise
    #[arg(long, default_value = "system_u:object_r:container_file_t")]
    files: String,
}

/// What a runtime writes to a hook's standard input: the container's state in the OCI runtime specification.
#[derive(Debug, Deserialize)]
struct State {
    status: String,
    #[serde(default)]
    pid: i32,
    bundle: PathBuf,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The parts of config.json that matter here.
#[derive(Debug, Deserialize)]
struct Config {
    root: Root,
    #[serde(default)]
    mounts: Vec<Mount>,
}

#[derive(Debug, Deserialize)]
struct Root {
    path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Mount {
    source: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let state: State = serde_json::from_reader(io::stdin().lock().take(MAX_SIZE))
        .context("standard input is not the state of a container, which an OCI runtime writes to its hooks")?;
    if state.status == "stopped" {
        Client::connect()?.sweep_containers()?;
    } else {
        start(&arguments, &state).context("the container does not start")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn start(arguments: &Arguments, state: &State) -> anyhow::Result<()> {
    ensure!(state.pid > 0, "its state names no process");
    let process = pidfd::open(state.pid).with_context(|| format!("its process {} has ended", state.pid))?;
    // If it had ended, another process could have its number by now.
    ensure!(is_below(state.pid, getppid().as_raw()), "process {} is not of this runtime", state.pid);
    let config = state.bundle.join("config.json");
    let read = File::open(&config).with_context(|| format!("cannot read {}", config.display()))?;
    let Config { root, mounts } = serde_json::from_reader(io::BufReader::new(read.take(MAX_SIZE)))
        .with_context(|| format!("{} is not a container's configuration", config.display()))?;
    let root = state.bundle.join(root.path);
    let directory = open(&root, libc::O_DIRECTORY).with_context(|| format!("cannot open {}", root.display()))?;
    let context = with_type(&arguments.context, state.annotations.get(TYPE).map(String::as_str))?;
    let mut client = Client::connect()?;
    let (_, files) = client.contain(process.as_fd(), Some(directory.as_fd()), &context, &arguments.files)?;
    for file in mounts.iter().filter_map(|mount| own_file(mount.source.as_deref()?, &state.bundle)) {
        let opened = open(&file, libc::O_NOFOLLOW).with_context(|| format!("cannot open {}", file.display()))?;
        client.set_label(opened.as_fd(), &files).with_context(|| format!("cannot label {}", file.display()))?;
    }
    Ok(())
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC | flags).open(path)
}

/// A context with another type.
fn with_type(context: &str, type_: Option<&str>) -> anyhow::Result<String> {
    let Some(type_) = type_ else { return Ok(context.to_owned()) };
    let words: Vec<&str> = context.splitn(4, ':').collect();
    if type_.contains(':') || words.len() < 3 {
        bail!("the annotation {TYPE} is {type_:?}, and not a type such as container_t");
    }
    Ok([&words[..2], &[type_], &words[3..]].concat().join(":"))
}

/// Whether a process has another one among its ancestors.
fn is_below(process: i32, ancestor: i32) -> bool {
    let parent = |process: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    std::iter::successors(Some(process), |process| parent(*process).filter(|parent| *parent > 1))
        .skip(1)
        .any(|process| process == ancestor)
}

/// The source of a mount, if it is a file that the container's manager has made for this container alone.
fn own_file(source: &Path, bundle: &Path) -> Option<PathBuf> {
    // .../overlay-containers/ID/userdata
    let identifier = bundle.parent()?.file_name()?;
    let source = fs::canonicalize(source).ok()?;
    let own = STORES.iter().filter_map(|store| source.strip_prefix(store).ok()).any(|inside| {
        let mut names = inside.iter();
        names.next().is_some_and(|name| name.to_string_lossy().ends_with("-containers"))
            && names.next() == Some(identifier)
    });
    (own && source.is_file()).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_type_of_an_annotation_and_nothing_else() {
        let context = "system_u:system_r:container_t";
        assert_eq!(with_type(context, None).unwrap(), context);
        assert_eq!(with_type(context, Some("web_t")).unwrap(), "system_u:system_r:web_t");
        assert_eq!(
            with_type(&format!("{context}:s0:c1,c2"), Some("web_t")).unwrap(),
            "system_u:system_r:web_t:s0:c1,c2"
        );
        assert!(with_type(context, Some("web_t:s15")).is_err());
    }

    #[test]
    fn knows_its_ancestors_from_other_processes() {
        let own = std::process::id() as i32;
        assert!(is_below(own, getppid().as_raw()));
        assert!(!is_below(own, own) && !is_below(getppid().as_raw(), own));
    }

    #[test]
    fn labels_no_file_of_another_container() {
        assert_eq!(
            own_file(Path::new("/etc/passwd"), Path::new("/run/containers/storage/overlay-containers/1/userdata")),
            None
        );
    }
}
