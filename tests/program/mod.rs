//! The program under test: run with a scratch folder of its own, waited for with a deadline, killed by its own process number
//! when a test fails.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tollgate_study::results::{ConfigurationResult, Results, WorkloadResult};

pub(crate) mod auditors;
pub(crate) mod extract;
pub(crate) mod figures;
pub(crate) mod guests;
pub(crate) mod inside;
pub(crate) mod machine;
pub(crate) mod namespace;
pub(crate) mod pair;
pub(crate) mod saved;
pub(crate) mod steps;
pub(crate) mod switch;

/// The program as it was built.
const BUILT: &str = env!("CARGO_BIN_EXE_tollgate");

/// A program that runs longer hangs, even where other work leaves it a third of a processor.
const DEADLINE: Duration = Duration::from_secs(if cfg!(feature = "long") { 3600 } else { 1800 });

/// How often conditions are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The folder of one test, which is removed after the test.
pub(crate) struct Scratch {
    folder: TempDir,
    program: TempDir,
}

impl Scratch {
    /// An empty folder, with a folder for the program's temporary files.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("tg-").tempdir().expect("make a scratch folder");
        // A link of its own, if links can be made: a build must not change the program during a test, and a copy might still
        // be open for writing in another test's child when this one starts it.
        let program = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("make a folder for the program");
        fs::hard_link(BUILT, program.path().join("tollgate")).expect("link the program");
        // What `make install` takes from beside it. `make` builds both.
        let fleet = Path::new(BUILT).with_file_name("tollgate-fleet");
        if fleet.is_file() {
            fs::hard_link(fleet, program.path().join("tollgate-fleet")).expect("link the fleet's program");
        }
        let scratch = Self { folder, program };
        fs::create_dir(scratch.temporary()).expect("make a folder for temporary files");
        scratch
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the folder.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("write a file of the test");
        path
    }

    /// Where the programs that run in it have their temporary folders, and no others.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path("tmp")
    }

    /// The path of the program.
    pub(crate) fn program(&self) -> PathBuf {
        self.program.path().join("tollgate")
    }

    /// The program with these arguments, not started yet.
    pub(crate) fn tollgate(&self, arguments: &[&str]) -> Command {
        self.command(self.program(), arguments)
    }

    /// Another program in the same environment.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env("TMPDIR", self.temporary()).env_remove("NO_COLOR");
        command
    }

    /// Starts a command; its streams go to files, because a pipe could fill.
    pub(crate) fn start(&self, mut command: Command) -> Running {
        let streams = tempfile::tempdir_in(self.folder.path()).expect("make a folder for the streams");
        // Of its own, so that what it leaves behind is told from what others have that still run. The name is short: there are
        // sockets below it, whose paths have 107 bytes at most.
        let temporary = tempfile::Builder::new().prefix("").rand_bytes(3).tempdir_in(self.temporary());
        let temporary = temporary.expect("make a folder for temporary files");
        command.env("TMPDIR", temporary.path());
        let open = |name: &str| File::create(streams.path().join(name)).expect("make a file for a stream");
        command.stdin(Stdio::null()).stdout(open("stdout")).stderr(open("stderr"));
        // A process group of its own, which gets signals as from a terminal's Ctrl-C.
        command.process_group(0);
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let child = command.spawn().expect("start the program");
        Running { child, words, streams, started: Instant::now(), temporary }
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.finish(self.tollgate(arguments))
    }

    /// Runs a command to its end.
    pub(crate) fn finish(&self, command: Command) -> Ended {
        self.start(command).finish()
    }
}

/// A running program, which is killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    /// Its arguments.
    words: Vec<String>,
    streams: TempDir,
    started: Instant,
    /// Its TMPDIR.
    temporary: TempDir,
}

impl Running {
    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.stream("stdout")
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.stream("stderr")
    }

    fn stream(&self, name: &str) -> String {
        let bytes = fs::read(self.streams.path().join(name)).expect("read a stream");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until a condition holds while the program runs.
    pub(crate) fn wait_until(&mut self, what: &str, mut come: impl FnMut(&Self) -> bool) {
        let started = Instant::now();
        while !come(self) {
            let ended = self.child.try_wait().expect("wait for the program");
            assert!(ended.is_none(), "ended before {what}: {ended:?}\n{}{}", self.stdout(), self.stderr());
            assert!(started.elapsed() < DEADLINE, "waited too long for {what}\n{}", self.stderr());
            sleep(POLL_INTERVAL);
        }
    }

    /// Ctrl-C: the signal goes to its process group.
    pub(crate) fn interrupt(&self) {
        signal("INT", &format!("-{}", self.pid()));
    }

    /// The emulators among its children: `/proc/PID/task/TID/children` of all its threads.
    pub(crate) fn emulators(&self) -> Vec<u32> {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.pid())) else { return Vec::new() };
        let children =
            threads.filter_map(Result::ok).filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
        let pids: Vec<u32> = children
            .flat_map(|c| c.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .filter_map(|pid| pid.parse().ok())
            .collect();
        // Between fork and exec a child still has the program's own command line.
        pids.into_iter().filter(|pid| command_line(*pid).starts_with("qemu-system")).collect()
    }

    /// Waits for its end, without checks: for a program that was killed.
    pub(crate) fn wait_for_end(&mut self) {
        self.child.wait().expect("wait for the program");
    }

    /// Waits until it has ended, and returns its processor time, which can be read until it is waited for.
    pub(crate) fn until_ended(&self) -> Duration {
        let started = Instant::now();
        loop {
            if let Some(processor) = figures::processor_of_ended(self.pid()) {
                return processor;
            }
            assert!(started.elapsed() < DEADLINE, "does not end\n{}{}", self.stdout(), self.stderr());
            sleep(POLL_INTERVAL);
        }
    }

    /// Waits for its end. Nothing may be left then: no process with its temporary folder in its command line, no file there.
    pub(crate) fn finish(mut self) -> Ended {
        let started = Instant::now();
        let processor = self.until_ended();
        let status = self.child.wait().expect("wait for the program");
        figures::note(&self.words, self.started.elapsed(), processor);
        let ended = Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            took: started.elapsed(),
        };
        let place = word(self.temporary.path()).to_owned();
        let left: Vec<String> = processes().map(command_line).filter(|line| line.contains(&place)).collect();
        assert!(left.is_empty(), "processes were left behind: {left:?}\n{}", ended.stderr);
        let files: Vec<PathBuf> = entries(self.temporary.path());
        assert!(files.is_empty(), "files were left behind: {files:?}\n{}", ended.stderr);
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_for(what: &str, come: impl Fn() -> bool) {
    let started = Instant::now();
    while !come() {
        assert!(started.elapsed() < DEADLINE, "waited too long for {what}");
        sleep(POLL_INTERVAL);
    }
}

/// Sends a signal to a process, or with a minus sign to a group, by the shell's `kill`, which every system has.
pub(crate) fn signal(name: &str, target: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -s {name} -- {target}")]).status().expect("run sh");
    assert!(status.success(), "kill -{name} {target}");
}

fn processes() -> impl Iterator<Item = u32> {
    entries(Path::new("/proc")).into_iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok())
}

fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The entries of a folder; none if it does not exist.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).collect()
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit status; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// How long the test waited for its end.
    pub(crate) took: Duration,
}

impl Ended {
    /// Returns itself, if it ended with this exit status.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "signal {:?}\n{}{}", self.signal, self.stdout, self.stderr);
        self
    }

    /// Returns itself, if it ended with status 2 and an error that contains all these words.
    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) -> Self {
        let ended = self.with(2).says(words);
        assert!(ended.stdout.is_empty(), "an error, and yet output: {}", ended.stdout);
        ended
    }

    /// Returns itself, if standard error contains all these words and no panic.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        assert!(!self.stderr.contains("RUST_BACKTRACE"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "does not say {word:?}: {}", self.stderr);
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON, {e}: {}", self.stdout))
    }
}

/// The results in a study's output folder.
#[track_caller]
pub(crate) fn results(out: &Path) -> Results {
    let path = out.join("results.json");
    let text = fs::read(&path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A configuration's entry of the only kernel there is.
#[track_caller]
pub(crate) fn configuration<'r>(results: &'r Results, name: &str) -> &'r ConfigurationResult {
    let found = results.configurations.iter().find(|c| c.name == name);
    found.unwrap_or_else(|| panic!("no {name} among the results"))
}

/// A workload's entry of a configuration.
#[track_caller]
pub(crate) fn workload<'r>(of: &'r ConfigurationResult, name: &str) -> &'r WorkloadResult {
    of.workload(name).unwrap_or_else(|| panic!("{} has no {name}: {:?} {:?}", of.name, of.unmeasured, of.notes))
}

/// Fails if a configuration could not measure a workload.
#[track_caller]
pub(crate) fn assert_all_measured(results: &Results) {
    for configuration in &results.configurations {
        let (kernel, name) = (&configuration.kernel, &configuration.name);
        assert!(configuration.unmeasured.is_empty(), "{kernel} {name}: {:?}", configuration.unmeasured);
        assert!(!configuration.workloads.is_empty(), "{kernel} {name}: {:?}", configuration.notes);
    }
}

/// Prints a figure that has a line in docs/verify.md. `make verify` fails if a goal is not met.
pub(crate) fn report(what: &str, figure: &str, goal: &str, met: bool) {
    println!("{what}: {figure} (goal: {goal}): {}", if met { "met" } else { "NOT MET" });
}

/// The same for a time by the wall clock, with its spread if there is one. Other work changes it, so it is no verdict.
pub(crate) fn report_time(what: &str, figure: &str, goal: &str) {
    println!("{what}: {figure} (goal: {goal}): by the wall clock, no verdict");
}

/// A path as a word of a command line.
pub(crate) fn word(path: &Path) -> &str {
    path.to_str().expect("scratch paths are UTF-8")
}
