//! `tollgate guard`: what privileged programs may call.

mod edit;
mod file;
mod learn;
mod load;
mod merge;
pub(crate) mod run;
mod status;

use std::process::ExitCode;

use clap::Subcommand;
use tollgate_enforcer::{guard::Guard, requirements};

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the guard, or take it over, and log calls that no rule allows until a signal comes; the kernel goes on. The same
    /// as `tollgate enforce --guard --foreground`
    Run(run::Arguments),
    /// End the guard: nothing that privileged programs call is checked any more; exit status 1 if it was not running
    Stop,
    /// Say whether the guard runs, with which database, and what it has denied; exit status 1 if it does not run
    Status(status::Arguments),
    /// Print the database, one item per line, as it can be changed and loaded again
    List(edit::List),
    /// Enter programs by their paths, and other items by their lines
    Add(edit::Add),
    /// Remove programs by their paths, and other items by their lines
    Remove(edit::Remove),
    /// Set what becomes of calls that no rule allows: of a program, or of all that the database lacks
    Mode(edit::Mode),
    /// Print what would allow the calls that were granted while learning, or enter it
    Learn(learn::Arguments),
    /// Enter sets of a distribution's programs, such as those of /usr/share/tollgate/guard: the programs with the contents that
    /// they have here, and their rules. What the database has stays, and so do modes
    Merge(merge::Arguments),
    /// Replace the database by a file: one that was saved and signed, or text as `guard list` prints it
    Load(load::Load),
    /// Save the database to a file, so that it can be changed and signed elsewhere
    Save(load::Save),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Stop => stop(),
        Command::Status(arguments) => status::run(arguments),
        Command::List(arguments) => edit::list(arguments),
        Command::Add(arguments) => edit::add(arguments),
        Command::Remove(arguments) => edit::remove(arguments),
        Command::Mode(arguments) => edit::mode(arguments),
        Command::Learn(arguments) => learn::run(arguments),
        Command::Merge(arguments) => merge::run(arguments),
        Command::Load(arguments) => load::load(arguments),
        Command::Save(arguments) => load::save(arguments),
    }
}

fn stop() -> anyhow::Result<ExitCode> {
    requirements::root()?;
    let was_running = Guard::stop()?;
    if !was_running {
        output::line("the guard was not running")?;
    }
    Ok(ExitCode::from(u8::from(!was_running)))
}
