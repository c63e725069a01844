//! `tollgate policy`: builds and examines policies.

mod boolean;
mod build;
mod check;
mod context;
mod debian;
mod diff;
mod explain;
mod export;
mod file_contexts;
mod install;
mod label;
mod list;
mod query;
mod question;
mod reach;
mod rebuild;
mod remove;
mod stats;
mod verify;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    process::ExitCode,
};

use anyhow::Context;
use clap::Subcommand;
use tollgate_policy::server::Ask;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile CIL, module packages or a binary policy into decision tables
    Build(build::Build),
    /// Add modules to the policy of this machine, in force and for the next start
    Install(install::Arguments),
    /// Remove modules from it
    Remove(remove::Arguments),
    /// List its modules
    List(list::Arguments),
    /// Build it anew, from the shipped policy, the modules and the other files in /etc/tollgate
    Rebuild(rebuild::Arguments),
    /// Build Debian's own policy from its packages
    Debian(debian::Debian),
    /// Write the binary policy or the file contexts of a built policy to files
    Export(export::Export),
    /// Print what a source context may do to a target context
    Query(question::Question),
    /// Print contexts as the policy writes them, or what is wrong with them; exit status 1 if one is not valid
    Context(context::Arguments),
    /// Print the context of a new object, or of a process after exec
    Transition(label::Transition),
    /// Print the context of a member of a polyinstantiated object
    Member(question::Question),
    /// Print the context to relabel an object to
    Change(question::Question),
    /// Explain a decision, and what would change it; exit status 1 if it is denied
    Explain(explain::Explain),
    /// Print what changing from one policy to another grants and takes away; exit status 1 if they differ
    Diff(diff::Arguments),
    /// Print where information can go from a type, or who can write one; exit status 1 if --from reaches --to
    Reach(reach::Arguments),
    /// Print figures of a policy and of its decision tables
    Stats(stats::Arguments),
    /// Look for what a policy leaves open and what a kernel cannot enforce; exit status 1 if something is found
    Check(check::Arguments),
    /// List booleans, or set them in a new policy, or print what setting them would change
    Bool(boolean::Arguments),
    /// Compare the tables with libsepol, the running kernel's SELinux or BPF, or all rules; exit status 1 if decisions differ
    Verify(verify::Verify),
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Build(arguments) => build::run(&arguments),
        Command::Install(arguments) => install::run(&arguments),
        Command::Remove(arguments) => remove::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Rebuild(arguments) => rebuild::run(&arguments),
        Command::Debian(arguments) => debian::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Context(arguments) => context::run(&arguments),
        Command::Transition(arguments) => label::transition(&arguments),
        Command::Member(arguments) => label::run(Ask::Member, &arguments, None),
        Command::Change(arguments) => label::run(Ask::Change, &arguments, None),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Reach(arguments) => reach::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Bool(arguments) => boolean::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
    }
}

/// Answers each line of a file (`-`: standard input) on a line of its own, in order. A line without an answer gets its error
/// in that place, and makes the exit status 2.
fn batch(file: &Path, mut answer: impl FnMut(&[&str]) -> anyhow::Result<String>) -> anyhow::Result<ExitCode> {
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(file).with_context(|| format!("cannot open {}", file.display()))?)
    };
    let mut input = BufReader::new(input);
    let (mut text, mut line) = (String::new(), Vec::new());
    let mut failed = false;
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).with_context(|| format!("cannot read {}", file.display()))? == 0 {
            break;
        }
        let question = String::from_utf8_lossy(&line);
        let fields: Vec<&str> = question.trim_end_matches(['\n', '\r']).split('\t').collect();
        match answer(&fields) {
            Ok(answer) => text.push_str(&answer),
            Err(error) => {
                failed = true;
                text.push_str(&format!("error: {error:#}").replace('\n', " "));
            }
        }
        text.push('\n');
        if text.len() > 1 << 16 {
            output::write(&text)?;
            text.clear();
        }
    }
    output::write(&text)?;
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}
