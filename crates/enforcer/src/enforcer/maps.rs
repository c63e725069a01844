//! The maps that the daemon uses, and how it writes values to them.

use std::{
    collections::HashSet,
    fs, io,
    num::NonZeroU32,
    os::fd::{AsRawFd, BorrowedFd},
    sync::Arc,
};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use tollgate_abi::enforcer::{TG_SID_MACHINE, TG_TASK_MIXED, TG_TASK_REMADE, tg_task, tg_thread};
use zerocopy::FromBytes;

use crate::{
    lineage::{self, Threads},
    programs::{self, Pins, ProgramsError},
};

/// The maps that the daemon uses, opened.
#[derive(Debug)]
pub struct Maps {
    /// The map whose properties all maps of generations copy.
    pub template: MapHandle,
    /// The generations: the one in force, the one before, the candidate.
    pub generations: MapHandle,
    /// SIDs by context and generation.
    pub sids: MapHandle,
    /// SIDs by their identifiers in sealed labels, and generation.
    pub identified: MapHandle,
    /// Contexts as text, by SID.
    pub texts: MapHandle,
    /// Labels of tasks, in task storage.
    pub tasks: MapHandle,
    /// Labels of sockets, in socket storage.
    pub sockets: MapHandle,
    /// Labels that datagram sockets have received, by sender.
    pub heard: MapHandle,
    /// Labels of inodes, in inode storage.
    pub inodes: Arc<MapHandle>,
    /// File systems that have been seen, by device.
    pub superblocks: Arc<MapHandle>,
    /// File systems that were labelled, or seen, by UUID.
    pub uuids: Arc<MapHandle>,
    /// How to recognize an inode without attributes, by the name of its file system.
    pub bare: MapHandle,
    /// Durable labels of files.
    pub labels: Arc<MapHandle>,
    /// Durable labels that have become dirty.
    pub unwritten: Arc<MapHandle>,
    /// Directories in which something was made.
    pub active: Arc<MapHandle>,
    /// What the policy says about file systems, by name.
    pub filesystems: MapHandle,
    /// Labels by path (`genfscon`).
    pub genfs: MapHandle,
    /// Contexts of units.
    pub units: MapHandle,
    /// Contexts of containers, by the numbers of their cgroups.
    pub containers: MapHandle,
    /// Decisions in which the candidate differs.
    pub differences: MapHandle,
    /// The ring buffer of events.
    pub events: MapHandle,
}

impl Maps {
    pub(super) fn open(pins: &Pins) -> Result<Self, ProgramsError> {
        let map = |name| programs::map(pins, name);
        let shared = |name| map(name).map(Arc::new);
        Ok(Self {
            template: map("generation_template")?,
            generations: map("generations")?,
            sids: map("sids")?,
            identified: map("identified")?,
            texts: map("texts")?,
            tasks: map("tasks")?,
            sockets: map("sockets")?,
            heard: map("heard")?,
            inodes: shared("inodes")?,
            superblocks: shared("superblocks")?,
            uuids: shared("uuids")?,
            bare: map("bare")?,
            labels: shared("labels")?,
            unwritten: shared("unwritten")?,
            active: shared("active")?,
            filesystems: map("filesystems")?,
            genfs: map("genfs")?,
            units: map("units")?,
            containers: map("containers")?,
            differences: map("differences")?,
            events: map("events")?,
        })
    }
}

/// Removes entries that only an earlier policy had.
pub(super) fn retain(map: &MapHandle, wanted: &HashSet<&[u8]>) {
    let old: Vec<Vec<u8>> = map.keys().filter(|key| !wanted.contains(key.as_slice())).collect();
    for key in old {
        // It may have been removed by somebody else already.
        let _ = map.delete(&key);
    }
}

/// The contexts of the process or thread of a pidfd; `None`: the machine's. A task without storage is plain, or may have
/// lost it. A task that got new storage has lost the flag that its threads have contexts of their own.
pub(crate) fn task_of(
    pins: &Pins,
    tasks: &MapHandle,
    process: BorrowedFd<'_>,
) -> Result<Option<tg_task>, libbpf_rs::Error> {
    let found = stored(tasks, process)?;
    if let Some(task) = found.filter(|task| task.flags & TG_TASK_REMADE == 0) {
        return Ok(Some(task));
    }
    let threads = threads_of(pins, process)?;
    let (sid, plain) = (threads[0].sid, tg_task { old_sid: threads[0].previous, ..tg_task::default() });
    let began = found.unwrap_or(plain);
    let mixed = if threads.iter().any(|thread| thread.sid != sid) { TG_TASK_MIXED } else { 0 };
    let task = tg_task { sid, flags: began.flags | mixed, ..began };
    Ok(Some(task).filter(|_| sid != TG_SID_MACHINE || mixed != 0))
}

/// When the process of a pidfd began, in nanoseconds since boot.
pub(crate) fn began(pins: &Pins, process: BorrowedFd<'_>) -> Result<u64, libbpf_rs::Error> {
    threads_of(pins, process).map(|threads| threads[0].began)
}

/// The threads of the process of a pidfd, its leader first; for the pidfd of a thread, that thread alone. At least one.
fn threads_of(pins: &Pins, process: BorrowedFd<'_>) -> Result<Vec<tg_thread>, libbpf_rs::Error> {
    let ended = || libbpf_rs::Error::from(io::Error::from_raw_os_error(libc::ESRCH));
    let number = number_of(process).ok_or_else(ended)?;
    let look = |which| lineage::threads(pins, which).map_err(|cause| libbpf_rs::Error::from(io::Error::other(cause)));
    let mut threads = look(Threads::Of(number))?;
    if threads.is_empty() {
        threads = look(Threads::One(number))?;
    }
    threads.sort_by_key(|thread| thread.leader == 0);
    // Until the process has been waited for, no other has its number.
    Some(threads).filter(|threads| !threads.is_empty() && number_of(process).is_some()).ok_or_else(ended)
}

/// The number of the process or thread of a pidfd. `None`: it has been waited for.
fn number_of(process: BorrowedFd<'_>) -> Option<NonZeroU32> {
    let fdinfo = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    fdinfo.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
}

fn stored(tasks: &MapHandle, process: BorrowedFd<'_>) -> Result<Option<tg_task>, libbpf_rs::Error> {
    let value = tasks.lookup(&process.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?;
    let Some(task) = value.and_then(|bytes| tg_task::read_from_bytes(&bytes).ok()) else { return Ok(None) };
    // A storage that has just been made has no SID yet.
    Ok(Some(task).filter(|task| task.sid != 0))
}
