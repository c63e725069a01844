//! Tollgate: its program starts the daemon, its client does everything else.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{sys::signal::kill, unistd::Pid};
use tollgate_client::{
    Client, ClientError,
    descriptors::Descriptors,
    protocol::{Attribute, Mode},
};

/// How long to wait for the daemon to put the policy in force.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(180);

/// Starts the daemon with a built policy, and waits until it answers. It is no child of the runner, which waits for all
/// children, including adopted ones.
pub(super) fn load(policy: &Path, descriptors: Descriptors) -> io::Result<()> {
    // Missing parts do not matter: each verdict is compared.
    let shell = "tollgate enforce \"$0\" --descriptors \"$1\" --accept-missing </dev/null >/dev/null & echo $!";
    let started = Command::new("sh")
        .args(["-c", shell])
        .arg(policy)
        .arg(descriptors.to_string())
        .stderr(Stdio::inherit())
        .output()?;
    let daemon = String::from_utf8_lossy(&started.stdout).trim().parse().map_err(io::Error::other)?;
    let started = Instant::now();
    loop {
        let error = match Client::connect().and_then(|mut daemon| daemon.mode()) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if kill(Pid::from_raw(daemon), None).is_err() || started.elapsed() > RELOAD_TIMEOUT {
            return Err(io::Error::other(error));
        }
        sleep(Duration::from_millis(50));
    }
}

pub(super) fn enforce(enforcing: bool) -> io::Result<()> {
    let mode = if enforcing { Mode::Enforcing } else { Mode::Permissive };
    ask(|daemon| daemon.set_mode(mode, None))
}

pub(super) fn relabel(path: &str, context: &str) -> io::Result<()> {
    let object = object(path)?;
    ask(|daemon| daemon.set_label(object.as_fd(), context).map(drop))
}

pub(super) fn label(path: &str) -> io::Result<String> {
    let object = object(path)?;
    ask(|daemon| daemon.label(object.as_fd()))
}

pub(super) fn current() -> io::Result<String> {
    ask(|daemon| daemon.context(Attribute::Current, None)).map(Option::unwrap_or_default)
}

pub(super) fn set(attribute: Attribute, context: &str) -> io::Result<()> {
    Client::connect().and_then(|daemon| daemon.set_context(attribute, context)).map_err(number)
}

/// The file at the path itself.
fn object(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

/// Sends the daemon a request; its refusals have the errno of a system call.
fn ask<T>(question: impl FnOnce(&mut Client) -> Result<T, ClientError>) -> io::Result<T> {
    Client::connect().and_then(|mut daemon| question(&mut daemon)).map_err(number)
}

fn number(error: ClientError) -> io::Error {
    match error {
        ClientError::Refused(refusal) => io::Error::from_raw_os_error(refusal.errno),
        ClientError::Kernel(errno) => errno.into(),
        ClientError::Broken(cause) | ClientError::NoDaemon { cause, .. } => cause,
        other => io::Error::other(other),
    }
}
