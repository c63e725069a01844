//! A running machine, and the messages of its agent.

use std::{
    io::{self, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use tollgate_host::{Error as HostError, process::Limits};

use super::{Failure, Outcome, Stream, qemu::Qemu};
use crate::{
    Error, Machine,
    channel::{Decoder, Done, Frame, Ready, Waiting},
    console,
    error::Context,
    machine::Wiring,
};

/// How long a guest may take to power off after it has sent its result. Then it is stopped.
const POWER_OFF: Duration = Duration::from_secs(5);
/// How often the host checks the clock, the interrupt flag and the emulator.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often the host checks for the emulator's connection, which comes quickly.
const CONNECT_INTERVAL: Duration = Duration::from_millis(2);

/// The point up to which a guest is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// It has powered off: all its writes are on its disks.
    PowerOff,
    /// It has sent its result, or that it can be saved.
    Word,
}

/// How a session ended.
pub(crate) enum Ended {
    /// With a result.
    Done,
    /// It can be saved.
    Waiting(Waiting),
    Timeout,
    Died(String),
}

/// Hears each piece of the command's output; what it returns goes to the command's standard input.
pub(crate) type Listener<'l> = &'l mut dyn FnMut(Stream, &[u8]) -> Result<Vec<u8>, Error>;

/// A guest: its emulator, and what its agent has said so far.
pub(crate) struct Guest<'g> {
    machine: &'g Machine,
    limits: Limits<'g>,
    started: Instant,
    qemu: Qemu,
    listener: UnixListener,
    connection: Option<UnixStream>,
    said: Said,
}

#[derive(Default)]
struct Said {
    decoder: Decoder,
    ready: Option<Ready>,
    done: Option<Result<Done, String>>,
    waiting: Option<Waiting>,
    stdout: Vec<u8>,
}

impl<'g> Guest<'g> {
    /// Starts the emulator.
    pub(crate) fn start(machine: &'g Machine, wiring: &Wiring, limits: Limits<'g>) -> Result<Self, Error> {
        let listener = listen(&wiring.agent)?;
        let qemu = Qemu::start(machine, wiring)?;
        let started = Instant::now();
        Ok(Self { machine, limits, started, qemu, listener, connection: None, said: Said::default() })
    }

    /// Follows the guest to that point, or until it ends by itself or its time is over.
    pub(crate) fn follow(&mut self, until: Until, listener: Listener<'_>) -> Result<Ended, Error> {
        let mut told: Option<Instant> = None;
        loop {
            if self.is_late()? {
                return Ok(Ended::Timeout);
            }
            let exited = self.qemu.exited()?;
            let open = match &mut self.connection {
                Some(stream) => self.said.receive(stream, listener)?,
                None => {
                    self.connection = accept(&self.listener)?;
                    true
                }
            };
            if let Some(status) = exited {
                // The socket still holds what was sent before the end.
                while self.connection.as_mut().map_or(Ok(false), |stream| self.said.receive(stream, listener))? {}
                return Ok(if self.said.done.is_some() { Ended::Done } else { Ended::Died(status) });
            }
            if let Some(waiting) = self.said.waiting.take() {
                return Ok(Ended::Waiting(waiting));
            }
            let patience = if until == Until::PowerOff { POWER_OFF } else { Duration::ZERO };
            if self.said.done.is_some() && told.get_or_insert_with(Instant::now).elapsed() >= patience {
                return Ok(Ended::Done);
            }
            if self.connection.is_none() || !open {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Sends the agent a message for which it waits.
    pub(crate) fn send(&mut self, frame: &Frame) -> Result<(), Error> {
        if self.connection.is_none() {
            let listener = self.listener.try_clone().context("accept the guest's agent")?;
            self.connection = Some(self.accept(&listener)?);
        }
        let Some(stream) = &mut self.connection else { return Ok(()) };
        stream.write_all(&frame.encode()).context("write to the guest's agent")
    }

    /// Waits for the emulator to connect.
    pub(crate) fn accept(&mut self, listener: &UnixListener) -> Result<UnixStream, Error> {
        loop {
            if let Some(stream) = accept(listener)? {
                return Ok(stream);
            }
            if let Some(status) = self.qemu.exited()? {
                return Err(Error::QemuDied { status, detail: String::new(), console: String::new() });
            }
            if self.is_late()? {
                return Err(Error::Timeout { seconds: self.limits.timeout.as_secs(), console: String::new() });
            }
            thread::sleep(CONNECT_INTERVAL);
        }
    }

    fn is_late(&self) -> Result<bool, Error> {
        if self.limits.interrupted.load(Ordering::Relaxed) {
            return Err(HostError::Interrupted.into());
        }
        Ok(self.started.elapsed() > self.limits.timeout)
    }

    /// Stops the guest, and returns its result.
    pub(crate) fn stop(self, ended: Result<Ended, Error>) -> Result<Outcome, Failure> {
        let (console, errors) = self.qemu.stop();
        let tail = || console::tail(&console);
        let detail = || errors.trim().to_string();
        let outcome = match ended {
            Ok(Ended::Done | Ended::Waiting(_)) => self.said.outcome(self.machine, &console),
            Ok(Ended::Timeout) => Err(Error::Timeout { seconds: self.limits.timeout.as_secs(), console: tail() }),
            Ok(Ended::Died(status)) | Err(Error::QemuDied { status, .. }) => {
                Err(match console::panic_reason(&console) {
                    Some(reason) => Error::Panic { reason, console: tail() },
                    None => Error::QemuDied { status, detail: detail(), console: tail() },
                })
            }
            Err(e) => Err(e),
        };
        outcome.map_err(|error| Failure { error, console })
    }
}

impl Said {
    /// Receives what has come, and waits at most [`POLL_INTERVAL`] for it. Returns false at the end of the stream.
    fn receive(&mut self, stream: &mut UnixStream, listener: Listener<'_>) -> Result<bool, Error> {
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
            let input = self.take(frame, listener)?;
            if !input.is_empty() {
                stream.write_all(&Frame::Stdin(input).encode()).context("write to the guest's agent")?;
            }
        }
        Ok(count > 0)
    }

    /// Returns what the command gets to read.
    fn take(&mut self, frame: Frame, listener: Listener<'_>) -> Result<Vec<u8>, Error> {
        match frame {
            Frame::Ready(ready) => self.ready = Some(ready),
            Frame::Stdout(bytes) => {
                let input = listener(Stream::Stdout, &bytes)?;
                self.stdout.extend(bytes);
                return Ok(input);
            }
            Frame::Stderr(bytes) => return listener(Stream::Stderr, &bytes),
            Frame::Done(done) => self.done = Some(Ok(done)),
            Frame::Failed(reason) => self.done = Some(Err(reason)),
            Frame::Waiting(waiting) => self.waiting = Some(waiting),
            // The host only sends these.
            Frame::Continue(_) | Frame::Stdin(_) => {}
        }
        Ok(Vec::new())
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

/// Makes the socket to which the emulator will connect.
pub(crate) fn listen(path: &Path) -> Result<UnixListener, Error> {
    let listener = UnixListener::bind(path).context(format!("listen on {}", path.display()))?;
    listener.set_nonblocking(true).context("listen without blocking")?;
    Ok(listener)
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
