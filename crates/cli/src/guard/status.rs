//! `tollgate guard status`.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tollgate_client::guard::GuardStatus;
use tollgate_enforcer::guard::{FILE, Guard};
use tollgate_guard::Database;

use super::file::Options;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the command prints.
#[derive(Debug, Serialize)]
struct Report {
    running: bool,
    /// The digest of the file.
    file: Option<String>,
    /// Why the file cannot be used.
    file_error: Option<String>,
    /// Whether the database in force is that of the fleet's generation.
    of_fleet: bool,
    #[serde(flatten)]
    guard: Option<GuardStatus>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (guard, database) = (Guard::adopt()?, Options { database: FILE.into() }.read());
    let in_force = guard.as_ref().and_then(Guard::read_database);
    let own = database.as_ref().ok();
    let report = Report {
        running: guard.is_some(),
        file: own.map(|database| database.digest().to_string()),
        file_error: database.as_ref().err().map(|cause| format!("{cause:#}")),
        of_fleet: in_force.is_some() && in_force.as_ref() != own,
        guard: guard.map(|guard| guard.status(in_force.as_ref().or(own).unwrap_or(&Database::default()), None)),
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        output::write(&text(&report))?;
    }
    Ok(ExitCode::from(u8::from(!report.running)))
}

fn text(report: &Report) -> String {
    let Some(guard) = &report.guard else {
        return "the guard does not run: `tollgate guard run` starts it\n".to_owned();
    };
    let in_force = guard.in_force.as_deref().unwrap_or("being put in force");
    let database = match (&report.file, &report.file_error) {
        _ if report.of_fleet => format!("{in_force}, that of the fleet"),
        (_, Some(why)) => format!("{in_force}; {FILE} cannot be used: {why}"),
        (file, None) if *file == guard.in_force => format!("{in_force}, that of {FILE}"),
        _ => format!("{in_force}; {FILE} is another one: `tollgate guard load {FILE}` puts it in force"),
    };
    let rows = [("database", database)].into_iter().chain(guard.rows());
    rows.map(|(name, value)| format!("{:<9} {value}\n", name.trim())).collect()
}
