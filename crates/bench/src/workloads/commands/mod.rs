//! Whole commands, as people give them: what a model of the small workloads is held against (docs/model.md).
//!
//! These are a family by themselves, which `@all` leaves out: a command takes a thousand times as long as anything else.
//! With them belongs `make`, which is Flask's.

use std::{
    io,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    Error,
    workload::{Group, Scope, Tasks, Workload},
};

mod rsync;
mod script;

/// Samples on the instruction clock, after one run that warms up.
pub(super) const SAMPLES: u32 = 4;

/// Where programs are looked for.
const PATH: &str = "/usr/bin:/bin";

pub(super) static WORKLOADS: &[Workload] = &[
    Workload {
        name: "rsync",
        about: "rsync -a of a tree of 160 files of 4 KB in 16 directories to where nothing is",
        group: Group::Commands,
        tasks: Tasks::Several,
        scope: Scope::File,
        samples: SAMPLES,
        setup: rsync::rsync,
    },
    Workload {
        name: "script",
        about: "a shell script of 63 commands: cp, grep, sed, cat, chmod, mv, ls, mkdir, sort, rm",
        group: Group::Commands,
        tasks: Tasks::Several,
        scope: Scope::File,
        samples: SAMPLES,
        setup: script::script,
    },
];

/// Fails with the remedy if one of the programs is not there.
pub(super) fn require(workload: &str, programs: &[&str], packages: &str) -> Result<(), Error> {
    let is_there = |program: &str| PATH.split(':').any(|folder| Path::new(folder).join(program).exists());
    match programs.iter().find(|program| !is_there(program)) {
        None => Ok(()),
        Some(program) => Err(Error::Unavailable(format!(
            "there is no {program} in {PATH}: install {packages}, or leave out {workload}"
        ))),
    }
}

/// A command whose environment is the same on every machine; what it has to say is kept for [`finish`].
pub(super) fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null()).env_clear();
    // Temporary files lie on the file system that is measured.
    command.env("PATH", PATH).env("TMPDIR", folder).env("LC_ALL", "C");
    command
}

/// Runs it to its end. A failure says what the command said first.
pub(super) fn finish(mut command: Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
    Err(io::Error::other(format!("{}: {}: {first}", command.get_program().display(), output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_what_a_command_says_and_its_status() {
        let folder = tempfile::tempdir().unwrap();
        let mut failing = command("sh", folder.path());
        failing.args(["-c", "echo; echo no such luck >&2; exit 3"]);
        let error = finish(failing).unwrap_err().to_string();
        assert_eq!(error, "sh: exit status: 3: no such luck");
    }

    #[test]
    fn names_the_package_of_a_program_that_is_not_there() {
        let error = require("weave", &["sh", "loom-of-jacquard"], "the package loom").unwrap_err().to_string();
        assert!(error.contains("there is no loom-of-jacquard in /usr/bin:/bin"), "{error}");
        assert!(error.ends_with("install the package loom, or leave out weave"), "{error}");
        require("script", &["sh"], "busybox").unwrap();
    }
}
