//! `tollgate audit`: denials, from the log that the daemon writes.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, anyhow};
use clap::Args;
use tollgate_audit::{
    Entry,
    clock::{self, Zone},
    follow::{self, Colour},
    log::{Filter, InOrder, Log},
    sink,
};

use crate::{interrupt, output};

/// How often `--follow` looks for new entries.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Go on with new entries as they come, until interrupted; without --since, print only new ones
    #[arg(long)]
    follow: bool,
    /// Print each entry as JSON, one per line
    #[arg(long)]
    json: bool,
    /// Print only entries of processes in this domain
    #[arg(long, value_name = "TYPE")]
    domain: Option<String>,
    /// Print times in UTC; by default in local time
    #[arg(long)]
    utc: bool,
    /// Print only entries from this time on: `2026-11-21 09:00:00` (local time), `2026-11-21T08:00:00Z`, or an age: `10min`,
    /// `2h`
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
    let zone = if arguments.utc { Zone::Utc } else { Zone::Local };
    loop {
        let mut printed = Ok(());
        let mut print = |entry: Entry| {
            if filter.takes(&entry) {
                printed = print(&entry, arguments.json, colour, zone);
            }
            printed.is_ok() && !interrupt::came()
        };
        // New entries are printed at once, in the order in which they were written.
        let garbled = if arguments.follow { log.read(print) } else { in_order(&mut log, &mut print) };
        printed?;
        let garbled = garbled.with_context(|| cannot_read(&arguments.log))?;
        if garbled > 0 {
            eprintln!("tollgate: {garbled} lines of the log are no entries of this program's, and were left out");
        }
        if !arguments.follow || interrupt::came() {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Prints all entries sorted by time; returns how many lines were no entries.
fn in_order(log: &mut Log, print: &mut impl FnMut(Entry) -> bool) -> std::io::Result<u64> {
    let mut order = InOrder::default();
    let garbled = log.read(|entry| order.push(entry, &mut *print))?;
    order.finish(print);
    Ok(garbled)
}

fn print(entry: &Entry, json: bool, colour: Colour, zone: Zone) -> anyhow::Result<()> {
    let line = if json { serde_json::to_string(entry)? } else { follow::line(entry, colour, zone) };
    output::line(&line)
}

pub(crate) fn cannot_read(folder: &Path) -> String {
    format!(
        "cannot read the log in {}, which `tollgate enforce` writes (it is root's; --log names another)",
        folder.display()
    )
}

/// Parses `--since`; milliseconds since 1970.
pub(crate) fn since(text: &str) -> anyhow::Result<u64> {
    let Ok(ago) = humantime::parse_duration(text) else {
        return clock::parse(text, Zone::Local)
            .ok_or_else(|| anyhow!("expected a time since 1970 as 2026-11-21T08:00:00Z, or how long ago as 10min"));
    };
    let time = SystemTime::now().checked_sub(ago).map_or(UNIX_EPOCH, |time| time.max(UNIX_EPOCH));
    Ok(u64::try_from(time.duration_since(UNIX_EPOCH)?.as_millis())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_times_and_durations() {
        assert_eq!(since("1970-01-01T00:00:02Z").unwrap(), 2000);
        assert_eq!(since("1970-01-02T01:00:00+01:00").unwrap(), 86_400_000);
        assert!(since("1970-01-03 00:00:00").unwrap().abs_diff(172_800_000) <= 86_400_000, "in local time");
        let hour = 3_600_000;
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        assert!(now.abs_diff(since("2h").unwrap() + 2 * hour) < 60_000);
        assert_eq!(since("1000years").unwrap(), 0);
        for wrong in ["", "yesterday", "1969-12-31T23:59:59Z"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
