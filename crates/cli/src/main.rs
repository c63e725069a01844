//! `tollgate`: the command line, the daemon and the agent inside the guest.

mod interrupt;
mod output;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tollgate_vm::agent;

/// Mandatory access control for stock kernels, and the instrument that says what such control costs
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kernels, and commands run under them
    #[command(subcommand)]
    Vm(vm::Command),
}

fn main() -> ExitCode {
    if agent::is_init() {
        agent::main(agent::Instruments { settle: || String::new(), idle_ns: || None });
    }
    let result = match Arguments::parse().command {
        Command::Vm(command) => vm::run(command),
    };
    result.unwrap_or_else(|error| {
        eprintln!("tollgate: {error:#}");
        ExitCode::from(2)
    })
}
