//! Boots a machine, runs one command in it and gives back what came of it. Nothing outlives the call.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::{
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Accelerator, Clock, Error, Image, Machine,
    agent::{ORDER, Order, System},
    channel::{Decoder, Done, Frame, Ready},
    console,
    error::Context,
    machine::Wiring,
    process::{Limits, dies_with_us},
};

/// The emulator.
const QEMU: &str = "qemu-system-x86_64";
/// A guest that has told its result has so long to power off; then it is stopped.
const POWER_OFF: Duration = Duration::from_secs(5);
/// How often the host checks the clock, the interrupt flag and the emulator.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

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

/// What came of the command.
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
    /// Of those, idle.
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

/// Why there is no outcome, and what the guest had printed by then.
#[derive(Debug)]
pub struct Failure {
    /// Why.
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
    let wiring = Wiring { initrd: folder.path().join("initrd"), agent: folder.path().join("agent") };
    write_image(image, command, &wiring.initrd)?;
    let listener = UnixListener::bind(&wiring.agent).context(format!("listen on {}", wiring.agent.display()))?;
    listener.set_nonblocking(true).context("listen without blocking")?;
    let mut qemu = Qemu::start(machine, &wiring)?;
    let mut session = Session { decoder: Decoder::default(), ready: None, done: None, stdout: Vec::new() };
    let ended = session.follow(&listener, &mut qemu, limits, on_output);
    let (console, errors) = qemu.stop();
    let outcome = match ended {
        Ok(Ended::PoweredOff) => session.outcome(machine, &console),
        Ok(Ended::Timeout) => {
            Err(Error::Timeout { seconds: limits.timeout.as_secs(), console: console::tail(&console) })
        }
        Ok(Ended::Died(status)) => Err(match console::panic_reason(&console) {
            Some(reason) => Error::Panic { reason, console: console::tail(&console) },
            None => Error::QemuDied { status, detail: errors.trim().to_string(), console: console::tail(&console) },
        }),
        Err(e) => Err(e),
    };
    outcome.map_err(|error| Failure { error, console })
}

/// The version line of the emulator.
pub fn emulator_version() -> Result<String, Error> {
    let output = Command::new(QEMU).arg("--version").output().map_err(absent)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_string())
}

fn absent(e: io::Error) -> Error {
    match e.kind() {
        io::ErrorKind::NotFound => Error::QemuAbsent { program: QEMU.into() },
        _ => Error::Io { what: format!("run {QEMU}"), cause: e },
    }
}

/// A folder that goes away with the guest. Sockets have short paths, hence not below the cache.
fn private_folder() -> Result<tempfile::TempDir, Error> {
    tempfile::Builder::new().prefix("tollgate-").tempdir().context("make a temporary folder")
}

fn write_image(image: &Image, command: &GuestCommand, path: &Path) -> Result<(), Error> {
    let order = Order {
        argv: command.argv.clone(),
        env: command.env.clone(),
        settle: command.settle,
        modules: image.module_paths().to_vec(),
        system: command.system.clone(),
    };
    let mut image = image.clone();
    image.content(ORDER, 0o600, &serde_json::to_vec(&order).map_err(io::Error::from).context("write the order")?);
    let what = || format!("write the guest's image {}", path.display());
    image.write(File::create(path).context(what())?).context(what())
}

/// How a session ended.
enum Ended {
    PoweredOff,
    Timeout,
    Died(String),
}

/// What the agent has said so far.
struct Session {
    decoder: Decoder,
    ready: Option<Ready>,
    done: Option<Result<Done, String>>,
    stdout: Vec<u8>,
}

impl Session {
    fn follow(
        &mut self,
        listener: &UnixListener,
        qemu: &mut Qemu,
        limits: Limits<'_>,
        on_output: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Ended, Error> {
        let started = Instant::now();
        let mut connection: Option<UnixStream> = None;
        let mut told: Option<Instant> = None;
        loop {
            if limits.interrupted.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if started.elapsed() > limits.timeout {
                return Ok(Ended::Timeout);
            }
            let exited = qemu.exited()?;
            let open = match &mut connection {
                Some(stream) => self.receive(stream, on_output)?,
                None => {
                    connection = accept(listener)?;
                    true
                }
            };
            if let Some(status) = exited {
                // What was sent before the end is still in the socket.
                while connection.as_mut().map_or(Ok(false), |stream| self.receive(stream, on_output))? {}
                return Ok(if self.done.is_some() { Ended::PoweredOff } else { Ended::Died(status) });
            }
            if self.done.is_some() && told.get_or_insert_with(Instant::now).elapsed() > POWER_OFF {
                return Ok(Ended::PoweredOff);
            }
            if connection.is_none() || !open {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Takes in what has come, waiting for a beat at the most; false at the end of the stream.
    fn receive(&mut self, stream: &mut UnixStream, on_output: &mut dyn FnMut(Stream, &[u8])) -> Result<bool, Error> {
        let mut buffer = [0; 64 << 10];
        let count = match stream.read(&mut buffer) {
            Ok(count) => count,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(e) => return Err(e).context("read from the guest's agent"),
        };
        self.decoder.push(&buffer[..count]);
        while let Some(frame) = self.decoder.next_frame()? {
            self.take(frame, on_output);
        }
        Ok(count > 0)
    }

    fn take(&mut self, frame: Frame, on_output: &mut dyn FnMut(Stream, &[u8])) {
        match frame {
            Frame::Ready(ready) => self.ready = Some(ready),
            Frame::Stdout(bytes) => {
                on_output(Stream::Stdout, &bytes);
                self.stdout.extend(bytes);
            }
            Frame::Stderr(bytes) => on_output(Stream::Stderr, &bytes),
            Frame::Done(done) => self.done = Some(Ok(done)),
            Frame::Failed(reason) => self.done = Some(Err(reason)),
        }
    }

    fn outcome(self, machine: &Machine, console: &str) -> Result<Outcome, Error> {
        let Some(done) = self.done else {
            return Err(Error::Garbled("the guest ended without a result".into()));
        };
        let done = done.map_err(|reason| Error::Agent { reason })?;
        if done.oom_kills > 0 && done.code != Some(0) {
            return Err(Error::OutOfMemory { memory_mib: machine.memory_mib, console: console::tail(console) });
        }
        let ready = self.ready.unwrap_or(Ready { release: String::new(), settled: None });
        Ok(Outcome {
            release: ready.release,
            settled: ready.settled,
            code: done.code,
            signal: done.signal,
            elapsed_ns: done.elapsed_ns,
            idle_ns: done.idle_ns,
            stdout: self.stdout,
            console: console.to_string(),
            clock: machine.clock,
            accelerator: machine.runs_on(),
        })
    }
}

fn accept(listener: &UnixListener) -> Result<Option<UnixStream>, Error> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(false).context("read from the guest's agent")?;
            stream.set_read_timeout(Some(POLL_INTERVAL)).context("read from the guest's agent")?;
            Ok(Some(stream))
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(e).context("accept the guest's agent"),
    }
}

/// The emulator's process; killed when dropped, and by the kernel should this process die first.
struct Qemu {
    child: Child,
    console: Option<thread::JoinHandle<Vec<u8>>>,
    errors: Option<thread::JoinHandle<Vec<u8>>>,
}

impl Qemu {
    fn start(machine: &Machine, wiring: &Wiring) -> Result<Self, Error> {
        let mut command = Command::new(QEMU);
        command
            .args(machine.arguments(wiring))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is this program's to handle, not the emulator's.
            .process_group(0);
        let mut child = dies_with_us(&mut command).spawn().map_err(absent)?;
        let console = child.stdout.take().map(drain);
        let errors = child.stderr.take().map(drain);
        Ok(Self { child, console, errors })
    }

    fn exited(&mut self) -> Result<Option<String>, Error> {
        Ok(self.child.try_wait().context("wait for QEMU")?.map(|status| status.to_string()))
    }

    /// Ends it if it still runs; gives the console and standard error as text.
    fn stop(mut self) -> (String, String) {
        self.end();
        let text = |handle: Option<thread::JoinHandle<Vec<u8>>>| {
            let bytes = handle.and_then(|h| h.join().ok()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (console::clean(&text(self.console.take())), text(self.errors.take()))
    }

    fn end(&mut self) {
        // Both fail only if it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a stream to its end beside the main loop; keeps the last mebibyte.
fn drain(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    const KEEP: usize = 1 << 20;
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 16 << 10];
        while let Ok(count) = from.read(&mut buffer) {
            if count == 0 {
                break;
            }
            kept.extend_from_slice(&buffer[..count]);
            if kept.len() > 2 * KEEP {
                kept.drain(..kept.len() - KEEP);
            }
        }
        kept
    })
}
