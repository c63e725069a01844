//! `tollgate policy list`: the modules of this machine's policy.

use std::{fmt, process::ExitCode};

use clap::Args;
use serde::Serialize;
use tollgate_policy::{
    origin::{Origin, Source},
    store::Module,
};

use crate::{output, store};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    root: store::Root,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Whether the policy that the machine starts with has a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    BuiltIn,
    Changed,
    NotBuiltIn,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BuiltIn => "built in",
            Self::Changed => "changed since it was built in",
            Self::NotBuiltIn => "not built in",
        })
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    state: State,
    files: Vec<Source>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let store = arguments.root.store();
    let contents = store.read()?;
    let origin = store.identity()?.and_then(|kept| kept.origin);
    let list: Vec<Listed> = contents
        .modules()
        .map(|Module { name, files }| Listed { name: name.to_owned(), state: state(&files, origin.as_ref()), files })
        .collect();
    if arguments.json {
        output::json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = list.iter().map(|module| module.name.len()).max().unwrap_or_default();
    for Listed { name, state, files } in &list {
        let labels = if files.len() > 1 { ", with file contexts" } else { "" };
        output::line(&format!("{name:<width$}  {state}{labels}"))?;
    }
    if list.iter().any(|module| module.state != State::BuiltIn) {
        eprintln!("tollgate: `tollgate policy rebuild` builds them in");
    }
    Ok(ExitCode::SUCCESS)
}

fn state(files: &[Source], origin: Option<&Origin>) -> State {
    let built = origin.map_or(&[][..], |origin| &origin.sources);
    if files.iter().all(|file| built.contains(file)) {
        return State::BuiltIn;
    }
    let known = files.iter().any(|file| built.iter().any(|source| source.name == file.name));
    if known { State::Changed } else { State::NotBuiltIn }
}
