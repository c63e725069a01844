//! `tollgate bool`: booleans of the policy in force, as with getsebool and setsebool.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde::Serialize;
use tollgate_policy::{
    booleans,
    built::Built,
    store::{Contents, Store},
};

use crate::{
    output, policies,
    store::{self, Change},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set booleans in the policy in force; with -P also for the next start and after it
    Set(Set),
    /// List booleans: their values now and at the next start
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Keep the values for the next start, and for later builds of the policy
    #[arg(short = 'P', long)]
    persistent: bool,
    /// The values, as NAME=on or NAME=off
    #[arg(required = true, value_name = "NAME=on|off")]
    assignments: Vec<String>,
    #[command(flatten)]
    options: store::Options,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List only booleans of these names
    names: Vec<String>,
    #[command(flatten)]
    root: store::Root,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    /// The value in the policy in force; `None`: nothing is enforced, or its policy has no such boolean.
    now: Option<bool>,
    /// The value in the policy of the next start; `None` likewise.
    next_start: Option<bool>,
    /// How many conditions of rules contain it.
    rules: u32,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Set(arguments) => set(arguments),
        Command::List(arguments) => list(arguments),
    }
}

fn set(Set { persistent, assignments, options }: &Set) -> anyhow::Result<ExitCode> {
    let assignments = assignments.iter().map(|text| booleans::assignment(text)).collect::<Result<Vec<_>, _>>()?;
    let (store, _lock) = options.open()?;
    let running = options.running()?;
    let forced = running.as_ref().map(|running| booleans::set(&running.built, &assignments)).transpose()?;
    if !persistent && forced.is_none() {
        bail!("nothing is enforced, so no boolean can be set now: -P sets it for the next start");
    }
    let kept = store.kept()?;
    let (next, sources) = match (&kept, persistent) {
        (_, false) => (None, Default::default()),
        (None, true) => bail!("there is no policy for the next start: `tollgate policy rebuild` makes one"),
        (Some(kept), true) => keep(&store, kept, &assignments).map(|(next, sources)| (Some(next), sources))?,
    };
    let done = assignments.iter().map(|(name, value)| format!("{name}: {}", word(*value))).collect();
    Change { store: &store, done, kept, next, sources, running, forced }.apply(options)
}

/// The policy for the next start with these values, and its sources before and after. The policy is not built anew from its
/// sources, so nothing comes in force that nobody has looked at.
fn keep(store: &Store, kept: &Built, assignments: &[(String, bool)]) -> anyhow::Result<(Built, (Contents, Contents))> {
    let mut next = booleans::set(kept, assignments)?;
    if !next.origin.as_ref().is_some_and(|origin| store.has_built(origin)) {
        let path = store.policy_name();
        eprintln!(
            "tollgate: the values are kept in {0} itself: whoever builds that policy sets them again",
            path.display()
        );
        return Ok((next, Default::default()));
    }
    let before = store.read()?;
    let mut after = before.clone();
    after.set_booleans(assignments)?;
    if let (Some(origin), Some(source)) = (&mut next.origin, after.booleans_source()) {
        origin.sources.retain(|known| known.name != source.name);
        origin.sources.push(source);
    }
    Ok((next, (before, after)))
}

fn list(List { names, root, json }: &List) -> anyhow::Result<ExitCode> {
    let store = root.store();
    let kept = store.kept()?;
    let running = if root.is_here() { policies::running().ok().map(|(built, _)| built) } else { None };
    let of = |built: Option<&Built>| built.map(|built| booleans::list(&built.policy)).unwrap_or_default();
    let (now, next) = (of(running.as_ref()), of(kept.as_ref()));
    if running.is_none() && kept.is_none() {
        bail!("no policy is in force, and none is kept for the next start");
    }
    let mut all: Vec<&booleans::Listed> = now.iter().chain(&next).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.dedup_by(|a, b| a.name == b.name);
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|known| known.name == **name)) {
        bail!("the policy has no boolean `{unknown}`: `tollgate bool list` lists them");
    }
    let value = |list: &[booleans::Listed], name: &str| list.iter().find(|own| own.name == name).map(|own| own.value);
    let wanted = all.into_iter().filter(|known| names.is_empty() || names.contains(&known.name));
    let listed = wanted.map(|known| Listed {
        name: known.name.clone(),
        now: value(&now, &known.name),
        next_start: value(&next, &known.name),
        rules: known.rules,
    });
    tell(&listed.collect::<Vec<_>>(), *json)
}

fn tell(listed: &[Listed], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = listed.iter().map(|boolean| boolean.name.len()).max().unwrap_or_default();
    for Listed { name, now, next_start, .. } in listed {
        let [now, next] = [now, next_start].map(|value| value.map_or("none", word));
        output::line(&format!("{name:<width$}  {now:<4} (next start: {next})"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn word(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}
