//! `tollgate-fleet`: what an administrator publishes with, and the agent of a node.

mod agent;
mod ceremony;
mod daemon;
mod enforcer;
mod enrol;
mod etcd;
mod input;
mod keys;
mod node;
mod output;
mod place;
mod publish;
mod report;
mod simulate;
mod source;
mod token;
#[cfg(test)]
mod walk;
mod zones;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};

/// The fleet: one signed policy on every machine, and proof that it is there
#[derive(Debug, Parser)]
#[command(name = "tollgate-fleet", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a fleet: write its root file, which says whose signatures count
    Init(keys::Init),
    /// Sign the next version of the root file, with other keys or for a longer time
    Keys(keys::Keys),
    /// Add a signature to what `--draft` has written, without the store
    Sign(ceremony::Sign),
    /// Put into the store what enough keys have signed in turn
    Submit(ceremony::Submit),
    /// Publish a policy for a group of nodes
    Publish(publish::Publish),
    /// Go to the next stage of a rollout, or stop it
    Rollout(publish::Rollout),
    /// Go back at once to the generation that all nodes had before
    Rollback(publish::What),
    /// Approve a node before it asks: make a token, with which it enrols once
    Token(token::Token),
    /// Ask, on a node, to belong to the fleet
    Enrol(enrol::Enrol),
    /// Approve a node that has asked
    Approve(enrol::Approve),
    /// Take a node out of the fleet
    Revoke(enrol::Revoke),
    /// Say what is published, and who asks to belong to the fleet
    Status(report::Status),
    /// Say which nodes prove that they enforce it; exit status 1 unless all do
    Report(report::Asked),
    /// Say which zones the fleet has, and what crosses between them; exit status 1 if the policy was not built with them
    Zones(zones::Arguments),
    /// Take, on a node, what is published
    Agent(agent::Agent),
    /// Simulate a fleet in an empty store: how long it takes to tell many nodes, and what the store needs for it
    Simulate(simulate::Simulate),
    /// Print a shell's completion script
    Completions {
        /// The shell that reads the script
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one per command, into a folder
    #[command(hide = true)]
    Manuals {
        /// The folder; it is created if it does not exist
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(&command)));
    result.unwrap_or_else(|error| {
        output::failed(&error);
        ExitCode::from(2)
    })
}

async fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Init(arguments) => keys::init(arguments).await,
        Command::Keys(arguments) => keys::keys(arguments).await,
        Command::Sign(arguments) => ceremony::sign(arguments),
        Command::Submit(arguments) => ceremony::submit(arguments).await,
        Command::Publish(arguments) => publish::publish(arguments).await,
        Command::Rollout(arguments) => publish::rollout(arguments).await,
        Command::Rollback(arguments) => publish::rollback(arguments).await,
        Command::Token(arguments) => token::token(arguments),
        Command::Enrol(arguments) => enrol::enrol(arguments).await,
        Command::Approve(arguments) => enrol::approve(arguments).await,
        Command::Revoke(arguments) => enrol::revoke(arguments).await,
        Command::Status(arguments) => report::status(arguments).await,
        Command::Report(arguments) => report::report(arguments).await,
        Command::Zones(arguments) => zones::zones(arguments),
        Command::Agent(arguments) => agent::agent(arguments).await,
        Command::Simulate(arguments) => simulate::simulate(arguments).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "tollgate-fleet", &mut script);
            output::line(String::from_utf8_lossy(&script).trim_end()).map(|()| ExitCode::SUCCESS)
        }
        Command::Manuals { folder } => manuals(folder).map(|()| ExitCode::SUCCESS),
    }
}

/// The page of the program itself is that of `tollgate fleet`.
fn manuals(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let mut program = Arguments::command();
    program.build();
    for command in program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let man = clap_mangen::Man::new(command.clone()).manual("Tollgate");
        let mut text = Vec::new();
        man.render(&mut text)?;
        fs::write(folder.join(man.get_filename()), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_a_page_for_each_command() {
        let folder = tempfile::tempdir().unwrap();
        manuals(folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("tollgate-fleet-publish.1")).unwrap();
        assert!(page.contains("tollgate\\-fleet publish") || page.contains("tollgate\\-fleet\\-publish"), "{page}");
        assert!(!folder.path().join("tollgate-fleet.1").exists());
        let commands = Arguments::command().get_subcommands().filter(|command| !command.is_hide_set()).count();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), commands);
    }
}
