//! Boots a machine, runs one command in it and returns its result. Nothing outlives the call.

mod qemu;
mod session;

use std::{fs::File, io, path::Path};

use tollgate_host::process::Limits;

use crate::{
    Accelerator, Clock, Error, Image, Machine, Wire,
    agent::{ORDER, System},
    error::Context,
    instruction_log::InstructionLog,
    machine::Wiring,
    monitor::Monitor,
    order::Order,
};

pub(crate) use session::{Ended, Guest, Until, listen};

/// The name of the monitor's socket in a guest's folder.
pub(crate) const MONITOR: &str = "monitor";

/// A command for the guest.
#[derive(Debug, Clone, Default)]
pub struct GuestCommand {
    /// Program and arguments, as paths in the guest.
    pub argv: Vec<String>,
    /// Environment beside PATH and HOME.
    pub env: Vec<(String, String)>,
    /// Wait until the kernel's work after boot is over before the command starts.
    pub settle: bool,
    /// Run it as a service of the system on the machine's disk.
    pub system: Option<System>,
}

/// Which of the command's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The result of the command.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// `uname -r` in the guest.
    pub release: String,
    /// What the wait for a quiet kernel found.
    pub settled: Option<String>,
    /// Exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Guest nanoseconds from its start to its end.
    pub elapsed_ns: u64,
    /// Nanoseconds of those in which the processor was idle.
    pub idle_ns: Option<u64>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// The console, cleaned of control characters.
    pub console: String,
    /// The clock the guest lived on.
    pub clock: Clock,
    /// What executed it.
    pub accelerator: Accelerator,
}

impl Outcome {
    /// The status as in a shell: the exit code, or 128 plus the signal.
    #[must_use]
    pub fn status(&self) -> i32 {
        self.code.unwrap_or_else(|| 128 + self.signal.unwrap_or(0))
    }
}

/// Why there is no outcome, and what the guest had printed by then.
#[derive(Debug)]
pub struct Failure {
    /// The reason.
    pub error: Error,
    /// The whole console, cleaned of control characters; empty if no guest was started.
    pub console: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, console: String::new() }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// Runs `command` on `machine` with `image` as its root file system. `on_output` sees each piece of output as it comes.
pub fn run(
    machine: &Machine,
    image: &Image,
    command: &GuestCommand,
    limits: Limits<'_>,
    on_output: &mut dyn FnMut(Stream, &[u8]),
) -> Result<Outcome, Failure> {
    let folder = private_folder()?;
    let wiring = Wiring::boot(folder.path().join("initrd"), folder.path().join("agent"));
    let order = Order { wire: machine.wire.is_some(), ..order(image, command) };
    write_image(image, &order, &wiring.initrd)?;
    let _plugged = machine.wire.as_ref().map(Wire::plug).transpose()?;
    let mut guest = Guest::start(machine, &wiring, limits)?;
    let ended = guest.follow(Until::PowerOff, &mut only_hears(on_output));
    guest.stop(ended)
}

/// Hears each piece of the command's output and switches the log; what it returns goes to the command's standard input.
pub type LoggingListener<'l> = &'l mut dyn FnMut(&mut InstructionLog, Stream, &[u8]) -> Result<Vec<u8>, Error>;

/// The same, with a log of the instructions that the guest executes whenever `listener` switches it on.
pub fn run_logged(
    machine: &Machine,
    image: &Image,
    command: &GuestCommand,
    limits: Limits<'_>,
    listener: LoggingListener<'_>,
) -> Result<Outcome, Failure> {
    let folder = private_folder()?;
    let boot = Wiring::boot(folder.path().join("initrd"), folder.path().join("agent"));
    let socket = folder.path().join(MONITOR);
    let wiring = Wiring { monitor: Some(socket.clone()), ..boot };
    write_image(image, &Order { stdin: true, ..order(image, command) }, &wiring.initrd)?;
    let monitor = listen(&socket)?;
    let mut guest = Guest::start(machine, &wiring, limits)?;
    let monitor = guest.accept(&monitor).and_then(Monitor::new);
    let ended = monitor.and_then(|monitor| {
        let mut log = InstructionLog::new(monitor, folder.path());
        guest.follow(Until::PowerOff, &mut |stream, bytes| listener(&mut log, stream, bytes))
    });
    guest.stop(ended)
}

/// A listener for a command that reads nothing.
pub(crate) fn only_hears(
    on_output: &mut dyn FnMut(Stream, &[u8]),
) -> impl FnMut(Stream, &[u8]) -> Result<Vec<u8>, Error> {
    |stream, bytes| {
        on_output(stream, bytes);
        Ok(Vec::new())
    }
}

/// The version line of the emulator.
pub fn emulator_version() -> Result<String, Error> {
    qemu::version()
}

/// Makes a folder that is removed with the guest. It is not below the cache because paths of sockets must be short.
pub(crate) fn private_folder() -> Result<tempfile::TempDir, Error> {
    tempfile::Builder::new().prefix("tollgate-").tempdir().context("make a temporary folder")
}

/// The order for the agent.
pub(crate) fn order(image: &Image, command: &GuestCommand) -> Order {
    Order {
        argv: command.argv.clone(),
        env: command.env.clone(),
        settle: command.settle,
        modules: image.module_paths().to_vec(),
        system: command.system.clone(),
        save: false,
        wire: false,
        stdin: false,
    }
}

pub(crate) fn write_image(image: &Image, order: &Order, path: &Path) -> Result<(), Error> {
    let mut image = image.clone();
    image.content(ORDER, 0o600, &serde_json::to_vec(order).map_err(io::Error::from).context("write the order")?);
    let what = || format!("write the guest's image {}", path.display());
    image.write(File::create(path).context(what())?).context(what())
}
