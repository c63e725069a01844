//! System V message queues, semaphores and shared memory.

use std::ptr;

use nix::errno::Errno;

use super::{alone, between_tasks};
use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{LeavesWork, Prepared, Workload},
    workloads::peer::Peer,
};

pub(in crate::workloads) static WORKLOADS: &[Workload] = &[
    between_tasks("sysv-msg", "round trip of 1 byte through a System V message queue", messages::<1>),
    between_tasks("sysv-sem", "round trip by two System V semaphores: each is raised and waited for once", semaphores),
    alone("sysv-shm", "shmget, shmat, shmdt and IPC_RMID of 4 KB of System V shared memory", shared_memory),
];

/// Only the owner may read and write.
const MODE: libc::c_int = 0o600;
const SHARED_SIZE: usize = 4096;
/// The message types that distinguish a request from its answer in one queue.
const REQUEST: libc::c_long = 1;
const ANSWER: libc::c_long = 2;
/// The semaphores of the set.
const REQUESTED: libc::c_ushort = 0;
const ANSWERED: libc::c_ushort = 1;

pub(in crate::workloads) fn messages<const SIZE: usize>(_: &Place) -> Prepared {
    // SAFETY: msgget takes numbers only.
    let made = Errno::result(unsafe { libc::msgget(libc::IPC_PRIVATE, MODE) });
    let queue = Queue(made.context("make a System V message queue")?);
    let id = queue.0;
    let [request, answer] = [REQUEST, ANSWER].map(|kind| Box::new(Message { kind, text: [1; SIZE] }));
    let mut received = Box::new(Message { kind: 0, text: [0; SIZE] });
    let peer = Peer::fork(move || {
        received.receive(id, REQUEST)?;
        answer.send(id)
    })?;
    let mut received = Box::new(Message { kind: 0, text: [0; SIZE] });
    Ok(Box::new(move || {
        let _ = &queue;
        peer.explain(request.send(id).and_then(|()| received.receive(id, ANSWER)))
    }))
}

/// A message queue, removed on drop.
struct Queue(libc::c_int);

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: IPC_RMID reads no buffer.
        unsafe { libc::msgctl(self.0, libc::IPC_RMID, ptr::null_mut()) };
    }
}

/// `struct msgbuf`.
#[repr(C)]
struct Message<const SIZE: usize> {
    kind: libc::c_long,
    text: [u8; SIZE],
}

impl<const SIZE: usize> Message<SIZE> {
    fn send(&self, queue: libc::c_int) -> nix::Result<()> {
        // SAFETY: the message outlives the call and is as long as is said.
        Errno::result(unsafe { libc::msgsnd(queue, (&raw const *self).cast(), SIZE, 0) }).map(drop)
    }

    fn receive(&mut self, queue: libc::c_int, kind: libc::c_long) -> nix::Result<()> {
        // SAFETY: the buffer outlives the call and is as long as is said.
        Errno::result(unsafe { libc::msgrcv(queue, (&raw mut *self).cast(), SIZE, kind, 0) }).map(drop)
    }
}

fn semaphores(_: &Place) -> Prepared {
    let set = SemaphoreSet::make(2)?;
    let id = set.0;
    let peer = Peer::fork(move || {
        change(id, REQUESTED, -1)?;
        change(id, ANSWERED, 1)
    })?;
    Ok(Box::new(move || {
        let _ = &set;
        peer.explain(change(id, REQUESTED, 1).and_then(|()| change(id, ANSWERED, -1)))
    }))
}

/// A set of semaphores that start at 0, removed on drop.
struct SemaphoreSet(libc::c_int);

impl SemaphoreSet {
    fn make(count: libc::c_int) -> Result<SemaphoreSet, Error> {
        // SAFETY: semget takes numbers only.
        let made = Errno::result(unsafe { libc::semget(libc::IPC_PRIVATE, count, MODE) });
        Ok(SemaphoreSet(made.context("make a set of System V semaphores")?))
    }
}

impl Drop for SemaphoreSet {
    fn drop(&mut self) {
        // SAFETY: IPC_RMID takes no further argument.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

/// Raises a semaphore, or waits until it can be lowered.
fn change(set: libc::c_int, semaphore: libc::c_ushort, by: libc::c_short) -> nix::Result<()> {
    let mut operation = libc::sembuf { sem_num: semaphore, sem_op: by, sem_flg: 0 };
    // SAFETY: one operation, which outlives the call.
    Errno::result(unsafe { libc::semop(set, &mut operation, 1) }).map(drop)
}

fn shared_memory(_: &Place) -> Prepared {
    Ok(Box::new(LeavesWork(|| {
        // SAFETY: shmget takes numbers only.
        let segment = Errno::result(unsafe { libc::shmget(libc::IPC_PRIVATE, SHARED_SIZE, MODE) })?;
        let attached = attach_and_detach(segment);
        // SAFETY: IPC_RMID reads no buffer.
        let removed = Errno::result(unsafe { libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut()) });
        attached.and(removed.map(drop))?;
        Ok(())
    })))
}

fn attach_and_detach(segment: libc::c_int) -> nix::Result<()> {
    // SAFETY: at an address of the kernel's choice, so over nothing that is in use.
    let memory = unsafe { libc::shmat(segment, ptr::null(), 0) };
    if memory.addr() == usize::MAX {
        return Err(Errno::last());
    }
    // SAFETY: attached just now, and nothing points into it.
    Errno::result(unsafe { libc::shmdt(memory) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_the_message_queue_when_dropped() {
        // SAFETY: msgget takes numbers only.
        let id = Errno::result(unsafe { libc::msgget(libc::IPC_PRIVATE, MODE) }).unwrap();
        let queue = Queue(id);
        let message = Message { kind: REQUEST, text: [1] };
        message.send(id).unwrap();
        drop(queue);
        assert!(matches!(message.send(id), Err(Errno::EINVAL | Errno::EIDRM)));
    }

    #[test]
    fn removes_the_semaphores_when_dropped() {
        let set = SemaphoreSet::make(1).unwrap();
        let id = set.0;
        change(id, 0, 1).unwrap();
        drop(set);
        assert!(matches!(change(id, 0, 1), Err(Errno::EINVAL | Errno::EIDRM)));
    }
}
