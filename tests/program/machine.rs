//! Guests: their kernels and files. All guests of the tests are made here, with the places that they take.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::program::{
    Ended, Running, Scratch,
    guests::{Taken, take},
    saved::Hardware,
    word,
};

/// The path of a file of the repository.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The files of Tollgate's own policy that the policies of tests extend.
pub(crate) fn own_parts() -> Vec<PathBuf> {
    let names = ["10-classes", "20-levels", "30-base", "40-unconfined", "50-mls"];
    names.iter().map(|name| own_part(name)).collect()
}

/// The path of a file of Tollgate's own policy.
pub(crate) fn own_part(name: &str) -> PathBuf {
    source(&format!("policies/tollgate/{name}.cil"))
}

/// Builds a policy of these files, with these options, as `name` in the scratch folder.
pub(crate) fn build(scratch: &Scratch, name: &str, files: &[PathBuf], options: &[&str]) -> PathBuf {
    let out = scratch.path(name);
    let words: Vec<&str> = files.iter().map(|path| word(path)).collect();
    scratch.run(&[&["policy", "build"], &words[..], options, &["-o", word(&out)]].concat()).with(0);
    out
}

/// A policy of the first files of Tollgate's own and these files.
pub(crate) fn policy(scratch: &Scratch, name: &str, files: &[PathBuf]) -> PathBuf {
    build(scratch, name, &[&own_parts(), files].concat(), &[])
}

/// A guest that is not yet started.
pub(crate) struct Machine<'s> {
    scratch: &'s Scratch,
    hardware: Hardware,
    /// Further words of `tollgate vm run`.
    words: Vec<String>,
    /// Whether it must boot. Otherwise it goes on from a saved machine.
    boots: bool,
}

impl<'s> Machine<'s> {
    /// A guest with this kernel and these security modules (`lsm`), which may take so many seconds.
    pub(crate) fn new(scratch: &'s Scratch, kernel: &str, lsm: &str, timeout: u32) -> Self {
        let hardware = Hardware { kernel: kernel.to_owned(), lsm: lsm.to_owned(), processors: 1 };
        let machine = Self { scratch, hardware, words: Vec::new(), boots: false };
        machine.word("--timeout", &timeout.to_string())
    }

    fn word(mut self, option: &str, value: &str) -> Self {
        self.words.extend([option, value].map(str::to_owned));
        self
    }

    /// It boots, because no other test needs one like it: with a saved one, enforcement could start at once.
    pub(crate) fn booted(self) -> Self {
        Self { boots: true, ..self }
    }

    /// Adds options of `tollgate vm run` that only a machine that boots can have.
    pub(crate) fn option(self, words: &[&str]) -> Self {
        let mut machine = self.booted();
        machine.words.extend(words.iter().map(|word| (*word).to_owned()));
        machine
    }

    /// Sets the number of its processors.
    pub(crate) fn processors(mut self, processors: u32) -> Self {
        self.hardware.processors = processors;
        self
    }

    /// Adds a file to it.
    pub(crate) fn file(self, host: &Path, guest: &str) -> Self {
        self.word("--file", &format!("{}:{guest}", word(host)))
    }

    /// Loads modules of the kernel.
    pub(crate) fn modules(self, names: &[&str]) -> Self {
        names.iter().fold(self, |machine, name| machine.word("--module", name))
    }

    /// Gives it an end of a wire.
    pub(crate) fn wire(self, own: &Path, other: &Path) -> Self {
        self.word("--wire", &format!("{}:{}", word(own), word(other)))
    }

    /// Runs a command in it to its end, as soon as a place is free.
    pub(crate) fn run(self, command: &[&str]) -> Ended {
        let (running, _place) = self.start(command);
        running.finish()
    }

    /// Starts it as soon as a place is free. It keeps the place until the second value is dropped.
    pub(crate) fn start(self, command: &[&str]) -> (Running, Taken) {
        let scratch = self.scratch;
        // Before it has a place: tests that wait for the same machine to be saved would hold all of them.
        let command = self.prepare(command);
        let place = take(1);
        (scratch.start(command), place)
    }

    /// The command that starts it. The machine that it goes on from is saved now, if it has not been saved.
    pub(crate) fn prepare(self, command: &[&str]) -> Command {
        let machine = if self.boots {
            self.hardware.words()
        } else {
            ["--saved", word(&self.hardware.saved())].map(str::to_owned).to_vec()
        };
        let words: Vec<&str> = machine.iter().chain(&self.words).map(String::as_str).collect();
        let arguments = [&["vm", "run"], &words[..], &["--"], command].concat();
        self.scratch.tollgate(&arguments)
    }
}
