//! What a service is, and the policy that confines it.
//!
//! [`machine`] examines the machine: systemd's unit, dpkg's packages, what processes listen on. The rest are functions
//! of values: a [`service::Service`] is what was found, [`block`] writes it as CIL, [`module`] is the file for that,
//! [`narrow`] gives ports types of their own, [`words`] says what a domain may do, and [`answers`] whom it may not
//! answer.

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod answers;
pub mod block;
pub mod grants;
pub mod identifier;
pub mod listening;
pub mod machine;
pub mod module;
pub mod narrow;
pub mod package;
pub mod program;
pub mod service;
pub mod unit;
pub mod words;
