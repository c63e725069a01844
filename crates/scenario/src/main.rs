//! `tollgate-scenario`: runs scenarios in a guest, and is the subject in each.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    tollgate_scenario::main(env::args_os())
}
