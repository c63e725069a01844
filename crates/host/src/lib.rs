//! What this program needs of the machine that it runs on: programs that never outlive it, a cache between runs, and
//! Debian packages that are fetched without installing them.

mod cache;
mod error;
mod packages;
pub mod process;

pub use cache::{Cache, CacheLock};
pub use error::{Context, Error};
pub use packages::{Package, Packages};
