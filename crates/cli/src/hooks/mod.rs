//! `tollgate hooks`: which hooks system calls pass.

mod count;
mod counted;
mod graph;
mod text;

use std::process::ExitCode;

use clap::Subcommand;
use tollgate_callgraph::StopList;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Read a kernel's image, and print the hooks that each system call can reach; exit status 1 if two kernels differ
    Graph(graph::Arguments),
    /// Count the hooks that the system calls of a command or a workload call, with the kernel's function tracer
    Count(count::Arguments),
    /// Print the functions at which such a search stops, each with its reason, in the form of --stop FILE
    StopList,
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Graph(arguments) => graph::run(&arguments),
        Command::Count(arguments) => count::run(&arguments),
        Command::StopList => output::write(StopList::own_text()).map(|()| ExitCode::SUCCESS),
    }
}
