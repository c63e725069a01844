//! `tollgate service`: confines services of this machine, and lists them.

mod act;
mod confine;
mod exercise;
mod known;
mod list;
mod proposal;
mod unconfine;

use std::process::ExitCode;

use clap::Subcommand;
use tollgate_client::Client;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Confine a service: give it a domain, learn what it does, say in words what that allows, and enforce it
    Confine(confine::Arguments),
    /// Remove a service's domain
    Unconfine(unconfine::Arguments),
    /// List services that should be confined, and what others can reach, with the domains that they run in and where they
    /// listen; exit status 1 if one that should be confined is not
    List(list::Arguments),
    /// Accept the present state: what was confined before and is not now is no longer reported
    Accept,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Confine(arguments) => confine::run(arguments),
        Command::Unconfine(arguments) => unconfine::run(arguments),
        Command::List(arguments) => list::run(arguments),
        Command::Accept => {
            Client::connect()?.accept_services()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
