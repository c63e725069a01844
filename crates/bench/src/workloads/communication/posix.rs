//! POSIX message queues, semaphores and shared memory.

use std::{
    ffi::CString,
    num::NonZeroUsize,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::Path,
    process,
    rc::Rc,
    sync::atomic::{AtomicU32, Ordering},
};

use nix::{
    errno::Errno,
    fcntl::OFlag,
    mqueue::{MQ_OFlag, MqAttr, MqdT, mq_open, mq_receive, mq_send, mq_unlink},
    sys::{
        mman::{MapFlags, ProtFlags, mmap, munmap, shm_open, shm_unlink},
        stat::Mode,
    },
    unistd::ftruncate,
};

use super::{alone, between_tasks};
use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{LeavesWork, Prepared, Workload},
    workloads::{peer::Peer, shared_memory::Shared},
};

pub(in crate::workloads) static WORKLOADS: &[Workload] = &[
    between_tasks("posix-mq", "round trip of 1 byte through two POSIX message queues", queues),
    between_tasks("posix-sem", "round trip by two POSIX semaphores: each is posted and waited for once", semaphores),
    alone("posix-shm", "shm_open, ftruncate, mmap, munmap, close and shm_unlink of 4 KB", shared_memory),
];

const SHARED_SIZE: NonZeroUsize = match NonZeroUsize::new(4096) {
    Some(size) => size,
    None => unreachable!(),
};
/// Only the owner may read and write.
const MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);
/// The folder in which shm_open creates its files (glibc's shm_directory).
const SHM_DIRECTORY: &str = "/dev/shm";

/// A name for an IPC object that no other object of this machine has.
fn unused_name() -> Result<CString, Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("/tollgate-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    CString::new(name).context("name an IPC object")
}

fn queues(_: &Place) -> Prepared {
    let both = Rc::new(Queues { requests: Queue::open()?, answers: Queue::open()? });
    let peers = Rc::clone(&both);
    let peer = Peer::fork(move || {
        peers.requests.receive()?;
        peers.answers.send()
    })?;
    Ok(Box::new(move || peer.explain(both.requests.send().and_then(|()| both.answers.receive()))))
}

struct Queues {
    requests: Queue,
    answers: Queue,
}

/// A queue of one message of one byte, without a name; closed on drop.
struct Queue(MqdT);

impl Queue {
    fn open() -> Result<Queue, Error> {
        let name = unused_name()?;
        let flags = MQ_OFlag::O_RDWR | MQ_OFlag::O_CREAT | MQ_OFlag::O_EXCL | MQ_OFlag::O_CLOEXEC;
        let opened = mq_open(name.as_c_str(), flags, MODE, Some(&MqAttr::new(0, 1, 1, 0)));
        let queue = Queue(opened.map_err(|errno| match errno {
            Errno::ENOSYS => Error::Unavailable("this kernel has no POSIX message queues".to_owned()),
            _ => Error::Io { what: "make a POSIX message queue".to_owned(), cause: errno.into() },
        })?);
        mq_unlink(name.as_c_str()).context("remove the name of a POSIX message queue")?;
        Ok(queue)
    }

    fn send(&self) -> nix::Result<()> {
        mq_send(&self.0, &[1], 0)
    }

    fn receive(&self) -> nix::Result<()> {
        mq_receive(&self.0, &mut [0], &mut 0).map(drop)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own, and used no more; nix does not close it.
        drop(unsafe { OwnedFd::from_raw_fd(self.0.as_raw_fd()) });
    }
}

fn semaphores(_: &Place) -> Prepared {
    let both = Rc::new((Semaphore::new()?, Semaphore::new()?));
    let peers = Rc::clone(&both);
    let peer = Peer::fork(move || {
        peers.0.wait()?;
        peers.1.post()
    })?;
    Ok(Box::new(move || peer.explain(both.0.post().and_then(|()| both.1.wait()))))
}

/// A semaphore at 0 in memory that children share.
struct Semaphore(Shared<libc::sem_t>);

impl Semaphore {
    fn new() -> Result<Semaphore, Error> {
        let memory = Shared::zeroed().context("map memory for a POSIX semaphore")?;
        // SAFETY: the memory is mapped, and no one else knows it yet.
        let made = unsafe { libc::sem_init(memory.address(), 1, 0) };
        Errno::result(made).context("make a POSIX semaphore")?;
        Ok(Semaphore(memory))
    }

    fn post(&self) -> nix::Result<()> {
        // SAFETY: a semaphore that lives as long as `self`; sem_post is async-signal-safe.
        Errno::result(unsafe { libc::sem_post(self.0.address()) }).map(drop)
    }

    fn wait(&self) -> nix::Result<()> {
        // SAFETY: a semaphore that lives as long as `self`; sem_wait takes no lock, it waits in futex(2).
        Errno::result(unsafe { libc::sem_wait(self.0.address()) }).map(drop)
    }
}

fn shared_memory(_: &Place) -> Prepared {
    if !Path::new(SHM_DIRECTORY).is_dir() {
        let text = format!("there is no {SHM_DIRECTORY}: mount a tmpfs there");
        return Err(Error::Unavailable(text));
    }
    let name = unused_name()?;
    Ok(Box::new(LeavesWork(move || {
        let memory = shm_open(name.as_c_str(), OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL, MODE)?;
        let mapped = map_and_unmap(&memory);
        drop(memory);
        mapped.and(shm_unlink(name.as_c_str()))?;
        Ok(())
    })))
}

fn map_and_unmap(memory: &OwnedFd) -> nix::Result<()> {
    ftruncate(memory, SHARED_SIZE.get() as libc::off_t)?;
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: at an address of the kernel's choice, so over nothing that is in use.
    let at = unsafe { mmap(None, SHARED_SIZE, access, MapFlags::MAP_SHARED, memory, 0) }?;
    // SAFETY: mapped just now, and nothing points into it.
    unsafe { munmap(at, SHARED_SIZE.get()) }
}
