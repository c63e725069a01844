//! Study files, configurations, statistics, results and reports.

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod applications;
pub mod breakdown;
pub mod caches;
pub mod compare;
pub mod configuration;
pub mod design;
pub mod environment;
pub mod export;
pub mod laboratory;
pub mod machine;
pub mod model;
mod network;
mod number;
pub mod page;
pub mod policies;
pub mod programs;
pub mod record;
pub mod results;
pub mod schedule;
pub mod stats;
pub mod store;
pub mod study;
pub mod table;
pub mod word;
