//! `tollgate`: the command line, the daemon and the agent inside the guest.

mod audit;
mod bench;
mod boolean;
mod container;
mod denials;
mod difference;
mod enforcer;
mod explain;
mod fcontext;
mod fleet;
mod guard;
mod hooks;
mod interrupt;
mod key;
mod latency;
mod learn;
mod log;
mod manual;
mod model;
mod net;
mod output;
mod policies;
mod policy;
mod port;
mod service;
mod signed;
mod store;
mod study;
mod unit;
mod vm;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use tollgate_bench::{counter, run::settle};
use tollgate_vm::agent;

/// Mandatory access control for stock kernels, and an instrument that measures what security modules cost
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build, query, explain and compare policies
    #[command(subcommand)]
    Policy(policy::Command),
    /// Enforce a policy on this machine
    Enforce(enforcer::enforce::Arguments),
    /// Load the programs that enforcement needs and attach none, so that a start in a machine that is saved now is short
    Preload,
    /// Print what is enforced, where, since when, and what failed; exit status 1 if nothing is
    Status(enforcer::status::Arguments),
    /// Print or set the mode, for the machine or for one domain
    Mode(enforcer::mode::Arguments),
    /// Put another policy in force
    Reload(enforcer::reload::Arguments),
    /// Try a policy beside the one in force, and list what it would have decided differently
    #[command(subcommand)]
    Shadow(enforcer::shadow::Command),
    /// End enforcement: nothing is denied any more
    Stop(enforcer::stop::Arguments),
    /// Run a command in another context
    Run(enforcer::run::Arguments),
    /// List processes with their contexts
    Ps(enforcer::ps::Arguments),
    /// Print, set and restore labels of files
    #[command(subcommand)]
    Label(enforcer::label::Command),
    /// List, add and remove the labels that paths get
    #[command(subcommand)]
    Fcontext(fcontext::Command),
    /// List, add and remove labels of ports
    #[command(subcommand)]
    Port(port::Command),
    /// List and set booleans of the policy in force
    #[command(subcommand)]
    Bool(boolean::Command),
    /// List and set the contexts that processes of systemd units get, whatever program they run
    #[command(subcommand)]
    Unit(unit::Command),
    /// Give containers contexts of their own, and list them
    #[command(subcommand)]
    Container(container::Command),
    /// Show which networks' packets have labels, what became of packets, and make keys that seal labels
    #[command(subcommand)]
    Net(net::Command),
    /// Check what privileged programs call, by a database that learns
    #[command(subcommand)]
    Guard(guard::Command),
    /// Make keys, sign files, and verify signatures
    #[command(subcommand)]
    Key(key::Command),
    /// Publish one signed policy to many machines, and see which of them prove that they enforce it
    Fleet(fleet::Arguments),
    /// Print what was denied, or granted and audited
    Audit(audit::Arguments),
    /// Confine a service by one command; list what should be confined, and what is
    #[command(subcommand)]
    Service(service::Command),
    /// Explain why something was denied, what would allow it, and to which other domains that would give access
    Explain(explain::Arguments),
    /// Write rules, as CIL, that allow what was denied and nothing else
    Learn(learn::Arguments),
    /// Measure what security modules cost, and compare the results
    #[command(subcommand)]
    Study(study::Command),
    /// Show which hooks system calls pass
    #[command(subcommand)]
    Hooks(hooks::Command),
    /// Run commands under kernels in virtual machines
    #[command(subcommand)]
    Vm(vm::Command),
    /// Measure workloads on this machine
    #[command(subcommand)]
    Bench(bench::Command),
    /// Make hooks take longer, to see what a policy of that latency would cost
    #[command(subcommand)]
    Latency(latency::Command),
    /// Predict what hooks cost a workload, from experiments
    #[command(subcommand)]
    Model(model::Command),
    /// Print a shell's completion script
    Completions {
        /// The shell that reads the script
        shell: Shell,
    },
    /// Write manual pages, one per command, into a folder
    #[command(hide = true)]
    Manuals {
        /// The folder; it is created if it does not exist
        folder: PathBuf,
    },
}

/// The code that measures in a guest.
const INSTRUMENTS: agent::Instruments =
    agent::Instruments { settle: settle::describe, idle_ns: counter::idle_nanoseconds };

fn main() -> ExitCode {
    if agent::is_init() {
        agent::main(INSTRUMENTS);
    }
    let command = Arguments::parse().command;
    let result = log::begin(matches!(command, Command::Enforce(_))).and_then(|()| run(command));
    result.unwrap_or_else(|error| {
        log::failed(&error);
        ExitCode::from(if interrupt::came() { interrupt::STATUS } else { 2 })
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Policy(command) => policy::run(command),
        Command::Enforce(arguments) => enforcer::enforce::run(&arguments),
        Command::Preload => enforcer::preload::run(),
        Command::Status(arguments) => enforcer::status::run(&arguments),
        Command::Mode(arguments) => enforcer::mode::run(&arguments),
        Command::Reload(arguments) => enforcer::reload::run(&arguments),
        Command::Shadow(command) => enforcer::shadow::run(&command),
        Command::Stop(arguments) => enforcer::stop::run(&arguments),
        Command::Run(arguments) => enforcer::run::run(&arguments),
        Command::Ps(arguments) => enforcer::ps::run(&arguments),
        Command::Label(command) => enforcer::label::run(command),
        Command::Fcontext(command) => fcontext::run(&command),
        Command::Port(command) => port::run(&command),
        Command::Bool(command) => boolean::run(&command),
        Command::Unit(command) => unit::run(command),
        Command::Container(command) => container::run(command),
        Command::Net(command) => net::run(&command),
        Command::Guard(command) => guard::run(&command),
        Command::Fleet(arguments) => fleet::run(&arguments),
        Command::Key(command) => key::run(&command),
        Command::Service(command) => service::run(&command),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Learn(arguments) => learn::run(&arguments),
        Command::Study(command) => study::run(command),
        Command::Hooks(command) => hooks::run(command),
        Command::Vm(command) => vm::run(command),
        Command::Bench(command) => bench::run(command),
        Command::Latency(command) => latency::run(command),
        Command::Model(command) => model::run(command),
        Command::Completions { shell } => {
            // The script is collected in memory, because the generator panics when its reader, such as `head`, has gone away.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "tollgate", &mut script);
            output::write(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
        }
        Command::Manuals { folder } => manual::write(Arguments::command(), &folder)
            .with_context(|| format!("cannot write manual pages into {}", folder.display()))
            .map(|()| ExitCode::SUCCESS),
    }
}
