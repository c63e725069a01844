//! A guest that boots a Debian system.

use std::path::{Path, PathBuf};

use crate::program::{Scratch, machine::Machine, word};

/// The disk of a test.
pub(crate) fn copy(scratch: &Scratch, image: &Path) -> PathBuf {
    let disk = scratch.path("disk");
    let copied = scratch.command("cp", &["--sparse=always", word(image), word(&disk)]);
    scratch.finish(copied).with(0);
    disk
}

/// A guest that boots the system.
pub(crate) struct Guest<'g>(Machine<'g>);

impl<'g> Guest<'g> {
    pub(crate) fn new(scratch: &'g Scratch, kernel: &'g str, lsm: &'g str) -> Self {
        // Keeps every denial in the kernel's log.
        let log = "log_buf_len=16M sysctl.kernel.printk_ratelimit=0 audit=1 audit_backlog_limit=8192";
        let machine = Machine::new(scratch, kernel, lsm, 2400);
        Self(machine.processors(2).option(&["--memory", "2048", "--append", log]))
    }

    /// A file on the disk.
    pub(crate) fn with(self, host: &Path, guest: &str) -> Self {
        Self(self.0.file(host, guest))
    }

    /// Other options of `vm run`.
    pub(crate) fn option(self, words: &[&str]) -> Self {
        Self(self.0.option(words))
    }

    /// Boots, runs a command of the system, and returns its output.
    pub(crate) fn run(self, disk: &Path, command: &[&str]) -> String {
        self.0.option(&["--disk", word(disk)]).run(command).with(0).stdout
    }
}
