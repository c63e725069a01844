//! `tollgate audit`: what was denied, from the log that the daemon keeps.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use tollgate_enforcer::audit::{
    Entry,
    follow::{self, Colour},
    log::{Filter, Log},
    sink,
};

use crate::{interrupt, output};

/// A reader that follows looks for new entries so often.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Go on with new entries as they come, until interrupted; without --since, only with those
    #[arg(long)]
    follow: bool,
    /// Print each entry as JSON, one a line
    #[arg(long)]
    json: bool,
    /// Only of processes in this domain
    #[arg(long, value_name = "TYPE")]
    domain: Option<String>,
    /// Only from this time on: `2026-11-21T08:00:00Z`, `2026-11-21 08:00:00` (UTC), or so long ago: `10min`, `2h`
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<u64>,
    /// The folder that the daemon writes to
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER)]
    log: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut log = Log::open(&arguments.log).with_context(|| cannot_read(&arguments.log))?;
    if arguments.follow && arguments.since.is_none() {
        log.skip()?;
    }
    let filter = Filter { domain: arguments.domain.clone(), since: arguments.since };
    let colour = if output::is_coloured() { Colour::On } else { Colour::Off };
    if arguments.follow {
        interrupt::flag()?;
    }
    loop {
        let mut printed = Ok(());
        let garbled = log.read(|entry| {
            if filter.takes(&entry) {
                printed = print(&entry, arguments.json, colour);
            }
            printed.is_ok() && !interrupt::came()
        });
        printed?;
        let garbled = garbled.with_context(|| cannot_read(&arguments.log))?;
        if garbled > 0 {
            eprintln!("tollgate: {garbled} lines of the log are no entries of this program's, and were left out");
        }
        if !arguments.follow || interrupt::came() {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(PAUSE);
    }
}

fn print(entry: &Entry, json: bool, colour: Colour) -> anyhow::Result<()> {
    let line = if json { serde_json::to_string(entry)? } else { follow::line(entry, colour) };
    output::line(&line)
}

pub(crate) fn cannot_read(folder: &Path) -> String {
    format!(
        "cannot read the log in {}, which `tollgate enforce` writes (it is root's; --log names another)",
        folder.display()
    )
}

/// Milliseconds since 1970.
pub(crate) fn since(text: &str) -> anyhow::Result<u64> {
    let now = SystemTime::now();
    let time = match humantime::parse_duration(text) {
        Ok(ago) => now.checked_sub(ago).map_or(UNIX_EPOCH, |time| time.max(UNIX_EPOCH)),
        Err(_) => humantime::parse_rfc3339_weak(text)
            .map_err(|_| anyhow!("expected a time as 2026-11-21T08:00:00Z, or how long ago as 10min"))?,
    };
    if time < UNIX_EPOCH {
        bail!("nothing was logged before 1970");
    }
    Ok(u64::try_from(time.duration_since(UNIX_EPOCH)?.as_millis())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_times_and_durations() {
        assert_eq!(since("1970-01-01T00:00:02Z").unwrap(), 2000);
        assert_eq!(since("1970-01-02 00:00:00").unwrap(), 86_400_000);
        let hour = 3_600_000;
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        assert!(now.abs_diff(since("2h").unwrap() + 2 * hour) < 60_000);
        assert_eq!(since("1000years").unwrap(), 0);
        for wrong in ["", "yesterday", "1969-12-31T23:59:59Z"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
