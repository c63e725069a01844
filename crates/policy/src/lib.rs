//! The security server: reads and compiles SELinux policies with libsepol, turns them into decision tables for BPF, and
//! answers questions about them.
//!
//! [`sources`] reads what the user names. [`sepol`] lets libsepol compile or read it in a confined child, which returns
//! the binary policy and its [`model`]. [`tables`] makes decision tables of the model, and [`built`] is the file that
//! holds all of it. [`origin`] is what it was built from. [`store`] is what a machine's own policy is built from, and
//! where that is kept. [`server`] answers questions, by [`decide`], the code that also runs in the kernel. [`explain`],
//! [`diff`], [`reach`], [`check`] and [`stats`] read the model. [`oracle`] asks libsepol the same questions.
//!
//! From a folder of CIL to an answer:
//!
//! ```
//! use tollgate_policy::{sepol::Options, sources};
//!
//! let sources = sources::read(&["../../policies/tollgate".into()])?;
//! let built = sources.build(&Options { without_lines: true, ..Options::default() })?;
//! let mut server = built.server()?;
//! let file = server.class("file")?;
//! let shadow = server.context("system_u:object_r:shadow_t:s0")?;
//! for (domain, reads) in [("sshd.t", true), ("ntp.t", false)] {
//!     let domain = server.context(&format!("system_u:system_r:{domain}:s0"))?;
//!     let allowed = server.access(domain, shadow, file).allowed;
//!     assert_eq!(server.permissions(file, allowed).contains(&"read"), reads);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod booleans;
pub mod built;
pub mod check;
pub mod cil;
pub mod context;
pub mod decide;
pub mod diff;
pub mod dump;
pub mod explain;
pub mod file_contexts;
#[cfg(test)]
mod fuzz;
pub mod kernel;
pub mod libbpf;
pub mod lines;
pub mod model;
pub mod oracle;
pub mod origin;
pub mod reach;
pub mod sepol;
pub mod server;
pub mod sources;
pub mod stats;
pub mod store;
pub mod tables;
pub mod vectors;
pub mod verify;
