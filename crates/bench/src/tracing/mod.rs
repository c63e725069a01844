//! Which hooks system calls ask, counted by the kernel's function tracer.
//!
//! [`session`] sets it up in tracing instances of its own ([`tracefs`]) and takes all down again; [`ring`] reads the buffers'
//! pages, [`event`] what is in them, and [`attribution`] says which call each hook belongs to; [`symbols`] and [`names`] name
//! them. [`command`] and [`operations`] are what is traced.

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
};
use crate::{Error, error::Context};

/// How to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Runs of the command, or operations: 1 or more.
    pub runs: u32,
    /// A processor's buffer.
    pub kilobytes: u32,
}

fn release() -> Result<String, Error> {
    Ok(uname().context("uname")?.release().to_string_lossy().into_owned())
}

/// The middle one; the lower of two.
fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len().checked_sub(1)? / 2).copied()
}
