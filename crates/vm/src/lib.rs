//! Runs a command under a kernel and returns its result.
//!
//! A [`Kernel`] is found by name ([`kernels::find`]), an [`Image`] holds what the guest needs, a [`Machine`] says which modules and which
//! clock; [`guest::run`] boots it and returns an [`guest::Outcome`]. [`agent::main`] is the other end, inside the guest.
//! A machine that has booted can be saved and continued: [`saved`].

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod accelerator;
pub mod agent;
pub mod built;
mod channel;
mod console;
mod cpio;
mod error;
pub mod guest;
pub mod image;
pub mod instruction_log;
pub mod kernel;
pub mod kernels;
pub mod machine;
pub mod modules;
mod monitor;
mod order;
pub mod saved;
pub mod system;
mod value;
pub mod wire;

pub use error::Error;
pub use image::Image;
pub use instruction_log::InstructionLog;
pub use kernel::Kernel;
pub use machine::{Accelerator, Clock, Disk, Machine};
pub use saved::Saved;
pub use wire::Wire;
