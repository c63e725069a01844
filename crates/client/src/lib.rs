//! A library for programs that talk to Tollgate's daemon about contexts, labels, decisions and the state of enforcement.
//!
//! [`Client`] is a connection to the daemon's socket. [`protocol`] defines the lines that go over it (`docs/library.md`
//! describes them for other languages). The other modules are the reports that come as JSON. Nothing here needs
//! privilege or links libbpf, libselinux or libsepol.
//!
//! ```no_run
//! use std::{fs::File, os::fd::AsFd};
//!
//! use tollgate_client::{Client, ClientError, protocol::Attribute};
//!
//! fn main() -> Result<(), ClientError> {
//!     let mut daemon = Client::connect()?;
//!     let own = daemon.context(Attribute::Current, None)?.unwrap_or_default();
//!     let file = daemon.label(File::open("/etc/shadow")?.as_fd())?;
//!     let may = daemon.access(&own, &file, "file")?;
//!     println!("{own} may {} {file}", may.join(", "));
//!     Ok(())
//! }
//! ```
//!
//! What is said can be written and read without a daemon:
//!
//! ```
//! use tollgate_client::protocol::{Attribute, Request, parse_reply};
//!
//! let request = Request::Get(Attribute::Current);
//! assert_eq!(request.line(), "get current\n");
//! assert_eq!(Request::parse(b"get current"), Ok(request));
//!
//! let refusal = parse_reply(b"error 13 the%20policy%20does%20not%20allow%20it")?.unwrap_err();
//! assert_eq!((refusal.errno, refusal.text.as_str()), (13, "the policy does not allow it"));
//! # Ok::<(), tollgate_client::protocol::ProtocolError>(())
//! ```

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod after_gap;
mod client;
pub mod containers;
pub mod descriptors;
pub mod fleet;
pub mod guard;
pub mod network;
pub mod pidfd;
pub mod protocol;
pub mod sanity;
pub mod services;
pub mod shadow;
pub mod shares;
pub mod status;
pub mod tree;
pub mod units;
pub mod why;
pub mod wire;

pub use client::{Acted, Client, ClientError, be_permissive, clear_context, process};
