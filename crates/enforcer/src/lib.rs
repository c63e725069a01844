//! The enforcer: Flask's enforcing half on BPF LSM.
//!
//! `bpf/` are the object managers, in the kernel. The rest is what loads them, labels what exists, swaps generations,
//! tells what was denied, and answers the command line.

pub mod canary;
pub mod contexts;
pub mod daemon;
pub mod enforcer;
pub mod events;
pub mod generation;
pub mod hooks;
pub mod inquiries;
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
pub mod services;
pub mod shares;
pub mod state;
mod subordinates;
pub mod survival;
pub mod units;
pub mod verified;
pub mod without_daemon;
