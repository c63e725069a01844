//! `tollgate policy build`: compiles sources into a built policy.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tollgate_policy::{sepol::Options, sources};

use super::file_contexts;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Build {
    /// CIL files and module packages (.pp, .pp.bz2), or one binary policy; a folder stands for its CIL files
    #[arg(required = true)]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    file_contexts: file_contexts::Arguments,
    /// The built policy; it is replaced whole or not at all
    #[arg(short, long, value_name = "POLICY")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was built, as JSON has it.
#[derive(Debug, Serialize)]
struct Report {
    policy: PathBuf,
    version: u32,
    types: usize,
    classes: usize,
    rules: usize,
    image_bytes: usize,
    tables_bytes: usize,
    /// Seconds of wall time for reading, and for compiling by libsepol.
    compile_seconds: f64,
    /// Seconds of wall time for laying out the tables.
    tables_seconds: f64,
    /// The files that `--file-contexts` named, and those beside them.
    file_contexts: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Build) -> anyhow::Result<ExitCode> {
    if let Some(source) = arguments.sources.iter().find(|source| is_same(source, &arguments.out)) {
        bail!("{} is a source: write the policy to another file", source.display());
    }
    let start = Instant::now();
    let sources = sources::read(&arguments.sources)?;
    let compiled = sources.compile(&Options::default()).with_context(|| list(&arguments.sources))?;
    let Some(compiled) = compiled else {
        bail!("{} is built already: name what it was built from", arguments.sources[0].display());
    };
    let compile_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut built = sources.lay_out(compiled).with_context(|| list(&arguments.sources))?;
    let tables_seconds = start.elapsed().as_secs_f64();
    let file_contexts = arguments.file_contexts.put(&mut built)?;
    built.write(&arguments.out)?;
    let policy = &built.policy;
    let report = Report {
        policy: arguments.out.clone(),
        version: policy.version,
        types: policy.types.iter().filter(|t| !t.attribute && !t.name.is_empty()).count(),
        classes: policy.classes.iter().filter(|class| !class.name.is_empty()).count(),
        rules: policy.rules.len() + policy.extended_rules.len(),
        image_bytes: built.image.len(),
        tables_bytes: built.tables.len(),
        compile_seconds,
        tables_seconds,
        file_contexts,
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        output::line(&format!(
            "{}: {} types, {} classes, {} rules; policy.{} {} bytes, decision tables {} bytes\ncompiled in {:.2} s, laid out in {:.2} s (wall clock)",
            report.policy.display(),
            report.types,
            report.classes,
            report.rules,
            report.version,
            report.image_bytes,
            report.tables_bytes,
            report.compile_seconds,
            report.tables_seconds,
        ))?;
        if let Some(labelled) = file_contexts::told(&report.file_contexts) {
            output::line(&labelled)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether both paths lead to one file, also over links.
fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// The sources of an error: the first one, and how many more there are.
fn list(sources: &[PathBuf]) -> String {
    let first = sources.first().map_or_else(String::new, |path| path.display().to_string());
    if sources.len() > 1 { format!("{first} and {} more", sources.len() - 1) } else { first }
}
