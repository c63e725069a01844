//! `tollgate service`: services of this machine, confined.

mod act;
mod confine;
mod exercise;
mod known;
mod proposal;
mod unconfine;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Confine a service: give it a domain, learn what it does, say in words what that allows, and enforce it
    Confine(confine::Arguments),
    /// Take a service's domain away again
    Unconfine(unconfine::Arguments),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Confine(arguments) => confine::run(arguments),
        Command::Unconfine(arguments) => unconfine::run(arguments),
    }
}
