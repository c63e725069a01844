//! The enforcer: the enforcing half of the Flask architecture, on BPF LSM.
//!
//! `bpf/` has the object managers, which run in the kernel. The rest loads them, labels existing objects, switches
//! generations, reports denials, and answers the command line.

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod asking;
pub mod canary;
pub mod containers;
pub mod contexts;
pub mod cost;
pub mod daemon;
pub mod datapath;
pub mod enforcer;
pub mod events;
pub mod generation;
pub mod guard;
mod guarded;
pub mod hooks;
pub mod inquiries;
mod iterator;
pub mod labels;
pub mod lineage;
pub mod mapping;
pub mod metrics;
pub mod missing;
pub mod needs;
pub mod network;
pub mod preloaded;
pub mod programs;
pub mod progress;
pub mod requirements;
pub mod revocation;
pub mod sanity;
pub mod services;
pub mod shares;
pub mod state;
pub mod status_page;
mod subordinates;
pub mod survival;
pub mod units;
pub mod verified;
pub mod without_daemon;
