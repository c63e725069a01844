//! `tollgate guard learn`: rules from what was granted while learning.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use clap::Args;
use tollgate_audit::sink;
use tollgate_enforcer::guard::{KEPT, LOG};
use tollgate_guard::{Record, Verdict, changes, learn};
use tracing::warn;

use super::file::Options;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Enter what is new into the database
    #[arg(long)]
    write: bool,
    /// Only of the last time, such as 1day
    #[arg(long, value_name = "DURATION")]
    since: Option<humantime::Duration>,
    /// Also what was granted with a warning, or denied
    #[arg(long)]
    all: bool,
    /// The folder of the log
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER)]
    log: PathBuf,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let records = records(arguments)?;
    let database = arguments.options.read()?;
    let learnt = learn(&database, &records);
    for (record, why) in &learnt.left {
        warn!("nothing can be learnt of this call: {record}: {why}");
    }
    let changes = changes(&database, &learnt.database);
    changes.iter().try_for_each(|change| output::line(&change.to_string()))?;
    for (rule, paths) in &learnt.merged {
        let example = paths.first().map(|path| format!(", such as {path}")).unwrap_or_default();
        output::line(&format!("# names that change, as in `{rule}`: {} seen{example}", paths.len()))?;
    }
    if arguments.write && !changes.is_empty() {
        arguments.options.change(|database| {
            *database = learn(database, &records).database;
            Ok(())
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn records(arguments: &Arguments) -> anyhow::Result<Vec<Record>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let from = arguments.since.map_or(0, |since| now.saturating_sub(*since).as_millis() as u64);
    let newest = arguments.log.join(LOG);
    let older = (1..=KEPT).rev().map(|number| arguments.log.join(format!("{LOG}.{number}")));
    let mut records = Vec::new();
    for path in older.filter(|path| path.exists()).chain([newest]) {
        read(&path, &mut records)?;
    }
    let wanted = |record: &Record| record.time >= from && (arguments.all || record.verdict == Verdict::Learnt);
    records.retain(wanted);
    Ok(records)
}

fn read(path: &Path, records: &mut Vec<Record>) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read {}; `tollgate guard run` writes it", path.display()))?;
    for (number, line) in (1..).zip(text.lines()) {
        match serde_json::from_str(line) {
            Ok(record) => records.push(record),
            Err(cause) => warn!("{}:{number}: no record: {cause}", path.display()),
        }
    }
    Ok(())
}
