//! Sources that a user names, module packages above all: libsepol may die of them in its child, this process may not.
#![no_main]

use std::{fs::File, io::Write, os::fd::AsRawFd};

use libfuzzer_sys::fuzz_target;
use nix::sys::memfd::{MFdFlags, memfd_create};
use tollgate_policy::sources;

fuzz_target!(|bytes: &[u8]| {
    let mut file = File::from(memfd_create(c"source", MFdFlags::MFD_CLOEXEC).expect("make a file"));
    file.write_all(bytes).expect("write the source");
    let _ = sources::read(&[format!("/proc/self/fd/{}", file.as_raw_fd()).into()]);
});
