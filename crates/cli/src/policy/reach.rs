//! `tollgate policy reach`: where information can flow.

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use tollgate_policy::{
    cil,
    context::Kind,
    reach::{Limits, Reach, Step, Way},
    vectors::Vectors,
};

use crate::{output, policies};

/// How many types are printed without --all.
const MAX_SHOWN: usize = 20;
/// How many rules of a step are printed.
const RULES: usize = 2;
const NOTE: &str = "By the rules alone: constraints, MLS among them, may forbid more.";

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("ends").required(true).multiple(true))]
pub(crate) struct Arguments {
    /// A built policy; or CIL, a module package or a binary policy, which is built first
    policy: PathBuf,
    /// Follow information from this type: from a domain, or from an object that it can read
    #[arg(long, value_name = "TYPE", group = "ends")]
    from: Option<String>,
    /// Find domains that can write this type, directly or over other types; with --from, print the path
    #[arg(long, value_name = "TYPE", group = "ends")]
    to: Option<String>,
    /// Only paths over this type
    #[arg(long, value_name = "TYPE")]
    through: Option<String>,
    /// No paths over this type, such as a trusted domain; may be given several times
    #[arg(long, value_name = "TYPE")]
    exclude: Vec<String>,
    /// At most this many steps (with --through: before it and after it)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: Option<u32>,
    /// Also count permissions that carry little information: attributes, names, signals
    #[arg(long)]
    weak: bool,
    /// Print all types, each with its path
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    note: &'static str,
    /// Permissions of which it is not known in which direction information flows; they count for both.
    unknown: Vec<String>,
    types: Vec<Reached>,
}

#[derive(Debug, Serialize)]
struct Reached {
    name: String,
    steps: usize,
    path: Vec<Step>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let built = policies::open(&arguments.policy)?;
    let server = built.server()?;
    let vectors = Vectors::of(server.tables());
    let find = |name: &String| server.names().find(Kind::Type, name);
    let limits = Limits {
        exclude: arguments.exclude.iter().map(find).collect::<Result<_, _>>()?,
        steps: arguments.steps,
        weak: arguments.weak,
    };
    let (way, start, end) = match (&arguments.from, &arguments.to) {
        (Some(from), to) => (Way::From, find(from)?, to.as_ref().map(find).transpose()?),
        (None, Some(to)) => (Way::To, find(to)?, None),
        (None, None) => bail!("give --from TYPE, --to TYPE or both"),
    };
    let from = |start| Reach::new(&built.policy, &vectors, way, start, &limits);
    let first = from(start);
    let through = arguments.through.as_ref().map(find).transpose()?;
    // With `--through`: paths to that type, and from there on.
    let (lead, reach) = match through {
        None => (Vec::new(), first),
        Some(type_) => match first.path(type_) {
            Some(lead) => (lead, from(type_)),
            None => return print(arguments, &Answer { note: NOTE, unknown: Vec::new(), types: Vec::new() }),
        },
    };
    let mut types = Vec::new();
    for (number, _) in reach.types() {
        if number == start || end.is_some_and(|end| end != number) {
            continue;
        }
        let Some(rest) = reach.path(number) else { continue };
        let (mut path, rest) = if way == Way::From { (lead.clone(), rest) } else { (rest, lead.clone()) };
        path.extend(rest);
        types.push(Reached { name: cil::type_name(&built.policy, number), steps: path.len(), path });
    }
    let unknown = reach.unknown().map(str::to_owned).collect();
    print(arguments, &Answer { note: NOTE, unknown, types })
}

/// Exit status 1: both ends were given, and information can flow from one to the other.
fn print(arguments: &Arguments, answer: &Answer) -> anyhow::Result<ExitCode> {
    let both = arguments.from.is_some() && arguments.to.is_some();
    let status = if both && !answer.types.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS };
    if arguments.json {
        output::json(answer)?;
        return Ok(status);
    }
    let shown = if arguments.all { answer.types.len() } else { MAX_SHOWN };
    for reached in answer.types.iter().take(shown) {
        let plural = if reached.steps == 1 { "" } else { "s" };
        output::line(&format!("{} ({} step{plural})", reached.name, reached.steps))?;
        for step in &reached.path {
            output::line(&format!("  {} -> {}: {}", step.from, step.to, few(&step.rules, arguments.all)))?;
        }
    }
    if answer.types.len() > shown {
        output::line(&format!("(and {} more: --all)", answer.types.len() - shown))?;
    }
    let plural = if answer.types.len() == 1 { "" } else { "s" };
    output::line(&format!("{} type{plural}. {NOTE}", answer.types.len()))?;
    if !answer.unknown.is_empty() {
        let unknown = answer.unknown.join(", ");
        output::line(&format!("Counted as both ways, since it is not known where they lead: {unknown}"))?;
    }
    Ok(status)
}

/// The first rules of a step; an unconfined domain has a hundred of them.
fn few(rules: &[String], all: bool) -> String {
    match rules.get(RULES..) {
        Some(rest) if !all && !rest.is_empty() => {
            format!("{} (and {} more: --all)", rules[..RULES].join(" "), rest.len())
        }
        _ => rules.join(" "),
    }
}
