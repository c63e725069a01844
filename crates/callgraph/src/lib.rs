//! The call graph of a kernel image, and the LSM hooks that a system call can reach.
//!
//! Data flows one way: a file becomes an [`Image`], its symbols and types are read, each function's code is followed, and a
//! [`Graph`] joins the results. Everything is a function of bytes; the kernel is never run.
//!
//! ```no_run
//! use tollgate_callgraph::{Graph, Image, Search, StopList, Symbols};
//!
//! let image = Image::parse(std::fs::read("/boot/vmlinuz")?)?;
//! let graph = Graph::of(&image, &Symbols::of(&image, None)?)?;
//! let reach = Search::new(&graph, &StopList::own(), false).of("openat")?;
//! for hook in &reach.hooks {
//!     println!("{} after {} calls", hook.hook, hook.depth);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Whatever the bytes are, what comes is a graph, or an error that says what to give instead:
//!
//! ```
//! use tollgate_callgraph::Image;
//!
//! let error = Image::parse(b"#!/bin/sh\n".to_vec()).unwrap_err();
//! assert!(error.to_string().starts_with("this is no kernel image"));
//! ```

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

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
