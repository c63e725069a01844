//! Counts the hooks that system calls call, by the kernel's function tracer.
//!
//! [`session`] sets it up in tracing instances of its own ([`tracefs`]) and removes everything again. [`ring`] reads the
//! buffers' pages, [`event`] their records, and [`attribution`] assigns hooks to system calls. [`symbols`] and [`names`] name
//! both. [`command`] and [`operations`] are traced.

mod attribution;
mod command;
mod event;
mod names;
mod operations;
mod report;
mod ring;
mod session;
mod symbols;
mod tracefs;

use nix::sys::utsname::uname;

pub use self::{
    command::count_command,
    names::hook_of,
    operations::count_workloads,
    report::{Asked, CallReport, Report},
    symbols::Symbols,
};
use crate::{Error, error::Context};

/// Options of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Runs of the command, or operations: at least 1.
    pub runs: u32,
    /// The size of the buffer of each processor, in KB.
    pub kilobytes: u32,
}

fn release() -> Result<String, Error> {
    Ok(uname().context("uname")?.release().to_string_lossy().into_owned())
}

/// The median; of an even number, the lower middle value.
fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len().checked_sub(1)? / 2).copied()
}
