//! The context switch.

use std::io;

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
    unistd::Pid,
};

use crate::{
    error::Context,
    place::Place,
    workload::{Operation, Prepared},
    workloads::communication::token_ring,
};

/// The size of lat_ctx's token.
const TOKEN: usize = size_of::<libc::c_int>();

/// Both processes run on one processor, so each transfer is a switch, on machines with several processors too.
pub(super) fn there_and_back(_: &Place) -> Prepared {
    let _pinned = Pinned::here().context("stay on one processor")?;
    // Forked while pinned, so the peer is pinned too.
    Ok(Box::new(OnOneProcessor { ring: token_ring::<TOKEN>()?, _pinned }))
}

/// A ring and this thread's pinning; the ring is dropped first.
struct OnOneProcessor {
    ring: Box<dyn Operation>,
    _pinned: Pinned,
}

impl Operation for OnOneProcessor {
    fn run(&mut self) -> io::Result<()> {
        self.ring.run()
    }
}

/// Keeps the calling thread on its processor; dropping this restores the previous set of processors.
struct Pinned {
    before: CpuSet,
}

impl Pinned {
    fn here() -> nix::Result<Pinned> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        let mut here = CpuSet::new();
        here.set(sched_getcpu()?)?;
        sched_setaffinity(Pid::from_raw(0), &here)?;
        Ok(Pinned { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The set was allowed before; if it no longer is, the kernel has moved the thread to an allowed processor.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}
