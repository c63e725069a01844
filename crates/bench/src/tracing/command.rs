//! Counts the hooks of a command.

use std::{
    io,
    os::{
        fd::{AsFd, FromRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{Options, attribution::Extent, median, release, report::Report, session::Session};
use crate::{
    Error,
    counter::{Counter, Meter, idle_nanoseconds, ticks},
    error::Context,
};

/// How often the buffers are read while the command runs.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long a command may take to end after SIGTERM, before SIGKILL.
const TERMINATION_TIMEOUT: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(5) };
/// A signal that arrives just before the sleep does not end it, so the sleep is cut into pieces of this length, in
/// milliseconds. They are long because each wake-up is part of the measured cost.
const SIGNAL_CHECK_MS: u16 = 1000;

/// Runs a command this many times, and then as often again untraced, for its cost, if instructions can be counted.
///
/// Files that a run leaves behind are there in the next one; if the command then ends with another status, there is no cost.
/// Its standard input is empty, so that all runs have the same; its standard output goes to standard error. `stop` ends the
/// command by SIGTERM, and by SIGKILL if it does not end.
///
/// # Errors
///
/// [`Error::Unavailable`] where the tracer cannot be had, the command is not there, or a signal has come; [`Error::Io`].
pub fn count_command(words: &[String], options: Options, stop: &AtomicBool) -> Result<Report, Error> {
    let [name, arguments @ ..] = words else { return Err(Error::Unavailable("no command was given".to_owned())) };
    let program = program(name)?;
    let prepared = || {
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::from(io::stderr()));
        command
    };
    let (mut total, mut statuses): (Option<Report>, _) = (None, Vec::new());
    for _ in 0..options.runs {
        let (report, status) = count_one(prepared(), options, stop)?;
        statuses.push(status);
        total = Some(match total {
            None => report,
            Some(sum) => sum.plus(report),
        });
    }
    let Some(sum) = total else { return Err(Error::Unavailable("a command is run once at least".to_owned())) };
    let mean = sum.over(f64::from(options.runs));
    let clocked = Meter::open(Counter::Instructions).is_ok() && idle_nanoseconds().is_some();
    let cost = if clocked { cost(&statuses, prepared, stop)? } else { None };
    Ok(Report { command: Some(words.to_vec()), runs: options.runs.into(), status: statuses, cost, ..mean })
}

/// One run; returns its exit status.
fn count_one(mut command: Command, options: Options, stop: &AtomicBool) -> Result<(Report, i32), Error> {
    let mut session = Session::open(options.kilobytes)?;
    let tasks = session.begin()?;
    // SAFETY: between fork and exec only numbers are written to descriptors that are open.
    unsafe { command.pre_exec(move || tasks.follow_me()) };
    let mut child = command.spawn().context(format!("run {}", command.get_program().display()))?;
    // The command holds the tracing files, which would keep the instance.
    drop(command);
    session.count(Extent::Command(child.id().cast_signed()));
    let status = wait(&mut child, stop, || session.drain())?;
    Ok((Report::new(release()?, 1, None, session.finish(1)?), status))
}

/// Waits for the end, and calls `each` meanwhile. A signal to this process ends the command, which is waited for.
fn wait(child: &mut Child, stop: &AtomicBool, mut each: impl FnMut() -> Result<(), Error>) -> Result<i32, Error> {
    let (mut told, mut killed): (Option<Instant>, _) = (None, false);
    let mut failed = None;
    loop {
        if let Some(status) = child.try_wait().context("wait for the command")? {
            return match failed {
                Some(error) => Err(error),
                None if told.is_some() => {
                    Err(Error::Unavailable("interrupted; the command was ended, nothing was counted".to_owned()))
                }
                None => Ok(code(status)),
            };
        }
        if told.is_none() && (stop.load(Ordering::Relaxed) || failed.is_some()) {
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            told = Some(Instant::now());
        }
        if !killed && told.is_some_and(|told| told.elapsed() > TERMINATION_TIMEOUT) {
            let _ = child.kill();
            killed = true;
        }
        if failed.is_none() {
            failed = each().err();
        }
        sleep(POLL_INTERVAL);
    }
}

/// The exit code of a shell.
fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(2)
}

/// The median of the instructions of as many runs as there are statuses, from before the fork until the command was waited
/// for, without idle time; `None` if one ends with another status than the traced run.
fn cost(statuses: &[i32], prepared: impl Fn() -> Command, stop: &AtomicBool) -> Result<Option<f64>, Error> {
    let mut samples = Vec::new();
    for traced in statuses {
        let mut command = prepared();
        let idle = idle_nanoseconds().unwrap_or_default();
        let start = ticks();
        let mut child = command.spawn().context(format!("run {}", command.get_program().display()))?;
        let status = wait_asleep(&mut child, stop)?;
        let end = ticks();
        if status != *traced {
            return Ok(None);
        }
        let idle = idle_nanoseconds().unwrap_or_default().saturating_sub(idle);
        samples.push((end - start).saturating_sub(idle) as f64);
    }
    Ok(median(samples))
}

/// Waits for the end at no cost to the command. A signal to this process ends the command, which is waited for.
fn wait_asleep(child: &mut Child, stop: &AtomicBool) -> Result<i32, Error> {
    let end = pidfd(child).context("open the command's process")?;
    while !stop.load(Ordering::Relaxed) {
        // Other calls are restarted after a handler (SA_RESTART), this one is not.
        match poll(&mut [PollFd::new(end.as_fd(), PollFlags::POLLIN)], PollTimeout::from(SIGNAL_CHECK_MS)) {
            Ok(0) | Err(Errno::EINTR) => (),
            Ok(_) => return child.wait().map(code).context("wait for the command"),
            Err(errno) => return Err(errno).context("wait for the command"),
        }
    }
    wait(child, stop, || Ok(()))?;
    Err(Error::Unavailable("interrupted while the cost was measured".to_owned()))
}

/// A descriptor that becomes readable when the process has ended.
fn pidfd(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// The file of a command's name, as a shell finds it. It is searched here, so that the search is not counted as the
/// command's.
fn program(name: &str) -> Result<PathBuf, Error> {
    let is_program = |path: &Path| nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok() && path.is_file();
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| is_program(path))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
    };
    found.ok_or_else(|| {
        Error::Unavailable(format!("{name}: no such program; give one on PATH, or the path of an executable file"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_program_as_a_shell_does() {
        assert!(program("sh").unwrap().ends_with("sh"));
        assert_eq!(program("/bin/sh").unwrap(), Path::new("/bin/sh"));
        for none in ["no-such-program", "/no/such/program", "/etc/passwd", "/etc"] {
            assert!(program(none).unwrap_err().to_string().contains("no such program"), "{none}");
        }
    }

    #[test]
    fn waits_for_the_end_and_ends_what_is_interrupted() {
        let (on, off) = (AtomicBool::new(true), AtomicBool::new(false));
        let run = |line: &str| Command::new("sh").args(["-c", line]).spawn().unwrap();
        assert_eq!(wait(&mut run("exit 3"), &off, || Ok(())).unwrap(), 3);
        let mut beats = 0;
        let beat = || {
            beats += 1;
            Ok(())
        };
        assert_eq!(wait(&mut run("sleep 0.1; kill -9 $$"), &off, beat).unwrap(), 137);
        assert!(beats > 1);
        let error = wait(&mut run("exec sleep 60"), &on, || Ok(())).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
        let failing = || Err(Error::Unavailable("no more".to_owned()));
        assert_eq!(wait(&mut run("exec sleep 60"), &off, failing).unwrap_err().to_string(), "no more");
    }

    #[test]
    fn kills_what_does_not_heed_the_interrupt() {
        let deaf = "trap '' TERM; echo deaf; while :; do sleep 0.1; done";
        let mut child = Command::new("sh").args(["-c", deaf]).stdout(Stdio::piped()).spawn().unwrap();
        // From then on it is.
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
        let error = wait(&mut child, &AtomicBool::new(true), || Ok(())).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn tells_no_cost_of_a_run_that_ended_otherwise_and_waits_for_none_when_interrupted() {
        let (on, off) = (AtomicBool::new(true), AtomicBool::new(false));
        let prepared = |line: &'static str| {
            move || {
                let mut command = Command::new("sh");
                command.args(["-c", line]);
                command
            }
        };
        assert!(cost(&[3, 3], prepared("exit 3"), &off).unwrap().is_some());
        assert_eq!(cost(&[3, 0], prepared("exit 3"), &off).unwrap(), None);
        let error = cost(&[0], prepared("exec sleep 60"), &on).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }
}
