//! Scenarios: a subject in a domain acts on objects, and an enforcer decides.
//!
//! One program does the same acts under the kernel's SELinux and under Tollgate, with one policy, and prints the results;
//! tests compare them. Expected verdicts are not written down: SELinux's result is the reference. The program runs only in
//! guests of tests.

mod actor;
mod acts;
pub mod compare;
mod context;
mod engine;
mod kernel;
mod objects;
pub mod outcome;
mod runner;
pub mod scenario;

use std::{ffi::OsString, process::ExitCode};

pub use engine::Engine;

/// The entry point: the first words say whether it runs scenarios or is a subject.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(actor) = actor::Actor::from_words(&words) {
        acts::perform(actor)
    }
    match runner::Order::from_words(&words).and_then(|order| runner::run(&order)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tollgate-scenario: {error}");
            ExitCode::from(2)
        }
    }
}
