//! Runs other programs to their end. They die with this one, stop when the user interrupts, and have a time limit.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{SIGKILL, SIGTERM, killpg},
    unistd::Pid,
};

use crate::{Context, Error};

/// How often to check whether a running program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The same for a program that takes long.
const SLOW_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How long a program may take to end after SIGTERM, before SIGKILL.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(5);

/// When to stop a program.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// The maximum duration, by the host's clock.
    pub timeout: Duration,
    /// A signal handler sets this flag to stop the program at once.
    pub interrupted: &'a AtomicBool,
}

/// Makes the kernel kill the program when the thread that starts it ends, for whatever reason.
pub fn dies_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: prctl is async-signal-safe and touches no memory of the parent.
    unsafe { command.pre_exec(|| nix::sys::prctl::set_pdeathsig(SIGKILL).map_err(Into::into)) }
}

/// Runs a program with an empty standard input, and returns what it wrote.
///
/// # Errors
///
/// [`Error::Interrupted`] and [`Error::TooLong`], after the program and what it started have been killed;
/// [`Error::Io`] if it cannot be started.
pub fn output(command: &mut Command, limits: Limits<'_>) -> Result<Output, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    // It gets a process group of its own, so that its children can be killed with it, and Ctrl-C reaches only this
    // program.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = dies_with_us(command).spawn().context(format!("run {program}"))?;
    let stdout = child.stdout.take().map(read_beside);
    let stderr = child.stderr.take().map(read_beside);
    let status = loop {
        if let Some(status) = child.try_wait().context(format!("wait for {program}"))? {
            break status;
        }
        if let Some(error) = given_up(&program, started, limits) {
            end(&mut child);
            return Err(error);
        }
        thread::sleep(POLL_INTERVAL);
    };
    let collect = |reader: Option<thread::JoinHandle<Vec<u8>>>| reader.and_then(|r| r.join().ok()).unwrap_or_default();
    Ok(Output { status, stdout: collect(stdout), stderr: collect(stderr) })
}

/// Runs a program that takes long, with its output in a file, and returns its status. `beat` is called from time to
/// time.
///
/// # Errors
///
/// The same as for [`output`]. The program is asked to end before it is killed, so that it can remove incomplete files.
pub fn logged(
    command: &mut Command,
    log: &Path,
    limits: Limits<'_>,
    beat: &mut dyn FnMut(),
) -> Result<ExitStatus, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    let out = File::create(log).context(format!("write {}", log.display()))?;
    let both = out.try_clone().context(format!("write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(out).stderr(both).process_group(0);
    let mut child = dies_with_us(command).spawn().context(format!("run {program}"))?;
    let mut looked = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context(format!("wait for {program}"))? {
            return Ok(status);
        }
        if let Some(error) = given_up(&program, started, limits) {
            ask_to_end(&mut child);
            return Err(error);
        }
        if looked.elapsed() > SLOW_POLL_INTERVAL {
            beat();
            looked = Instant::now();
        }
        thread::sleep(SLOW_POLL_INTERVAL / 20);
    }
}

fn given_up(program: &str, started: Instant, limits: Limits<'_>) -> Option<Error> {
    if limits.interrupted.load(Ordering::Relaxed) {
        return Some(Error::Interrupted);
    }
    let late = started.elapsed() > limits.timeout;
    late.then(|| Error::TooLong { program: program.to_owned(), seconds: limits.timeout.as_secs() })
}

fn read_beside(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read is kept. The exit status says whether the program succeeded.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Asks the program's process group to end, and kills it if it does not.
fn ask_to_end(child: &mut Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(pid), SIGTERM);
        let asked = Instant::now();
        while asked.elapsed() < TERMINATION_TIMEOUT && matches!(child.try_wait(), Ok(None)) {
            thread::sleep(POLL_INTERVAL);
        }
    }
    end(child);
}

/// Kills the program's process group. This fails only if it has ended already.
fn end(child: &mut Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(pid), SIGKILL);
    }
    let _ = child.wait();
}

/// Whether a program could not be run because it does not exist.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(20);
    static NEVER: AtomicBool = AtomicBool::new(false);
    static NOW: AtomicBool = AtomicBool::new(true);

    fn shell(text: &str, timeout: Duration, interrupted: &AtomicBool) -> Result<Output, Error> {
        output(Command::new("sh").args(["-c", text]), Limits { timeout, interrupted })
    }

    #[test]
    fn gives_back_both_streams_and_the_status() {
        let ended = shell("echo out; echo err >&2; exit 3", TEST_TIMEOUT, &NEVER).unwrap();
        assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(ended.status.code(), Some(3));
    }

    #[test]
    fn kills_what_takes_too_long_and_what_it_has_started() {
        let started = Instant::now();
        let error = shell("sleep 60 & sleep 60", Duration::from_millis(100), &NEVER).unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error}");
        assert!(started.elapsed() < TEST_TIMEOUT);
    }

    #[test]
    fn keeps_what_a_long_program_writes_and_lets_it_tidy_up_when_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let (log, half) = (dir.path().join("log"), dir.path().join("half"));
        let script = format!("trap 'rm {0}; exit 1' TERM; : >{0}; echo begun; sleep 60 & wait", half.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let limits = Limits { timeout: Duration::from_millis(500), interrupted: &NEVER };
        let error = logged(&mut command, &log, limits, &mut || {}).unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(log).unwrap(), "begun\n");
        assert!(!half.exists());
    }

    #[test]
    fn stops_at_once_when_interrupted() {
        let started = Instant::now();
        assert!(matches!(shell("sleep 60", TEST_TIMEOUT, &NOW), Err(Error::Interrupted)));
        assert!(started.elapsed() < TEST_TIMEOUT);
    }
}
