//! Studies of applications: what whole programs of a Debian system take with the guard and without it.
//!
//! The system boots once from its image. The guard first learns what the applications do, and then enforces that. Runs come in
//! blocks, without the guard, with it, with it, without it, so that what drifts is in both; the nth runs of both are a pair.

mod file;
mod report;
mod script;

pub use file::{Applications, Published, Spread};
pub use report::{Report, Row, Samples};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The study file cannot be used.
    #[error("{name}: {cause}")]
    File {
        /// The file.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The guest's output has no samples where they should be.
    #[error("the guest has not measured everything: {0}")]
    Guest(String),
}
