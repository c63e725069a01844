//! What this program needs of the machine: it runs other programs, which never outlive it, keeps a cache between runs,
//! and fetches Debian packages without installing them.

// The program alone prints. What a library reports goes through tracing.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod cache;
mod error;
mod packages;
pub mod process;

pub use cache::{Cache, CacheLock};
pub use error::{Context, Error};
pub use packages::{Package, Packages};
