//! A Debian system with systemd, under its own policy: by SELinux, and by Tollgate, which is installed from its packages.
//!
//! Debian's packages, QEMU and kernels are needed, from the cache or a network, and root, to install the system: without them
//! these tests fail, and say so.

#[cfg(feature = "long")]
mod acts;
#[cfg(feature = "long")]
mod containers;
mod documents;
#[cfg(feature = "long")]
mod fleet_agent;
#[cfg(feature = "long")]
mod guest;
#[cfg(feature = "long")]
mod installed;
mod packages;
mod runtime;
#[cfg(feature = "long")]
mod services;
mod system;
#[cfg(feature = "long")]
mod walk;
