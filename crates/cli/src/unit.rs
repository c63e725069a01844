//! `tollgate unit`: contexts of systemd's units.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, bail};
use clap::Subcommand;
use tollgate_client::{Client, ClientError, units::Unit};
use tollgate_enforcer::units::{
    Places, Table,
    local::{self, FILE},
    names::Name,
    systemd, unit,
};

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a unit's processes a context, from its next start on; it takes precedence over the unit's SELinuxContext=
    Set {
        /// The unit: `web` or `web.service`; `web@.service` stands for all its instances
        unit: String,
        /// The context; with `-` before it, the unit also runs if the policy does not have the context
        #[arg(allow_hyphen_values = true)]
        context: String,
    },
    /// Remove the context that `set` has given; the unit's SELinuxContext= applies again
    Unset {
        /// The unit, as for `set`
        unit: String,
    },
    /// List the units that have a context, and the file that sets it; exit status 1 if one of them cannot start
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Set { unit, context } => set(&name(&unit)?, &context),
        Command::Unset { unit } => unset(&name(&unit)?),
        Command::List { json } => list(json),
    }
}

/// Parses a unit's name; the kind of a service may be left out, as in systemctl.
pub(crate) fn name(unit: &str) -> anyhow::Result<Name> {
    Ok(if unit.contains('.') { unit.parse()? } else { format!("{unit}.service").parse()? })
}

fn set(unit: &Name, context: &str) -> anyhow::Result<ExitCode> {
    let daemon = daemon()?;
    if let Some(mut client) = daemon {
        let plain = context.strip_prefix('-').unwrap_or(context);
        client.is_context(plain).with_context(|| format!("{unit} stays as it is"))?;
    } else {
        eprintln!("tollgate: no daemon runs: the next one checks whether the policy has the context");
    }
    if !systemd::is_known(&Places::default().load, unit) {
        eprintln!("tollgate: systemd has no unit {unit} so far");
    }
    if assign(unit, Some(context))? {
        eprintln!("tollgate: what {unit} runs now stays as it is: `systemctl restart {unit}`");
    }
    Ok(ExitCode::SUCCESS)
}

fn unset(unit: &Name) -> anyhow::Result<ExitCode> {
    if !assign(unit, None)? {
        bail!("{FILE} gives {unit} no context; `tollgate unit list` says where contexts are written");
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives a unit another context, or none, and notifies the daemon; returns whether anything changed.
pub(crate) fn assign(unit: &Name, context: Option<&str>) -> anyhow::Result<bool> {
    let changed = local::set(Path::new(FILE), unit, context)?;
    if changed {
        put_in_force()?;
    }
    Ok(changed)
}

/// The daemon notices the file itself, a moment later.
fn put_in_force() -> anyhow::Result<()> {
    match daemon()? {
        Some(mut client) => Ok(client.units().map(drop)?),
        None => Ok(()),
    }
}

/// The daemon's connection; `None`: no daemon runs.
fn daemon() -> Result<Option<Client>, ClientError> {
    match Client::connect() {
        Err(ClientError::NoDaemon { .. }) => Ok(None),
        other => other.map(Some),
    }
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let units = if let Some(mut client) = daemon()? {
        client.units()?
    } else {
        eprintln!(
            "tollgate: no daemon runs: these are the contexts in the files; the kernel uses those from when the last one ran"
        );
        written()
    };
    if json {
        output::json(&units)?;
    } else {
        output::write(&text(&units))?;
    }
    let fails = units.iter().any(|unit| unit.problem.is_some() && !unit.ignorable);
    Ok(ExitCode::from(u8::from(fails)))
}

fn written() -> Vec<Unit> {
    let Table { units, messages } = Table::read(&Places::default());
    messages.iter().for_each(|failure| eprintln!("tollgate: {failure}"));
    units.into_iter().map(|(name, setting)| unit(&name, setting, None)).collect()
}

fn text(units: &[Unit]) -> String {
    let lines = units.iter().map(|unit| {
        let Unit { name, context, source, problem, ignorable } = unit;
        let context = if context.is_empty() { "(by its program)" } else { context };
        let problem = problem.as_ref().map_or_else(String::new, |cause| {
            let what = if *ignorable { "runs without it" } else { "cannot start" };
            format!("\n    {what}: {cause}")
        });
        format!("{name:<32} {context} {}{problem}\n", source.display())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_name_as_systemctl_does() {
        assert_eq!(name("web").unwrap().to_string(), "web.service");
        assert_eq!(name("web@").unwrap().to_string(), "web@.service");
        assert_eq!(name("data.mount").unwrap().to_string(), "data.mount");
        assert!(name("web.timer").unwrap_err().to_string().contains(".service, .socket"));
    }

    #[test]
    fn says_what_becomes_of_a_unit_whose_context_cannot_be() {
        let unit = |ignorable| Unit {
            name: "web.service".into(),
            context: "a:b:c".into(),
            source: "/x".into(),
            problem: Some("no type c".into()),
            ignorable,
        };
        assert!(text(&[unit(false)]).ends_with("a:b:c /x\n    cannot start: no type c\n"));
        assert!(text(&[unit(true)]).ends_with("runs without it: no type c\n"));
    }
}
