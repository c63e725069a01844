//! `tollgate guard status`.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tollgate_enforcer::guard::{FILE, Guard};
use tollgate_guard::Mode;

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
    /// The digest of the database in force.
    in_force: Option<String>,
    /// That of the file.
    file: Option<String>,
    /// Why the file cannot be used.
    file_error: Option<String>,
    programs: usize,
    enforced: usize,
    rules: usize,
    /// How many processes are guarded.
    processes: u32,
    /// Hooks that this kernel lacks: what they would check is not checked.
    missing: Vec<String>,
    asked: u64,
    denied: u64,
    warned: u64,
    learnt: u64,
    lost: u64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (guard, database) = (Guard::adopt()?, Options { database: FILE.into() }.read());
    let counts = guard.as_ref().map(Guard::counts);
    let known = database.as_ref().ok();
    let enforced = |mode: Mode| mode == Mode::Enforce;
    let report = Report {
        running: guard.is_some(),
        in_force: guard.as_ref().and_then(Guard::database).map(|digest| digest.to_string()),
        file: known.map(|database| database.digest().to_string()),
        file_error: database.as_ref().err().map(|cause| format!("{cause:#}")),
        programs: known.map_or(0, |known| known.programs().len()),
        enforced: known.map_or(0, |known| known.programs().filter(|(_, program)| enforced(program.mode)).count()),
        rules: known.map_or(0, |known| known.rule_count()),
        processes: guard.as_ref().map_or(0, Guard::processes),
        missing: if guard.is_some() { Guard::missing()? } else { Vec::new() },
        asked: counts.map_or(0, |counts| counts.asked),
        denied: counts.map_or(0, |counts| counts.denied),
        warned: counts.map_or(0, |counts| counts.warned),
        learnt: counts.map_or(0, |counts| counts.learnt),
        lost: counts.map_or(0, |counts| counts.lost),
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        output::write(&text(&report))?;
    }
    Ok(ExitCode::from(u8::from(!report.running)))
}

fn text(report: &Report) -> String {
    let Report { programs, enforced, rules, processes, asked, denied, warned, learnt, lost, .. } = report;
    if !report.running {
        return "the guard does not run: `tollgate guard run` starts it\n".to_owned();
    }
    let in_force = report.in_force.as_deref().unwrap_or("being put in force");
    let database = match (&report.file, &report.file_error) {
        (_, Some(why)) => format!("{in_force}; {FILE} cannot be used: {why}"),
        (file, None) if *file == report.in_force => format!("{in_force}, that of {FILE}"),
        _ => format!("{in_force}; {FILE} is another one: `tollgate guard load {FILE}` puts it in force"),
    };
    let missing = match &report.missing[..] {
        [] => String::new(),
        missing => format!("unchecked {}: this kernel lacks these hooks\n", missing.join(", ")),
    };
    format!(
        "database  {database}\nprograms  {programs}, {enforced} of them enforced\nrules     {rules}\nguarded   {processes} processes\n\
         calls     {asked} checked, {denied} denied, {warned} granted with a warning, {learnt} granted while learning\n\
         events    {lost} lost\n{missing}"
    )
}
