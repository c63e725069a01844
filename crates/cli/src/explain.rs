//! `tollgate explain`: why something was denied.

use std::{path::Path, process::ExitCode};

use clap::Args;
use tollgate_audit::{
    Denial, Entry,
    avc::Verdict,
    explain::{self, Explained},
};
use tollgate_enforcer::labels::file_contexts::FileContexts;
use tollgate_policy::explain::Explainer;

use crate::{denials::Denials, output};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    denials: Denials,
    /// Explain this many of the last denials; those that differ only in time, process and object count as one
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 1)]
    last: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let entries = arguments.denials.read()?;
    if arguments.denials.domain().is_some() {
        let (built, name) = arguments.denials.policy()?;
        arguments.denials.check_domain(&built, &name, &entries)?;
    }
    let denials = last(entries, arguments.last);
    if denials.is_empty() {
        eprintln!("tollgate: the log has no such denial");
        return Ok(ExitCode::SUCCESS);
    }
    let (built, _) = arguments.denials.policy()?;
    let explainer = Explainer::new(&built.policy, &built.lines);
    let file_contexts = FileContexts::new(&built.file_contexts)
        .inspect_err(|cause| eprintln!("tollgate: labels by path are not shown: {cause}"))
        .ok();
    let lookup = |path: &Path, mode: u32| file_contexts.as_ref()?.lookup(path, mode).ok()?;
    let explained = denials.into_iter().map(|denial| explain::explain(&explainer, Some(&lookup), denial));
    let explained: Vec<Explained> = explained.collect();
    if arguments.json {
        output::json(&explained)?;
    } else {
        let texts: Vec<String> = explained.iter().map(ToString::to_string).collect();
        output::write(&texts.join("\n"))?;
    }
    Ok(ExitCode::from(1))
}

/// The last denials that differ, the oldest first.
fn last(entries: Vec<Entry>, count: usize) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    let same = |one: &Denial, other: &Denial| {
        (&one.scontext, &one.tcontext, &one.tclass, &one.permissions)
            == (&other.scontext, &other.tcontext, &other.tclass, &other.permissions)
    };
    for entry in entries.into_iter().rev() {
        match entry {
            Entry::Avc(denial) if denial.verdict == Verdict::Denied && !found.iter().any(|own| same(own, &denial)) => {
                found.push(denial);
            }
            _ => {}
        }
        if found.len() >= count {
            break;
        }
    }
    found.reverse();
    found
}
