//! The enforcer: Flask's enforcing half on BPF LSM.
//!
//! `bpf/` are the object managers, in the kernel. The rest is what loads them, labels what exists, swaps generations,
//! tells what was denied, and answers the command line.

pub mod after_gap;
pub mod audit;
pub mod canary;
pub mod client;
pub mod contexts;
pub mod daemon;
pub mod descriptors;
pub mod enforcer;
pub mod explain;
pub mod generation;
pub mod guard;
pub mod hooks;
pub mod inquiries;
pub mod labels;
pub mod learn;
pub mod lineage;
pub mod mapping;
pub mod metrics;
pub mod missing;
pub mod needs;
pub mod network;
pub mod programs;
pub mod progress;
pub mod protocol;
pub mod requirements;
pub mod revocation;
pub mod sanity;
pub mod services;
pub mod shadow;
pub mod shares;
pub mod state;
pub mod status;
mod subordinates;
pub mod units;
pub mod verified;
mod wire;
