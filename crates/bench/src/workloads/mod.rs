//! The catalogue of workloads, in the order of the tables.

mod calls;
mod commands;
mod communication;
mod control;
#[cfg(test)]
pub(crate) mod endurance;
mod files;
mod flask;
mod mls;
pub(crate) mod peer;
mod processes;
mod shared_memory;

pub(crate) use mls::contexts;

use crate::workload::Workload;

/// The families, in the order of the tables. A family is a file here with one `pub(crate) static ...: &[Workload]`.
static FAMILIES: &[&[Workload]] = &[
    // Controls.
    control::WORKLOADS,
    // Files.
    files::open::WORKLOADS,
    files::transfer::WORKLOADS,
    files::attributes::WORKLOADS,
    files::names::WORKLOADS,
    files::directory::WORKLOADS,
    files::mapping::WORKLOADS,
    files::xattr::WORKLOADS,
    files::contents::WORKLOADS,
    // Processes.
    processes::WORKLOADS,
    // Communication.
    communication::PIPES_AND_SOCKETS,
    communication::sysv::WORKLOADS,
    communication::posix::WORKLOADS,
    flask::WORKLOADS,
    mls::WORKLOADS,
    commands::WORKLOADS,
    calls::WORKLOADS,
];

/// All workloads, in the order of the tables.
pub fn catalogue() -> Vec<&'static Workload> {
    FAMILIES.iter().flat_map(|family| family.iter()).collect()
}

/// The workload of that name.
pub(crate) fn find(name: &str) -> Option<&'static Workload> {
    FAMILIES.iter().flat_map(|family| family.iter()).find(|w| w.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The workloads that a study can count on, whatever else the catalogue holds.
    const PROMISED: &str = "null loop
        open+close creat creat+unlink read-1 read-1k read-4k read-64k write-1 write-1k write-4k write-64k pread copy
        stat fstat lstat access chmod chown truncate utimes rename link symlink readlink unlink link+unlink
        symlink+unlink mkdir rmdir mkdir+rmdir getdents fcntl-lock mmap+munmap mprotect setxattr getxattr
        create-0k create-1k create-4k create-10k delete-0k delete-1k delete-4k delete-10k
        fork+exit exec sh thread kill-0 sigaction signal prctl ptrace page-fault prot-fault ctx-switch
        pipe unix-stream unix-dgram unix-fd udp udp-1k udp-self tcp tcp-1k tcp-connect tcp-stream
        sysv-msg sysv-sem sysv-shm posix-mq posix-sem posix-shm
        ipc-8 ipc-16 ipc-128 ipc-1k ipc-4k ipc-8k ipc-64k msg-8 msg-16 msg-128 msg-1k msg-4k msg-8k make
        digests prime ray-trace fft find read-direct read-cached copy-1m copy-1 stream-1 stream-1k stream-16k ring ping-pong
        exchange rsync script";

    #[test]
    fn holds_every_promised_workload_once() {
        let names: Vec<&str> = catalogue().iter().map(|workload| workload.name).collect();
        let once: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(once.len(), names.len(), "a name is there twice");
        for name in PROMISED.split_whitespace() {
            assert!(once.contains(name), "{name} is missing");
        }
    }

    #[test]
    fn names_are_lower_case_and_without_a_colon() {
        for workload in catalogue() {
            assert_eq!(workload.name, workload.name.to_lowercase());
            assert!(!workload.name.contains([':', '@', ' ']), "{}", workload.name);
            assert!(!workload.about.is_empty() && workload.samples > 0, "{}", workload.name);
        }
    }

    #[test]
    fn keeps_the_order_of_the_tables() {
        assert!(catalogue().is_sorted_by_key(|workload| workload.group));
    }
}
