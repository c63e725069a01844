//! A Debian system with systemd, under its own policy: by SELinux, and by Tollgate, which is installed from its packages.
//!
//! Debian's packages, QEMU and kernels are needed, from the cache or a network, and root, who installs the system: without
//! them these tests fail, and say so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

#[cfg(feature = "long")]
#[path = "debian/acts.rs"]
mod acts;
#[path = "debian/packages.rs"]
mod packages;
mod program;
#[cfg(feature = "long")]
#[path = "debian/system.rs"]
mod system;
