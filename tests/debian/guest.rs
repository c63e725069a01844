//! A guest that boots a Debian system.

use std::path::{Path, PathBuf};

use crate::program::{Scratch, guests::take, word};

/// The disk of a test.
pub(crate) fn copy(scratch: &Scratch, image: &Path) -> PathBuf {
    let disk = scratch.path("disk");
    let copied = scratch.command("cp", &["--sparse=always", word(image), word(&disk)]);
    scratch.finish(copied).with(0);
    disk
}

/// A guest that boots the system.
pub(crate) struct Guest<'g> {
    scratch: &'g Scratch,
    kernel: &'g str,
    lsm: &'g str,
    files: Vec<String>,
    more: Vec<String>,
}

impl<'g> Guest<'g> {
    pub(crate) fn new(scratch: &'g Scratch, kernel: &'g str, lsm: &'g str) -> Self {
        Self { scratch, kernel, lsm, files: Vec::new(), more: Vec::new() }
    }

    /// A file on the disk.
    pub(crate) fn with(mut self, host: &Path, guest: &str) -> Self {
        self.files.push(format!("--file={}:{guest}", word(host)));
        self
    }

    /// Other options of `vm run`.
    pub(crate) fn option(mut self, words: &[&str]) -> Self {
        self.more.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Boots, runs a command of the system, and gives back what it printed.
    pub(crate) fn run(self, disk: &Path, command: &[&str]) -> String {
        let mut arguments = vec!["vm", "run", "--kernel", self.kernel, "--lsm", self.lsm, "--disk", word(disk)];
        arguments.extend(["--cpus", "2", "--memory", "2048", "--timeout", "2400"]);
        // Nothing of what is denied is left out of the kernel's log.
        arguments
            .extend(["--append", "log_buf_len=16M sysctl.kernel.printk_ratelimit=0 audit=1 audit_backlog_limit=8192"]);
        arguments.extend(self.more.iter().chain(&self.files).map(String::as_str));
        arguments.push("--");
        arguments.extend(command);
        let _place = take(1);
        self.scratch.run(&arguments).with(0).stdout
    }
}
