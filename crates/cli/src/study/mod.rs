//! `tollgate study`: runs studies and reads their results.

mod applications;
mod pace;
mod progress;
mod run;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use tollgate_study::{
    applications::Applications,
    compare, configuration, export, page,
    results::Results,
    store::Store,
    study::Study,
    table::{self, Style},
};

use crate::output;

/// The studies that the program contains, by name.
const BUILT_IN: [(&str, &str); 15] = [
    ("quick", include_str!("../../../../studies/quick.toml")),
    ("modules", include_str!("../../../../studies/modules.toml")),
    ("reference", include_str!("../../../../studies/reference.toml")),
    ("enforcer", include_str!("../../../../studies/enforcer.toml")),
    ("commands", include_str!("../../../../studies/commands.toml")),
    ("dsm", include_str!("../../../../studies/dsm.toml")),
    ("mls", include_str!("../../../../studies/mls.toml")),
    ("mls-alive", include_str!("../../../../studies/mls-alive.toml")),
    ("mls-levels", include_str!("../../../../studies/mls-levels.toml")),
    ("cache", include_str!("../../../../studies/cache.toml")),
    ("flask", include_str!("../../../../studies/flask.toml")),
    ("lsm-file-overhead", include_str!("../../../../studies/lsm-file-overhead.toml")),
    ("predictions", include_str!("../../../../studies/predictions.toml")),
    ("framework", include_str!("../../../../studies/framework.toml")),
    ("wall", include_str!("../../../../studies/wall.toml")),
];

/// Those of applications.
const OF_APPLICATIONS: [(&str, &str); 1] = [("bop", include_str!("../../../../studies/bop.toml"))];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the studies that come with the program, and the configurations that they measure
    List(List),
    /// Run a study, print its table and keep everything that was measured
    Run(run::Run),
    /// Print the results of a study
    Report(Report),
    /// Compare two runs; exit status 1 if something got dearer, failed or lost its oracle
    Compare(Compare),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The folder that a study was run into
    dir: PathBuf,
    /// A table for people, or figures for programs
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print results.json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write one HTML page into this file: tables, charts, everything that was measured
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "json"])]
    html: Option<PathBuf>,
    /// Write one picture into this file: the heat map of operations and modules, as SVG
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "json", "html"])]
    svg: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Csv,
    Markdown,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The earlier run's folder
    before: PathBuf,
    /// The later run's folder
    after: PathBuf,
    /// Count an increase from this percentage on as dearer, instead of the study's own threshold
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    threshold: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a percentage that is not negative.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("give a number of percent such as 1 or 0.5".into()),
    }
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(arguments) => list(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report(&arguments),
        Command::Compare(arguments) => compare(&arguments),
    }
}

fn list(arguments: &List) -> anyhow::Result<ExitCode> {
    let studies: Vec<Study> = BUILT_IN.iter().map(|(name, text)| Study::parse(name, text)).collect::<Result<_, _>>()?;
    if arguments.json {
        output::json(&studies.iter().map(Study::header).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line("Studies")?;
    for study in studies {
        let size = format!(
            "{} kernels{}, {} configurations, {} workloads, {} boots each",
            study.kernels.len(),
            match study.kernels_if_built.len() {
                0 => String::new(),
                count => format!(" and {count} if built"),
            },
            study.configurations.len(),
            study.workloads.len(),
            study.boots()
        );
        output::line(&format!("  {:<10} {}\n  {:<10} {size}", study.name, study.title, ""))?;
    }
    for (name, text) in OF_APPLICATIONS {
        let study = Applications::parse(name, text)?;
        let size =
            format!("{} applications, {} runs without the guard and with it", study.applications.len(), study.runs);
        output::line(&format!("  {:<10} {}\n  {:<10} {size}", study.name, study.title, ""))?;
    }
    output::line("\nConfigurations")?;
    for known in configuration::KNOWN {
        output::line(&format!("  {:<24} {}", known.name, known.about))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(arguments: &Report) -> anyhow::Result<ExitCode> {
    if let Some(file) = &arguments.html {
        output::file(file, &page::html(&Store::open(&arguments.dir)?.read_material()?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let results = read(&arguments.dir)?;
    if let Some(file) = &arguments.svg {
        output::file(file, &page::svg(&results))?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.json {
        output::json(&results)?;
        return Ok(ExitCode::SUCCESS);
    }
    match arguments.format {
        Format::Table => print_table(&results)?,
        Format::Csv => output::write(&export::csv(&results))?,
        Format::Markdown => output::write(&export::markdown(&results))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(arguments: &Compare) -> anyhow::Result<ExitCode> {
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let threshold = arguments.threshold.unwrap_or(after.study.threshold);
    let comparison = compare::compare(&before, &after, threshold)?;
    if arguments.json {
        output::json(&comparison)?;
    } else {
        output::write(&comparison.render())?;
    }
    Ok(if comparison.is_worse() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn read(dir: &Path) -> anyhow::Result<Results> {
    Ok(Store::open(dir)?.read_results()?)
}

fn print_table(results: &Results) -> anyhow::Result<()> {
    output::write(&table::render(results, Style { colour: output::is_coloured(), ..Style::default() }))
}

/// The study of applications of that name, or in that file; `None` if there is none, or it is one of operations.
fn find_applications(word: &str) -> anyhow::Result<Option<Applications>> {
    if let Some((name, text)) = OF_APPLICATIONS.iter().find(|(name, _)| *name == word) {
        return Ok(Some(Applications::parse(&format!("studies/{name}.toml"), text)?));
    }
    let text = fs::read_to_string(word).unwrap_or_default();
    Ok(if Applications::is_of(&text) { Some(Applications::parse(word, &text)?) } else { None })
}

/// The study of that name, or in that file: a word with a slash or the ending `.toml` is a file.
fn find(word: &str) -> anyhow::Result<Study> {
    if word.contains('/') || word.ends_with(".toml") {
        return Ok(Study::read(Path::new(word))?);
    }
    match BUILT_IN.iter().find(|(name, _)| *name == word) {
        Some((name, text)) => Ok(Study::parse(&format!("studies/{name}.toml"), text)?),
        None => {
            let names: Vec<&str> = BUILT_IN.iter().chain(&OF_APPLICATIONS).map(|(name, _)| *name).collect();
            bail!("no study {word:?}; there are {}, or give the path of a study file", names.join(", "))
        }
    }
}
