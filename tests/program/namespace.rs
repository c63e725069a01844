//! Network namespaces of this machine. They have no name, and go with their descriptors.

use std::{
    fs::File,
    os::fd::{AsFd, AsRawFd},
    process::{self, Command},
    thread,
};

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace.
pub(crate) struct Namespace(File);

impl Namespace {
    /// A new one, in which nobody is.
    pub(crate) fn new() -> Self {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        Self(made.join().unwrap())
    }

    /// Its path, as long as this program runs.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }

    /// Calls `act` in it. Sockets and processes that it makes stay there.
    pub(crate) fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET).unwrap();
                act()
            });
            inside.join().unwrap()
        })
    }

    /// Runs `ip` in it.
    pub(crate) fn ip(&self, line: &str) {
        self.within(|| {
            let done = Command::new("ip").args(line.split_ascii_whitespace()).status().expect("run `ip` (iproute2)");
            assert!(done.success(), "ip {line}");
        });
    }
}
