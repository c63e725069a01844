//! The time in which a service is used, so that it does everything that it does.

use std::{
    io::{self, BufRead, IsTerminal},
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail};
use tollgate_audit::{
    Entry,
    avc::Verdict,
    log::{Filter, Log},
};

use crate::{audit, denials, interrupt};

/// How long nothing new must be denied before a script goes on, unless the caller chose another time.
const QUIET_TIME: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// When the time ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// When Enter is pressed.
    Enter,
    /// After this time.
    Passed(Duration),
    /// When nothing was denied for this time.
    Quiet(Duration),
}

impl Until {
    /// The end that the arguments choose; `None`: there is no terminal and no time.
    pub(super) fn of(passed: Option<Duration>, quiet: Option<Duration>, yes: bool) -> Option<Self> {
        match (passed, quiet) {
            (Some(time), _) => Some(Self::Passed(time)),
            (None, Some(time)) => Some(Self::Quiet(time)),
            (None, None) if yes => Some(Self::Quiet(QUIET_TIME)),
            (None, None) => (io::stdin().is_terminal() && io::stdout().is_terminal()).then_some(Self::Enter),
        }
    }

    /// Waits. If the wait is interrupted, the command can continue later.
    pub(super) fn wait(self, log: &Path, domain: &str) -> anyhow::Result<()> {
        interrupt::flag()?;
        let start = Instant::now();
        match self {
            Self::Enter => drop(io::stdin().lock().read_line(&mut String::new())?),
            Self::Passed(time) => {
                while start.elapsed() < time && !interrupt::came() {
                    thread::sleep(POLL_INTERVAL.min(time.saturating_sub(start.elapsed())));
                }
            }
            Self::Quiet(time) => wait_quiet(log, domain, time)?,
        }
        if interrupt::came() {
            bail!("interrupted; the service stays permissive, and the same command goes on");
        }
        Ok(())
    }
}

/// Waits until nothing was denied to a domain for this time.
fn wait_quiet(folder: &Path, domain: &str, time: Duration) -> anyhow::Result<()> {
    let mut log = Log::open(folder).with_context(|| audit::cannot_read(folder))?;
    log.skip()?;
    let filter = Filter { domain: Some(domain.to_owned()), since: None };
    let mut last = Instant::now();
    while last.elapsed() < time && !interrupt::came() {
        thread::sleep(POLL_INTERVAL.min(time));
        let seen = |entry: Entry| {
            if is_denial(&entry) && filter.takes(&entry) {
                last = Instant::now();
            }
            true
        };
        log.read(seen).with_context(|| audit::cannot_read(folder))?;
    }
    Ok(())
}

fn is_denial(entry: &Entry) -> bool {
    matches!(entry, Entry::Avc(denial) if denial.verdict == Verdict::Denied)
}

/// How many denials a domain had since then, in milliseconds since 1970.
pub(super) fn denied(log: &Path, domain: &str, since: u64) -> anyhow::Result<u64> {
    let filter = Filter { domain: Some(domain.to_owned()), since: Some(since) };
    let mut denied = 0;
    denials::read_log(log, Some(since), |entry| match &entry {
        Entry::Avc(denial) if filter.takes(&entry) && denial.verdict == Verdict::Denied => {
            denied += denial.repeated + 1
        }
        _ => {}
    })?;
    Ok(denied)
}

/// A time in milliseconds since 1970, in the form of `--since`.
pub(super) fn text(time: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(time)).to_string()
}

/// The present time, in milliseconds since 1970.
pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
