//! Command lines of a study's own: whole programs, with every process that works for them.
//!
//! What a command causes is more than what its processes do: the kernel writes files to the disk, and a module's daemon labels.
//! A run therefore ends when files are written and all have had time for that; the processor's idle time is left out.

use std::{
    fs::File,
    io::{self, Read, Seek},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    thread::sleep,
    time::Duration,
};

use nix::{
    sys::{
        memfd::{MFdFlags, memfd_create},
        signal::{Signal, killpg},
    },
    unistd::{Pid, sync},
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{Group, Operation, Prepared, Scope, Tasks, Workload},
};

/// Time for what works in the background, before a run and at its end. Tollgate's daemon moves the checkpoint of a file system
/// three to four seconds after a change.
const REST: Duration = Duration::from_secs(6);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What all command lines have in common.
pub(crate) static WORKLOAD: Workload = Workload {
    name: "command",
    about: "a command line of the study",
    group: Group::Commands,
    tasks: Tasks::Several,
    scope: Scope::File,
    samples: 3,
    setup: |_| Err(Error::Unavailable("the study does not say which command to run".into())),
};

/// A command line. Its scripts are sh's, and run in an empty folder of the measured file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLine {
    /// Its name, as that of a workload.
    pub name: String,
    /// Run once, before anything is measured. Processes that it leaves in the background end with the command's last run.
    pub set_up: String,
    /// Run before each run, without being measured.
    pub before: String,
    /// What is measured. Unless it returns 0, there is no figure.
    pub run: String,
}

impl CommandLine {
    pub(crate) fn set_up(self: &Arc<Self>, place: &Place) -> Prepared {
        Ok(Box::new(self.start(place)?))
    }

    fn start(self: &Arc<Self>, place: &Place) -> Result<Runs, Error> {
        let said = memfd_create("said", MFdFlags::MFD_CLOEXEC).context("make a file in memory")?;
        let mut runs = Runs { line: self.clone(), folder: place.dir.clone(), said: said.into(), group: None };
        let what = || format!("the set-up of {}", self.name);
        // A group of its own, by which all that it leaves behind can be ended.
        let mut child = runs.shell(&self.set_up).and_then(|mut shell| shell.process_group(0).spawn()).context(what())?;
        runs.group = Some(Pid::from_raw(child.id().cast_signed()));
        let status = child.wait().context(what())?;
        runs.check(status).context(what())?;
        Ok(runs)
    }
}

/// The runs of a command line in one folder. Dropping it ends what the set-up has left in the background.
struct Runs {
    line: Arc<CommandLine>,
    folder: PathBuf,
    /// What the scripts write to standard error.
    said: File,
    /// The processes of the set-up.
    group: Option<Pid>,
}

impl Runs {
    fn shell(&self, script: &str) -> io::Result<Command> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-ec", script]).current_dir(&self.folder).env_clear();
        // The environment is the same on every machine, and temporary files are on the measured file system.
        shell.env("PATH", PATH).env("HOME", &self.folder).env("TMPDIR", &self.folder).env("LC_ALL", "C");
        self.said.set_len(0)?;
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(self.said.try_clone()?);
        Ok(shell)
    }

    fn execute(&self, script: &str) -> io::Result<()> {
        self.check(self.shell(script)?.status()?)
    }

    fn check(&self, status: ExitStatus) -> io::Result<()> {
        if status.success() {
            return Ok(());
        }
        let mut said = String::new();
        let mut file = &self.said;
        file.rewind()?;
        file.read_to_string(&mut said)?;
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
        Err(io::Error::other(format!("{status}: {last}")))
    }
}

impl Operation for Runs {
    fn before(&mut self) -> io::Result<()> {
        self.execute(&self.line.before)?;
        finish();
        Ok(())
    }

    fn reach(&self) -> u32 {
        1
    }

    fn sleeps(&self) -> bool {
        true
    }

    fn warm_ups(&self, _: usize) -> usize {
        1
    }

    fn run(&mut self) -> io::Result<()> {
        let done = self.execute(&self.line.run);
        finish();
        done
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // Most often nothing is left.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Writes files to their disks, and gives the rest of the machine time.
fn finish() {
    sync();
    sleep(REST);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Network;

    fn line(set_up: &str, run: &str) -> Arc<CommandLine> {
        let [set_up, before, run] = [set_up, "rm -f made", run].map(str::to_owned);
        Arc::new(CommandLine { name: "mine".into(), set_up, before, run })
    }

    fn place(folder: &std::path::Path) -> Place {
        Place::new(folder.to_owned(), Network::Loopback, folder.to_owned())
    }

    /// Without the rest that is given to the machine.
    fn run(line: &Arc<CommandLine>, place: &Place) -> Result<(), String> {
        let runs = line.start(place).map_err(|error| error.to_string())?;
        for script in [&line.before, &line.run] {
            runs.execute(script).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    #[test]
    fn runs_in_the_measured_folder_and_as_often_as_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let line = line("echo once >>set-up", "[ -s set-up ]; set -C; pwd >made");
        // The folder goes with its place.
        let place = place(folder.path());
        for _ in 0..2 {
            run(&line, &place).unwrap();
        }
        let made = std::fs::read_to_string(folder.path().join("made")).unwrap();
        assert_eq!(made.trim(), folder.path().to_str().unwrap());
    }

    #[test]
    fn reports_what_a_script_says_when_a_step_of_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path());
        let error = run(&line("", "echo first >&2; echo no such luck >&2; false; true"), &place).unwrap_err();
        assert_eq!(error, "exit status: 1: no such luck");
        let error = run(&line("exit 3", "true"), &place).unwrap_err();
        assert_eq!(error, "the set-up of mine: exit status: 3: it does not say why");
    }

    #[test]
    fn ends_what_the_set_up_has_left_in_the_background() {
        let folder = tempfile::tempdir().unwrap();
        let line = line("sleep 1000 & echo $! >process", "true");
        let place = place(folder.path());
        let runs = line.start(&place).unwrap();
        let process = std::fs::read_to_string(folder.path().join("process")).unwrap();
        let process = PathBuf::from(format!("/proc/{}/stat", process.trim()));
        assert!(process.exists());
        drop(runs);
        let begun = std::time::Instant::now();
        // An orphan that nobody waits for stays as a zombie.
        let is_over = || std::fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "));
        while !is_over() && begun.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(10));
        }
        assert!(is_over());
    }
}
