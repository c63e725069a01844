//! The emulator's process.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    thread,
};

use tollgate_host::{Error as HostError, process::dies_with_us};

use crate::{Error, Machine, console, error::Context, machine::Wiring};

/// The emulator's program, which is searched for in PATH.
const QEMU: &str = "qemu-system-x86_64";

/// The version line of the emulator.
pub(super) fn version() -> Result<String, Error> {
    let output = Command::new(QEMU).arg("--version").output().map_err(absent)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_string())
}

fn absent(e: io::Error) -> Error {
    match e.kind() {
        io::ErrorKind::NotFound => Error::QemuAbsent { program: QEMU.into() },
        _ => HostError::Io { what: format!("run {QEMU}"), cause: e }.into(),
    }
}

/// The emulator's process. It is killed when this is dropped, and by the kernel if this process dies first.
pub(super) struct Qemu {
    child: Child,
    console: Option<thread::JoinHandle<Vec<u8>>>,
    errors: Option<thread::JoinHandle<Vec<u8>>>,
}

impl Qemu {
    pub(super) fn start(machine: &Machine, wiring: &Wiring) -> Result<Self, Error> {
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

    pub(super) fn exited(&mut self) -> Result<Option<String>, Error> {
        Ok(self.child.try_wait().context("wait for QEMU")?.map(|status| status.to_string()))
    }

    /// Stops the emulator if it still runs. Returns the console and standard error as text.
    pub(super) fn stop(mut self) -> (String, String) {
        self.end();
        let text = |handle: Option<thread::JoinHandle<Vec<u8>>>| {
            let bytes = handle.and_then(|h| h.join().ok()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (console::clean(&text(self.console.take())), text(self.errors.take()))
    }

    fn end(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a stream to its end in a thread, and keeps the last mebibyte.
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
