//! Denials to examine: from the daemon's log, or from any text that contains records.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use tollgate_audit::{
    Entry,
    log::{Filter, InOrder, Log},
    sink, text,
    untrusted::for_people,
};
use tollgate_policy::{
    built::Built,
    context::{Kind, Names},
};

use crate::{audit, policies};

/// The longest record, in bytes.
const MAX_LINE_LENGTH: u64 = 1 << 16;

#[derive(Debug, Args)]
pub(crate) struct Denials {
    /// Read denials from this file (`-`: standard input) instead of the daemon's log: records of the kernel's audit, as
    /// auditd, ausearch or the kernel's log have them, and entries of `tollgate audit --json`
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Use only denials from this time on: `2026-11-21 09:00:00` (local time), `2026-11-21T08:00:00Z`, or an age: `10min`
    #[arg(long, value_name = "TIME", value_parser = audit::since)]
    since: Option<u64>,
    /// Use only denials of processes in this domain
    #[arg(long, value_name = "TYPE")]
    domain: Option<String>,
    /// Use this policy, built or as sources, instead of the one in force
    #[arg(long, value_name = "POLICY")]
    policy: Option<PathBuf>,
    /// The folder that the daemon writes its log to
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER, conflicts_with = "from")]
    log: PathBuf,
}

impl Denials {
    /// The selected entries, in the order of the log. What the log lacks is reported on standard error.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<Entry>> {
        let filter = Filter { domain: self.domain.clone(), since: self.since };
        let mut entries = Vec::new();
        let mut take = |entry: Entry| {
            if filter.takes(&entry) {
                entries.push(entry);
            }
        };
        match &self.from {
            Some(path) => read_text(path, take)?,
            None => read_log(&self.log, self.since, &mut take)?,
        }
        Ok(entries)
    }

    /// Refuses a domain that is neither in the policy nor in an entry: nothing could be learnt for it.
    pub(crate) fn check_domain(&self, policy: &Built, name: &str, entries: &[Entry]) -> anyhow::Result<()> {
        let Some(domain) = &self.domain else { return Ok(()) };
        let is_of = |entry: &Entry| matches!(entry, Entry::Avc(denial) if denial.domain() == Some(domain));
        if entries.iter().any(is_of) {
            return Ok(());
        }
        let known = Names::of(&policy.policy).find(Kind::Type, domain).map_err(anyhow::Error::new);
        known.map(drop).with_context(|| {
            format!(
                "{}: nothing of {} was denied, nor is it a domain: build a policy that has it, put it in force (`tollgate reload`), \
                 and start the process anew; `tollgate ps` tells what runs in which domain",
                for_people(name),
                for_people(domain)
            )
        })
    }

    /// The domain of `--domain`.
    pub(crate) fn domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    /// Whether denials come from the daemon's log.
    pub(crate) fn is_log(&self) -> bool {
        self.from.is_none()
    }

    /// The policy to use, and its name.
    pub(crate) fn policy(&self) -> anyhow::Result<(Built, String)> {
        match &self.policy {
            Some(path) => Ok((policies::open(path)?, path.display().to_string())),
            None => policies::running(),
        }
    }
}

/// Reads the daemon's log.
pub(crate) fn read_log(folder: &Path, since: Option<u64>, mut each: impl FnMut(Entry)) -> anyhow::Result<()> {
    let mut log = Log::open(folder).with_context(|| audit::cannot_read(folder))?;
    let full = log.is_full();
    let (mut first, mut order) = (None, InOrder::default());
    let mut each = |entry: Entry| {
        first.get_or_insert(entry.time());
        each(entry);
        true
    };
    let garbled = log.read(|entry| order.push(entry, &mut each));
    let garbled = garbled.with_context(|| audit::cannot_read(folder))?;
    order.finish(each);
    if garbled > 0 {
        eprintln!("tollgate: {garbled} lines of the log are no entries of this program's, and were left out");
    }
    if full && first.is_some_and(|first| since.is_none_or(|since| since < first)) {
        eprintln!("tollgate: the log was full: older entries than these are gone (--since names a later time)");
    }
    Ok(())
}

fn read_text(path: &Path, mut each: impl FnMut(Entry)) -> anyhow::Result<()> {
    let unreadable = || format!("cannot read {}", path.display());
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).with_context(unreadable)?)
    };
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    loop {
        line.clear();
        if input.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut line).with_context(unreadable)? == 0 {
            return Ok(());
        }
        if let Some(entry) = text::parse(&String::from_utf8_lossy(&line)) {
            each(entry);
        }
    }
}
