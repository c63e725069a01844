//! `tollgate port`: labels of ports, as with semanage's port.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tollgate_policy::store::{Port, Protocol, context_like};

use crate::{output, store};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Label ports that the policy does not label, or only as part of a range
    Add(Add),
    /// Remove a label that was added here
    Remove(Remove),
    /// List the labels of ports; if several ranges contain a port, the smallest counts
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The type, or a whole context
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    type_: String,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    options: store::Options,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    options: store::Options,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List only labels that were added here
    #[arg(short = 'C', long)]
    local: bool,
    #[command(flatten)]
    root: store::Root,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Which {
    /// The protocol: tcp, udp, ...
    #[arg(short = 'p', long = "proto", value_enum)]
    protocol: Name,
    /// A port, or a range of them, such as 8000-8010
    #[arg(value_name = "PORT[-PORT]")]
    ports: String,
}

impl Which {
    fn port(&self, context: &str) -> anyhow::Result<Port> {
        let wrong = || format!("`{}` are no ports: expected one from 1 to 65535, or LOW-HIGH", self.ports);
        Port::new(self.protocol.into(), &self.ports, context).with_context(wrong)
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Name {
    Tcp,
    Udp,
    Dccp,
    Sctp,
}

impl From<Name> for Protocol {
    fn from(name: Name) -> Self {
        match name {
            Name::Tcp => Self::Tcp,
            Name::Udp => Self::Udp,
            Name::Dccp => Self::Dccp,
            Name::Sctp => Self::Sctp,
        }
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    protocol: String,
    low: u16,
    high: u16,
    context: String,
    local: bool,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Add(Add { type_, which, options }) => store::change(options, |contents, current| {
            let (port, replaced) = current.with(|built| {
                let port = which.port(&context_like(built, "port", type_)?)?;
                let replaced = contents.add_port(&port, &built.policy)?;
                Ok((port, replaced))
            })?;
            let before = if replaced { ", in the place of another label" } else { "" };
            Ok(vec![format!("{port} is {}{before}", port.context)])
        }),
        Command::Remove(Remove { which, options }) => store::change(options, |contents, _| {
            let port = which.port("")?;
            if !contents.remove_port(&port)? {
                bail!(
                    "{port} has no label that was added here: `tollgate port list --local` lists the ports that have"
                );
            }
            Ok(vec![format!("{port}: removed")])
        }),
        Command::List(arguments) => list(arguments),
    }
}

fn list(List { local, root, json }: &List) -> anyhow::Result<ExitCode> {
    let store = root.store();
    let contents = store.read()?;
    let (kept, own) = (store.kept()?, contents.ports()?);
    let current = store::Current { kept: kept.as_ref(), sources: &contents };
    let ports = current.with(|built| Ok(Port::of(&built.policy)))?;
    let listed = ports.into_iter().map(|port| Listed {
        local: own.iter().any(|own| own.is_for(&port)),
        protocol: port.protocol.to_string(),
        low: port.low,
        high: port.high,
        context: port.context,
    });
    let listed: Vec<Listed> = listed.filter(|port| port.local || !local).collect();
    if *json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    for Listed { protocol, low, high, context, local: is_own } in &listed {
        let ports = if low == high { low.to_string() } else { format!("{low}-{high}") };
        let own = if *is_own && !local { "  (local)" } else { "" };
        output::line(&format!("{protocol:<5} {ports:<12} {context}{own}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
