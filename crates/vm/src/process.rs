//! Programs of the system, run to their end: they die with this one, stop when the user says so, and have a deadline.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{SIGKILL, killpg},
    unistd::Pid,
};

use crate::{Error, error::Context};

/// How often a running program is looked at.
const BEAT: Duration = Duration::from_millis(5);

/// When to give up.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// On the host's clock, from start to end.
    pub timeout: Duration,
    /// Set by a signal handler: stop at once.
    pub interrupted: &'a AtomicBool,
}

/// Has the kernel kill the program when the thread that starts it ends, however that comes about.
pub fn dies_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: prctl is async-signal-safe and touches no memory of the parent.
    unsafe { command.pre_exec(|| nix::sys::prctl::set_pdeathsig(SIGKILL).map_err(Into::into)) }
}

/// Runs a program with nothing on its standard input and gives back what it wrote.
///
/// # Errors
///
/// [`Error::Interrupted`] and [`Error::TooLong`], after the program and what it started have been killed;
/// [`Error::Io`] if it cannot be started.
pub fn output(command: &mut Command, limits: Limits<'_>) -> Result<Output, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    // A group of its own: what it starts can be killed with it, and Ctrl-C is ours to handle.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = dies_with_us(command).spawn().context(format!("run {program}"))?;
    let stdout = child.stdout.take().map(read_beside);
    let stderr = child.stderr.take().map(read_beside);
    let status = loop {
        if let Some(status) = child.try_wait().context(format!("wait for {program}"))? {
            break status;
        }
        if limits.interrupted.load(Ordering::Relaxed) {
            end(&mut child);
            return Err(Error::Interrupted);
        }
        if started.elapsed() > limits.timeout {
            end(&mut child);
            return Err(Error::TooLong { program, seconds: limits.timeout.as_secs() });
        }
        thread::sleep(BEAT);
    };
    let collect = |reader: Option<thread::JoinHandle<Vec<u8>>>| reader.and_then(|r| r.join().ok()).unwrap_or_default();
    Ok(Output { status, stdout: collect(stdout), stderr: collect(stderr) })
}

fn read_beside(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read is kept; the exit status tells whether the program did its work.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Kills the program's group. That fails only if it has ended already.
fn end(child: &mut Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(pid), SIGKILL);
    }
    let _ = child.wait();
}

/// Whether a program could not be run because there is none of its name.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    static NEVER: AtomicBool = AtomicBool::new(false);
    static NOW: AtomicBool = AtomicBool::new(true);

    fn shell(text: &str, timeout: Duration, interrupted: &AtomicBool) -> Result<Output, Error> {
        output(Command::new("sh").args(["-c", text]), Limits { timeout, interrupted })
    }

    #[test]
    fn gives_back_both_streams_and_the_status() {
        let ended = shell("echo out; echo err >&2; exit 3", LONG, &NEVER).unwrap();
        assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(ended.status.code(), Some(3));
    }

    #[test]
    fn kills_what_takes_too_long_and_what_it_has_started() {
        let started = Instant::now();
        let error = shell("sleep 60 & sleep 60", Duration::from_millis(100), &NEVER).unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error}");
        assert!(started.elapsed() < LONG);
    }

    #[test]
    fn stops_at_once_when_interrupted() {
        let started = Instant::now();
        assert!(matches!(shell("sleep 60", LONG, &NOW), Err(Error::Interrupted)));
        assert!(started.elapsed() < LONG);
    }
}
