//! The program that is attached to the root cgroup: the LSM hook whose work it does cannot answer a caller.

use std::{
    fs::File,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    path::Path,
    ptr,
};

use libbpf_rs::libbpf_sys;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, fstatfs};
use tracing::warn;

use super::checked;

/// The hook whose work the program does.
pub const HOOK: &str = "socket_getpeersec_stream";
/// The kernel's function that runs it.
pub(super) const FUNCTION: &str = "__cgroup_bpf_run_filter_getsockopt";

/// Where cgroup v2 may be mounted.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// A file that all cgroups have, and not the root of the hierarchy.
const NOT_OF_ROOT: &str = "cgroup.type";

/// Links the program to the root of cgroup v2. `None`: that is not mounted, and the program does not run.
pub(super) fn attach(program: BorrowedFd<'_>) -> libbpf_rs::Result<Option<OwnedFd>> {
    let Some(root) = ROOTS.iter().find_map(|path| root(Path::new(path))) else {
        warn!("getsockopt(SO_PEERSEC) tells no contexts: mount cgroup v2 on {}, and reload", ROOTS[0]);
        return Ok(None);
    };
    let (program, root) = (program.as_raw_fd(), root.as_raw_fd());
    // SAFETY: both descriptors are open; no options are needed.
    let link = unsafe { libbpf_sys::bpf_link_create(program, root, libbpf_sys::BPF_CGROUP_GETSOCKOPT, ptr::null()) };
    let link = checked(link)?;
    // SAFETY: the kernel made this descriptor, and nobody else has it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(link) }))
}

/// The directory, if it is the root of cgroup v2.
fn root(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    let is_cgroup = fstatfs(&directory).is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC);
    (is_cgroup && !path.join(NOT_OF_ROOT).exists()).then_some(directory)
}
