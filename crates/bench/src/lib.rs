//! Workloads, the measuring loop, and the security modules under test.
//!
//! Everything here runs on the measured machine: in a guest, or on the host. A [`job::Job`] says what to do; [`run::run`]
//! does it and returns a [`job::Report`].

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod asked;
pub mod command_line;
pub mod confine;
pub mod counter;
pub mod decisions;
mod error;
pub mod job;
pub mod labels;
pub mod measure;
mod network;
pub mod oracle;
pub mod place;
pub mod places;
mod program;
pub mod run;
pub mod selection;
pub mod tracing;
pub mod workload;
pub mod workloads;

pub use error::Error;
