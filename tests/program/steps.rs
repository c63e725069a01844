//! A guest with a policy, and its steps; the C library, installed as `make` does.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

pub(crate) use crate::program::machine::{policy, source};
use crate::program::{Ended, Running, Scratch, guests::Taken, machine::Machine, word};

/// Shell variables for the contexts of tests/enforcer/policy.cil.
const PRELUDE: &str = "\
at() { echo system_u:system_r:$1:s0-s15:c0.c1023; }
of() { echo system_u:object_r:$1:s0; }
as() { domain=$1; shift; tollgate run --context $(at $domain) -- \"$@\"; }
daemon() { cat /run/tollgate/lock; }
";
/// The C library, and the program of tests/enforcer/calls.c against it.
pub(crate) struct Library {
    pub(crate) shared: PathBuf,
    pub(crate) calls: PathBuf,
}

/// Installs the library in a folder of the test, and compiles the program as pkg-config says.
pub(crate) fn library(scratch: &Scratch) -> Library {
    let (root, build) = (scratch.path("root"), scratch.path("lib"));
    let repository = source(".");
    let places = [format!("LIBRARY={}", word(&build)), format!("DESTDIR={}", word(&root)), "PREFIX=/usr".to_owned()];
    let mut command = scratch.command("make", &["-s", "-C", word(&repository), "install-lib"]);
    command.args(places);
    scratch.finish(command).with(0);
    let installed = root.join("usr/lib");
    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "tollgate"]).env("PKG_CONFIG_SYSROOT_DIR", &root);
    let flags = flags.env("PKG_CONFIG_LIBDIR", installed.join("pkgconfig")).output().expect("run pkg-config");
    assert!(flags.status.success(), "{flags:?}");
    let flags = String::from_utf8(flags.stdout).unwrap();
    let calls = scratch.path("calls");
    let mut cc = scratch.command("cc", &["-Wall", "-Wextra", "-Werror", "-pthread", "-o", word(&calls)]);
    cc.arg(source("tests/enforcer/calls.c")).args(flags.split_whitespace());
    // The first path is for this machine, which looks up the program's libraries; the second for the guest.
    cc.arg(format!("-Wl,-rpath,{}:/usr/local/lib", word(&installed)));
    scratch.finish(cc).with(0);
    Library { shared: installed.join("libtollgate.so.0"), calls }
}

/// Runs the script.
const COMMAND: [&str; 2] = ["sh", "/script"];

/// What one step of a guest's script printed, and its exit status.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    code: i32,
    pub(crate) text: String,
}

impl Step {
    #[track_caller]
    pub(crate) fn is(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{}", self.text);
        for word in words {
            assert!(self.text.contains(word), "does not say {word:?}: {}", self.text);
        }
        self
    }

    /// The output as JSON, without the program's messages beside it.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let lines: String = self.text.split_inclusive('\n').filter(|line| !line.starts_with("tollgate: ")).collect();
        serde_json::from_str(&lines).unwrap_or_else(|error| panic!("no JSON, {error}: {}", self.text))
    }
}

/// The time limit of a guest, in seconds. It takes a minute by itself, and several on newer kernels or beside other guests.
pub(crate) const TIMEOUT: u32 = if cfg!(feature = "long") { 1800 } else { 1200 };

/// A guest with the policy `/policy`, and its steps.
pub(crate) struct Guest<'s> {
    scratch: &'s Scratch,
    kernel: &'static str,
    lsm: &'static str,
    files: Vec<(PathBuf, String)>,
    modules: Vec<&'static str>,
    volumes: Vec<PathBuf>,
    wire: Option<(PathBuf, PathBuf)>,
    /// The name of the file with the script in the scratch folder.
    name: String,
    script: String,
    timeout: u32,
}

impl<'s> Guest<'s> {
    pub(crate) fn new(scratch: &'s Scratch, kernel: &'static str) -> Self {
        let built = policy(scratch, "policy", &[source("tests/enforcer/policy.cil")]);
        Self::under(scratch, kernel, &built)
    }

    /// A guest with another policy.
    pub(crate) fn under(scratch: &'s Scratch, kernel: &'static str, built: &Path) -> Self {
        let guest = Self {
            scratch,
            kernel,
            lsm: "yama,bpf",
            files: Vec::new(),
            modules: Vec::new(),
            volumes: Vec::new(),
            wire: None,
            name: "script".to_owned(),
            script: PRELUDE.to_owned(),
            timeout: TIMEOUT,
        };
        guest.with(built, "/policy").with(&scratch.program(), "/bin/tollgate")
    }

    /// Gives it an end of a wire.
    pub(crate) fn wire(self, own: &Path, other: &Path) -> Self {
        Self { wire: Some((own.to_owned(), other.to_owned())), ..self }
    }

    /// Names its script: two guests of one test need different names.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Adds functions for the shell that runs the steps.
    pub(crate) fn names(mut self, functions: &str) -> Self {
        self.script.push_str(functions);
        self
    }

    pub(crate) fn lsm(mut self, list: &'static str) -> Self {
        self.lsm = list;
        self
    }

    /// Sets the time limit, in seconds.
    pub(crate) fn timeout(mut self, seconds: u32) -> Self {
        self.timeout = seconds;
        self
    }

    /// Loads modules of the kernel before the steps run.
    pub(crate) fn modules(mut self, names: &[&'static str]) -> Self {
        self.modules.extend(names);
        self
    }

    /// Attaches a disk, which keeps the guest's changes.
    pub(crate) fn volume(mut self, image: &Path) -> Self {
        self.volumes.push(image.to_owned());
        self
    }

    pub(crate) fn with(mut self, host: &Path, guest: &str) -> Self {
        self.files.push((host.to_owned(), guest.to_owned()));
        self
    }

    pub(crate) fn with_library(self) -> Self {
        let Library { shared, calls } = library(self.scratch);
        self.with(&calls, "/bin/calls").with(&shared, "/usr/local/lib/libtollgate.so.0")
    }

    /// Adds a step, named after what it shows.
    pub(crate) fn step(mut self, name: &str, line: &str) -> Self {
        self.script.push_str(&step(name, line));
        self
    }

    /// Adds lines of the shell that are no step.
    pub(crate) fn lines(mut self, lines: &str) -> Self {
        self.script.push_str(lines);
        self
    }

    /// Boots it and runs the steps.
    pub(crate) fn run(self) -> BTreeMap<String, Step> {
        steps(&self.boot().with(0).stdout)
    }

    /// Boots it and runs the steps, the last of which resets the machine without a shutdown.
    pub(crate) fn run_until_cut(self) {
        // The output of the steps must arrive before.
        let ended = self.step("cut", "sleep 1; echo b > /proc/sysrq-trigger; sleep 60").boot();
        assert!(ended.stdout.trim_end().ends_with("@ cut"), "{}\n{}", ended.stdout, ended.stderr);
    }

    /// Boots it; it runs until it ends, or is killed.
    pub(crate) fn start(self) -> (Running, Taken) {
        self.machine().start(&COMMAND)
    }

    /// The command that starts it, with its scratch folder.
    pub(crate) fn prepare(self) -> (&'s Scratch, Command) {
        (self.scratch, self.machine().prepare(&COMMAND))
    }

    fn machine(self) -> Machine<'s> {
        let script = self.scratch.file(&self.name, &self.script);
        let machine = Machine::new(self.scratch, self.kernel, self.lsm, self.timeout);
        let machine = machine.modules(&self.modules).file(&script, "/script");
        let machine = self.files.iter().fold(machine, |machine, (host, guest)| machine.file(host, guest));
        let machine = self.volumes.iter().fold(machine, |machine, image| machine.option(&["--volume", word(image)]));
        self.wire.iter().fold(machine, |machine, (own, other)| machine.wire(own, other))
    }

    fn boot(self) -> Ended {
        let (running, _place) = self.start();
        running.finish()
    }
}

/// The shell lines of a step, whose output [`steps`] finds.
pub(super) fn step(name: &str, line: &str) -> String {
    format!("echo \"@ {name}\"\n{{ {line}\n}} 2>&1\necho \"@= $?\"\n")
}

/// The steps in a script's output, by their names.
pub(super) fn steps(output: &str) -> BTreeMap<String, Step> {
    let (mut steps, mut name, mut text) = (BTreeMap::new(), String::new(), String::new());
    for line in output.lines() {
        if let Some(code) = line.strip_prefix("@= ") {
            let step = Step { code: code.parse().unwrap(), text: std::mem::take(&mut text) };
            // Printed if the test fails.
            println!("@ {name}: {}", step.text.chars().take(1500).collect::<String>());
            steps.insert(std::mem::take(&mut name), step);
        } else if let Some(next) = line.strip_prefix("@ ") {
            name = next.to_owned();
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    assert!(name.is_empty(), "{name} did not end:\n{text}");
    steps
}
