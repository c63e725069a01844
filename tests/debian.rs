//! The Debian packages that `make deb` makes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

#[path = "debian/packages.rs"]
mod packages;
mod program;
