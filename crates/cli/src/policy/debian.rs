//! `tollgate policy debian`: builds Debian's own policies.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tollgate_debian::{self as debian, Flavour, Modules};
use tollgate_host::Cache;
use tollgate_policy::built::Built;

use super::file_contexts;
use crate::{interrupt, output};

#[derive(Debug, Args)]
pub(crate) struct Debian {
    /// Which of Debian's policies
    #[arg(value_enum)]
    flavour: Name,
    /// The built policy
    #[arg(short, long, value_name = "POLICY")]
    out: PathBuf,
    /// Take every module of the package, also those that an installation leaves disabled
    #[arg(long)]
    all_modules: bool,
    /// Compile this CIL together with the policy; nothing is taken from the cache then
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    #[command(flatten)]
    file_contexts: file_contexts::Arguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Name {
    /// Type enforcement, one sensitivity: selinux-policy-default
    Default,
    /// Sixteen sensitivities: selinux-policy-mls
    Mls,
}

/// What was built, as JSON has it.
#[derive(Debug, Serialize)]
struct Report {
    policy: PathBuf,
    suite: &'static str,
    version: u32,
    rules: usize,
    tables_bytes: usize,
    /// The folder of the cache with the binary policy, its file_contexts, and the packages that it was built from.
    cached: PathBuf,
    /// The files that `--file-contexts` named, and those beside them.
    file_contexts: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Debian) -> anyhow::Result<ExitCode> {
    let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
    let flavour = match arguments.flavour {
        Name::Default => Flavour::Default,
        Name::Mls => Flavour::Mls,
    };
    let modules = if arguments.all_modules { Modules::Shipped } else { Modules::Enabled };
    let cached = debian::build(&cache, flavour, modules)?;
    let mut built = if arguments.with.is_empty() {
        Built::open(&cached.join(debian::BUILT))?
    } else {
        let scratch = tempfile::tempdir()?;
        debian::compile(&cache, flavour, modules, &arguments.with, scratch.path())?.0
    };
    let file_contexts = arguments.file_contexts.put(&mut built)?;
    built.write(&arguments.out)?;
    let report = Report {
        policy: arguments.out.clone(),
        suite: debian::SUITE,
        version: built.policy.version,
        rules: built.policy.rules.len(),
        tables_bytes: built.tables.len(),
        cached,
        file_contexts,
    };
    if arguments.json {
        output::json(&report)?;
    } else {
        output::line(&format!(
            "{}: {} rules, decision tables {} bytes; policy.{}, file_contexts and packages are in {}",
            report.policy.display(),
            report.rules,
            report.tables_bytes,
            report.version,
            report.cached.display()
        ))?;
        if let Some(labelled) = file_contexts::told(&report.file_contexts) {
            output::line(&labelled)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
