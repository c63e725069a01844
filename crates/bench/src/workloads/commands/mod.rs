//! Whole commands, as people run them, with which a model of the small workloads is compared (docs/model.md).
//!
//! They are a family of their own, which `@all` leaves out, because a command takes a thousand times as long as anything
//! else. `make`, which is in Flask's family, is such a command too.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    Error,
    workload::{Group, Operation, Scope, Tasks, Workload},
};

mod rsync;
mod script;
mod storm;
mod web;

/// Samples on the instruction clock, after one run that warms up.
pub(super) const SAMPLES: u32 = 4;

/// The search path for programs.
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
    Workload {
        name: "web",
        about: "a server on one page each of 200 TCP connections, of 100 pages of 4 KB in 10 directories",
        group: Group::Commands,
        tasks: Tasks::Several,
        scope: Scope::File,
        samples: SAMPLES,
        setup: web::web,
    },
    Workload {
        name: "storm",
        about: "100 children at once, each of which executes a program and ends",
        group: Group::Commands,
        tasks: Tasks::Several,
        scope: Scope::File,
        samples: SAMPLES,
        setup: storm::storm,
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

/// A command that runs repeatedly in one folder. Dropping it removes the given files.
pub(super) struct Repeated {
    pub(super) folder: PathBuf,
    /// The program and its arguments.
    pub(super) words: &'static [&'static str],
    /// Removes from the folder what a run has left there.
    pub(super) clean: fn(&Path) -> io::Result<()>,
    /// Files and trees in the folder that runs need.
    pub(super) given: Vec<PathBuf>,
}

impl Operation for Repeated {
    fn before(&mut self) -> io::Result<()> {
        (self.clean)(&self.folder)
    }

    fn reach(&self) -> u32 {
        1
    }

    fn leaves_work(&self) -> bool {
        true
    }

    fn warm_ups(&self, _: usize) -> usize {
        1
    }

    fn run(&mut self) -> io::Result<()> {
        let mut command = Command::new(self.words[0]);
        command.args(&self.words[1..]).current_dir(&self.folder).stdin(Stdio::null()).env_clear();
        // Temporary files are on the measured file system; the environment is the same on every machine.
        command.env("PATH", PATH).env("TMPDIR", &self.folder).env("LC_ALL", "C");
        finish(command)
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        // What cannot be removed is removed with the place.
        let _ = (self.clean)(&self.folder);
        for path in &self.given {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// Removes a tree, if it exists.
fn remove(tree: &Path) -> io::Result<()> {
    match fs::remove_dir_all(tree) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Runs it to its end. An error contains the beginning of the command's messages.
fn finish(mut command: Command) -> io::Result<()> {
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
        let words = &["sh", "-c", "echo; echo no such luck >&2; exit 3"];
        let mut failing = Repeated { folder: folder.path().to_owned(), words, clean: |_| Ok(()), given: Vec::new() };
        let error = failing.run().unwrap_err().to_string();
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
