//! Opens roots of file systems, as this mount namespace or another one shows them.

use std::{
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    thread,
};

use nix::{
    fcntl::{OFlag, openat},
    sched::{CloneFlags, setns, unshare},
    sys::stat::Mode,
};

use crate::labels::{
    mounts::{self, Mount},
    processes,
};

/// The root of a file system, or the widest part of it that is mounted, open for reading.
pub fn root(device: u32) -> io::Result<OwnedFd> {
    let mut all = mounts::read(&fs::read("/proc/self/mountinfo")?);
    all.retain(|mount| mount.device == device);
    mounts::widest_first(&mut all);
    let here = all.iter().find_map(|mount| readable(&mounts::open(mount).ok()?).ok());
    here.or_else(|| elsewhere(device)).ok_or_else(|| io::Error::other("no mount namespace shows it"))
}

/// The root of a file system that only another mount namespace has.
pub(crate) fn elsewhere(device: u32) -> Option<OwnedFd> {
    let proc = Path::new("/proc");
    processes::namespaces(proc).ok()?.into_iter().find_map(|process| {
        let namespace = processes::namespace(proc, process).ok()?;
        let mut all = mounts::read(&fs::read(proc.join(format!("{process}/mountinfo"))).ok()?);
        all.retain(|mount| mount.device == device);
        mounts::widest_first(&mut all);
        all.iter().find_map(|mount| readable(&open_in(&namespace, mount).ok()?).ok())
    })
}

/// The root of a mount in another namespace. A thread enters that namespace: a thread that shares its working directory
/// with no other can have a namespace of its own.
pub(crate) fn open_in(namespace: impl AsFd + Send, mount: &Mount) -> io::Result<OwnedFd> {
    thread::scope(|scope| {
        let there = thread::Builder::new().spawn_scoped(scope, || {
            unshare(CloneFlags::CLONE_FS)?;
            setns(namespace, CloneFlags::CLONE_NEWNS)?;
            mounts::open(mount)
        })?;
        there.join().unwrap_or_else(|_| Err(io::Error::other("the thread that was to open it failed")))
    })
}

/// Opens a root for reading, which handles need.
pub(crate) fn readable(root: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok(openat(root, c".", flags, Mode::empty())?)
}
