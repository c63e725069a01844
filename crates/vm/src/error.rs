//! What can go wrong between a kernel's name and a command's result.

use std::{io, path::PathBuf};

/// An error of this crate; the message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program, a package or a file of this machine failed.
    #[error(transparent)]
    Host(#[from] tollgate_host::Error),
    /// QEMU is not on PATH.
    #[error("{program} not found: install it (Debian: apt-get install qemu-system-x86)")]
    QemuAbsent {
        /// The name of the program that was not found.
        program: String,
    },
    /// The package of a kernel holds no image where one is expected.
    #[error("the packages of kernel {release} hold no {wanted}; name another kernel, or give an image by its path")]
    NoImage {
        /// The kernel.
        release: String,
        /// The path of the image that was expected.
        wanted: String,
    },
    /// A kernel that is built here has not been built yet.
    #[error(
        "kernel {name} is not built yet: `tollgate vm build {name}` builds it from Debian's source (some {minutes} minutes of \
         one processor, {mebibytes} MiB; kept in the cache)"
    )]
    NotBuilt {
        /// The kernel.
        name: String,
        /// Minutes of processor time that the build takes.
        minutes: u32,
        /// Mebibytes of disk space that the build needs.
        mebibytes: u64,
    },
    /// A kernel that was built here by another version of this program.
    #[error(
        "kernel {name} was built by another version of this program, with another configuration or module: \
         `tollgate vm build {name}` builds what has changed"
    )]
    Stale {
        /// The kernel.
        name: String,
    },
    /// Two kernels that are to be compared were built from different versions of the source.
    #[error(
        "{one} and {other} were built from different versions of the source ({versions}): `tollgate vm build` builds \
         both from one"
    )]
    DifferentSources {
        /// The first kernel's name.
        one: String,
        /// The second kernel's name.
        other: String,
        /// The versions of their source packages.
        versions: String,
    },
    /// Programs or headers that a kernel's build needs are missing.
    #[error("building a kernel needs more than this machine has: apt-get install --no-install-recommends {packages}")]
    ToolsAbsent {
        /// The Debian packages to install.
        packages: String,
    },
    /// A kernel's own build failed.
    #[error("the kernel could not be built: {detail}\n(all of it: {log}; delete that folder to begin anew)", log = log.display())]
    NotCompiled {
        /// The last lines that the build printed.
        detail: String,
        /// The file with all of its output.
        log: PathBuf,
    },
    /// No kernel has this name.
    #[error("no kernel {spec:?}; there are: {known} (or the path of a bzImage)")]
    NoSuchKernel {
        /// The name as it was given.
        spec: String,
        /// The series that exist.
        known: String,
    },
    /// A file that should go into the guest cannot.
    #[error("cannot put {path} into the guest: {reason}", path = path.display())]
    NotInGuest {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// An end of a wire that cannot be used.
    #[error("no wire at {path}: {reason}", path = path.display())]
    NoWire {
        /// The socket's path.
        path: PathBuf,
        /// The reason, with the remedy.
        reason: String,
    },
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked: {reason}\n{console}")]
    Panic {
        /// The line in which the kernel reports the panic.
        reason: String,
        /// The console's last lines.
        console: String,
    },
    /// The guest ran out of memory.
    #[error("the guest ran out of its {memory_mib} MiB of memory; give it more with --memory\n{console}")]
    OutOfMemory {
        /// The guest's memory.
        memory_mib: u32,
        /// The console's last lines.
        console: String,
    },
    /// The guest did not finish in time.
    #[error("the guest did not finish within {seconds} s and was stopped; allow more with --timeout\n{console}")]
    Timeout {
        /// The limit, in seconds of the host's clock.
        seconds: u64,
        /// The console's last lines.
        console: String,
    },
    /// QEMU ended before the guest had answered.
    #[error("QEMU ended early ({status}) {detail}\n{console}")]
    QemuDied {
        /// Exit status or signal.
        status: String,
        /// QEMU's standard error.
        detail: String,
        /// The console's last lines.
        console: String,
    },
    /// The guest's agent could not start the command or set up the guest.
    #[error("in the guest: {reason}")]
    Agent {
        /// The agent's message.
        reason: String,
    },
    /// A machine's command failed before it could be saved.
    #[error("the command ended with status {status}: the machine was not saved")]
    NotSaved {
        /// Its exit status, or 128 and the signal.
        status: i32,
    },
    /// The folder for a saved machine exists already.
    #[error("{folder} exists already: remove it, or name another folder for the machine", folder = folder.display())]
    SavedBefore {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder from which no machine can go on.
    #[error("{folder} holds no saved machine ({reason}); `tollgate vm save -o` makes one", folder = folder.display())]
    NotASavedMachine {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A machine that was saved by another emulator or program.
    #[error(
        "the machine in {folder} was saved by {then}, and this is {now}: remove it and save it again (tollgate vm save)",
        folder = folder.display()
    )]
    SavedByOther {
        /// The folder.
        folder: PathBuf,
        /// The emulator or program that saved it.
        then: String,
        /// The emulator or program that runs now.
        now: String,
    },
    /// The emulator's monitor refused a command.
    #[error("QEMU's monitor says {answer}")]
    Monitor {
        /// The monitor's answer.
        answer: String,
    },
    /// What arrived from the guest is not the agent's protocol.
    #[error("garbled result from the guest: {0}")]
    Garbled(String),
}

/// Adds what was tried to an I/O error.
pub(crate) trait Context<T> {
    /// `what` is a phrase such as `write /tmp/x`.
    fn context(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, Error> {
        tollgate_host::Context::context(self, what).map_err(Error::Host)
    }
}
