//! Commands of a study's own, and the Debian system that they run in.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use tollgate_bench::{command_line::CommandLine, counter::Counter, selection::Selection};
use tollgate_debian::SUITE;
use tollgate_vm::system::Recipe;

use super::{
    HOST, Study,
    raw::{At, Raw, RawCommand},
    wrong::{Wrong, word, wrong},
};

/// The size of the system's disk in MiB.
const SIZE: u32 = 2048;
/// What labels the system's files.
const LABELLER: &str = "policycoreutils";

/// A command that the study file defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCommand {
    /// What is run.
    pub line: Arc<CommandLine>,
    /// One line for people.
    pub about: String,
    /// Debian packages that it needs.
    pub packages: Vec<String>,
    /// Files of the host, by their paths in the guest.
    pub files: BTreeMap<String, PathBuf>,
}

impl Study {
    /// The Debian system in which the study's commands run. `labels` is the text of a `file_contexts`.
    pub(crate) fn recipe(&self, labels: String) -> Recipe {
        let packages = self.commands.iter().flat_map(|command| command.packages.iter().cloned());
        Recipe {
            release: SUITE.into(),
            packages: packages.chain([LABELLER.to_owned()]).collect(),
            script: String::new(),
            labels: Some(labels),
            size: SIZE,
        }
    }
}

/// The commands of a study file.
pub(super) fn commands(raw: &Raw) -> Result<Vec<OwnCommand>, Wrong> {
    let Some(first) = raw.command.first() else { return Ok(Vec::new()) };
    if raw.clock == Counter::Wall || raw.kernels.get_ref().iter().any(|kernel| kernel.get_ref() == HOST) {
        return wrong(&first.name, "commands are measured in guests on the instruction clock; leave out `clock`");
    }
    let mut all: Vec<OwnCommand> = Vec::new();
    for table in &raw.command {
        let name = table.name.get_ref();
        if all.iter().any(|command| command.line.name == *name) {
            return wrong(&table.name, format!("{name:?} is defined twice; leave one out"));
        }
        all.push(command(table)?);
        let names = |at: &At<String>| at.get_ref().split(':').next() == Some(name);
        if !raw.workloads.get_ref().iter().any(names) {
            return wrong(&table.name, format!("{name:?} is defined but not measured; add it to `workloads`"));
        }
    }
    Ok(all)
}

fn command(raw: &RawCommand) -> Result<OwnCommand, Wrong> {
    word(&raw.name, "a command's name")?;
    let name = raw.name.get_ref().clone();
    if name.parse::<Selection>().is_ok() {
        return wrong(&raw.name, format!("{name:?} is a workload already; give your own another name"));
    }
    if let Some((path, _)) = raw.files.iter().find(|(path, _)| !path.get_ref().starts_with('/')) {
        return wrong(path, "a path in the guest begins with `/`; the host's path stands on the right");
    }
    raw.packages.iter().try_for_each(check_package)?;
    let (set_up, before, run) = (raw.set_up.clone(), raw.before.clone(), raw.run.clone());
    Ok(OwnCommand {
        line: Arc::new(CommandLine { name, set_up, before, run }),
        about: raw.about.clone(),
        packages: raw.packages.iter().map(|package| package.get_ref().clone()).collect(),
        files: raw.files.iter().map(|(guest, host)| (guest.get_ref().clone(), host.clone())).collect(),
    })
}

/// Names are those of packages alone: no version, no suite, no option of apt.
fn check_package(at: &At<String>) -> Result<(), Wrong> {
    let name = at.get_ref();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits) {
        return Ok(());
    }
    wrong(at, format!("{name:?} is not the name of a Debian package"))
}
