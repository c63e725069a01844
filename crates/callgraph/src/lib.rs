//! The call graph of a kernel image, and the LSM hooks that a system call can reach.
//!
//! Data flows one way: a file becomes an [`Image`], its symbols and types are read, each function's code is followed, and a
//! [`Graph`] joins the results. Everything is a function of bytes; the kernel is never run.

mod btf;
mod code;
mod error;
mod graph;
mod hooks;
mod image;
pub mod picture;
mod reach;
mod report;
#[cfg(test)]
mod sample;
mod stop;
mod symbols;
mod tables;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use graph::{Figures, Graph};
pub use image::{Image, Section};
pub use reach::{Extent, Reach, Reached, Search, Step};
pub use report::{Comparison, Hook, Moved, PUBLISHED, Published, Report, Side};
pub use stop::StopList;
pub use symbols::{Function, Source, Symbol, Symbols};
