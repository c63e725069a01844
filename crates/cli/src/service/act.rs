//! What confining a service changes on the machine: its module of policy, the context of its unit, and a restart.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tollgate_client::{Client, process, protocol::Attribute};
use tollgate_service::{machine, module::Module, unit::Unit};

use crate::{
    enforcer::label,
    store::{self, Options},
    unit,
};

/// How long to wait until a unit has a process.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The folder of local modules.
const MODULES: &str = "/etc/tollgate/policy.d";

/// Refuses a name if an administrator has written its module.
pub(super) fn check_free(name: &str) -> anyhow::Result<()> {
    let path = Path::new(MODULES).join(format!("{name}.cil"));
    if path.exists() {
        bail!(
            "{} exists, and was not made by this command: move it away, or confine the service by it",
            path.display()
        );
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
    let contexts = (!file_contexts.is_empty()).then(|| file_contexts.as_bytes().to_vec());
    store::change(&Options::brief(), |contents, _| {
        let replaced = contents.install(name, module.to_string().into_bytes(), contexts)?;
        Ok(vec![format!("module {name}: {}", if replaced { "replaced" } else { "installed" })])
    })?;
    Ok(())
}

/// Builds the policy without a module and puts it in force.
pub(super) fn remove(name: &str) -> anyhow::Result<()> {
    store::change(&Options::brief(), |contents, _| {
        contents.remove(name)?;
        Ok(vec![format!("module {name}: removed")])
    })?;
    Ok(())
}

/// Sets the context of a unit's processes; `None` removes it.
pub(super) fn set_unit(unit: &Unit, context: Option<&str>) -> anyhow::Result<()> {
    unit::assign(&unit::name(&unit.name)?, context).map(drop)
}

/// Gives files the labels of file_contexts.
pub(super) fn restore(paths: BTreeSet<PathBuf>) -> anyhow::Result<()> {
    if paths.is_empty() || label::restore(paths.into_iter().collect())? {
        return Ok(());
    }
    bail!("not all files could be given their labels")
}

/// Restarts a unit.
pub(super) fn restart(unit: &Unit) -> anyhow::Result<()> {
    let status = Command::new("systemctl").args(["restart", "--", &unit.name]).status();
    let status = status.context("cannot start systemctl")?;
    if !status.success() {
        bail!("`systemctl restart {0}` failed: `systemctl status {0}` and `tollgate audit` say why", unit.name);
    }
    Ok(())
}

/// The domains of a unit's processes, with the number of processes in each. Waits until there is one; a job that has ended
/// has none.
pub(super) fn domains(unit: &Unit) -> anyhow::Result<Vec<(String, usize)>> {
    let until = Instant::now() + START_TIMEOUT;
    loop {
        let unit = machine::unit(&unit.name)?;
        let pids = unit.cgroup.as_deref().map(machine::processes).unwrap_or_default();
        let found = domains_of(&pids)?;
        if !found.is_empty() || unit.is_job() || Instant::now() >= until {
            return Ok(found);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn domains_of(pids: &[i32]) -> anyhow::Result<Vec<(String, usize)>> {
    let mut client = Client::connect()?;
    let mut found: Vec<(String, usize)> = Vec::new();
    for pid in pids {
        // Processes that have ended meanwhile are left out.
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
