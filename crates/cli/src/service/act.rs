//! What confining a service changes on the machine: its module of policy, its unit's context, and that it starts again.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tollgate_enforcer::{
    client::{Client, process},
    protocol::Attribute,
};
use tollgate_service::{machine, module::Module, unit::Unit};

/// How long a unit may take until it has a process.
const START: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);

/// Where modules of policy are.
const MODULES: &str = "/etc/tollgate/policy.d";

/// Refuses a name whose module somebody else has written.
pub(super) fn check_free(name: &str) -> anyhow::Result<()> {
    let path = Path::new(MODULES).join(format!("{name}.cil"));
    if path.exists() {
        bail!("{} is there, and not made by this command: move it away, or confine the service by it", path.display());
    }
    Ok(())
}

/// The module of a unit or a program, with its name.
pub(super) fn module_of(subject: &str) -> anyhow::Result<Option<(String, Module)>> {
    let entries = fs::read_dir(MODULES).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names: BTreeSet<String> = names.filter_map(|name| Some(name.strip_suffix(".cil")?.to_owned())).collect();
    for name in names {
        let text = fs::read_to_string(Path::new(MODULES).join(format!("{name}.cil"))).unwrap_or_default();
        if let Some(module) = Module::parse(&text).filter(|module| module.subject == subject) {
            return Ok(Some((name, module)));
        }
    }
    Ok(None)
}

/// Builds the policy with a module, puts it in force and keeps it.
pub(super) fn install(name: &str, module: &Module, file_contexts: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("cannot make a folder for the module")?;
    let [policy, contexts] = ["cil", "fc"].map(|kind| folder.path().join(format!("{name}.{kind}")));
    fs::write(&policy, module.to_string()).context("cannot write the module")?;
    let mut files = vec![policy];
    if !file_contexts.is_empty() {
        fs::write(&contexts, file_contexts).context("cannot write the module's file contexts")?;
        files.push(contexts);
    }
    let files = files.into_iter().map(PathBuf::into_os_string);
    tollgate(["policy", "install"].map(Into::into).into_iter().chain(files))
}

/// Builds the policy without a module and puts it in force.
pub(super) fn remove(name: &str) -> anyhow::Result<()> {
    tollgate(["policy", "remove", name].map(Into::into))
}

/// The context of a unit's processes; none: what the policy says.
pub(super) fn set_unit(unit: &Unit, context: Option<&str>) -> anyhow::Result<()> {
    match context {
        Some(context) => tollgate(["unit", "set", &unit.name, context].map(Into::into)),
        None => tollgate(["unit", "unset", &unit.name].map(Into::into)),
    }
}

/// Gives files the labels that file_contexts say.
pub(super) fn restore(paths: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let paths = paths.iter().map(|path| path.clone().into_os_string());
    tollgate(["label", "restore", "-R", "--"].map(Into::into).into_iter().chain(paths))
}

/// Another command of this program.
fn tollgate(words: impl IntoIterator<Item = std::ffi::OsString>) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let words: Vec<_> = words.into_iter().collect();
    let status = Command::new(program).args(&words).status().context("cannot start this program")?;
    if !status.success() {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        bail!("`tollgate {}` failed", words.join(" "));
    }
    Ok(())
}

/// Starts a unit again.
pub(super) fn restart(unit: &Unit) -> anyhow::Result<()> {
    let status = Command::new("systemctl").args(["restart", "--", &unit.name]).status();
    let status = status.context("cannot start systemctl")?;
    if !status.success() {
        bail!("`systemctl restart {0}` failed: `systemctl status {0}` and `tollgate audit` say why", unit.name);
    }
    Ok(())
}

/// The domains of a unit's processes, by how many are in each; waits until there is one. A job has none when it has ended.
pub(super) fn domains(unit: &Unit) -> anyhow::Result<Vec<(String, usize)>> {
    let until = Instant::now() + START;
    loop {
        let unit = machine::unit(&unit.name)?;
        let pids = unit.cgroup.as_deref().map(machine::processes).unwrap_or_default();
        let found = domains_of(&pids)?;
        if !found.is_empty() || unit.is_job() || Instant::now() >= until {
            return Ok(found);
        }
        thread::sleep(LOOK);
    }
}

fn domains_of(pids: &[i32]) -> anyhow::Result<Vec<(String, usize)>> {
    let mut client = Client::connect()?;
    let mut found: Vec<(String, usize)> = Vec::new();
    for pid in pids {
        // What has ended meanwhile is left out.
        let Ok(process) = process(*pid) else { continue };
        let Ok(context) = client.context(Attribute::Current, Some(std::os::fd::AsFd::as_fd(&process))) else {
            continue;
        };
        let domain = context.as_deref().and_then(|context| context.split(':').nth(2)).unwrap_or("?").to_owned();
        match found.iter_mut().find(|(own, _)| *own == domain) {
            Some((_, count)) => *count += 1,
            None => found.push((domain, 1)),
        }
    }
    Ok(found)
}
