//! Assigns each hook to a system call.
//!
//! 1. A hook that a task calls belongs to the system call that is open. Before the next one, it belongs to the call that has
//!    ended, which left work for the way back to user space (`task_work`: the last `fput`). After a page fault of user code
//!    it belongs to the fault.
//! 2. A hook in a softirq belongs to the call if the task ran the softirq itself (`do_softirq`, when it enables interrupts
//!    again: the receiving half of a packet over loopback).
//! 3. A hook of an object's end, in a softirq or in another task, belongs to the call that released the object: that gave up a
//!    credential's last reference, waited for the task, or closed the connection.
//! 4. A thread can become the first thread of its process by executing a program (`de_thread`, fs/exec.c). No call was begun
//!    under that number, and `execve` is open from the hook of new credentials on.
//! 5. Other hooks in an interrupt of the tasks, or at the end of an object that they created, are deferred: counted, without a
//!    call. Hooks that other tasks call for other objects are not counted.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::event::{Event, Hook, What};

const EXECVE: u32 = 59;
/// `execve` and `execveat`.
const EXEC: [u32; 2] = [EXECVE, 322];

/// A number above all system calls: a call with it returns ENOSYS, and is traced.
pub(super) const BEGIN: u32 = 5000;
/// The mark at the end of an operation.
pub(super) const END: u32 = 5001;
/// The mark at the end of all operations.
pub(super) const FINISHED: u32 = 5002;

/// The system calls by which hooks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    System(u32),
    PageFault,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// From the command's own execve on: this task, and all tasks that it starts.
    Command(i32),
    /// The work of this task between [`BEGIN`] and [`END`], and the work of other tasks meanwhile and in between.
    Operations(i32),
}

/// The hooks of one system call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallCounts {
    /// How often it was called.
    pub(super) calls: u64,
    /// How often each hook was called, by the address of the caller.
    pub(super) hooks: BTreeMap<Hook, BTreeMap<u64, u64>>,
}

/// The counts of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) calls: BTreeMap<Call, CallCounts>,
    /// Hooks that belong to no system call.
    pub(super) deferred: BTreeMap<Hook, u64>,
}

/// The call to which something belongs, and whether it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cause {
    call: Call,
    counted: bool,
}

#[derive(Debug, Default)]
struct Task {
    cause: Option<Cause>,
    in_call: bool,
    /// Whether the task runs a softirq by itself.
    deferred: bool,
}

#[derive(Debug, Default)]
struct Object {
    /// Whether a followed task created it.
    ours: bool,
    released: Option<Cause>,
    /// Whether its end is still to come.
    pending: bool,
}

/// The end of an object, on a processor.
#[derive(Debug)]
struct End {
    place: (i32, bool),
    cause: Option<Cause>,
    releases: u8,
}

/// Processes events in their order.
#[derive(Debug)]
pub(super) struct Attribution {
    extent: Extent,
    /// The hook `bprm_committing_creds`.
    commits: Hook,
    /// Whether the command's execve was seen; for operations, the first [`BEGIN`].
    begun: bool,
    /// Whether the time is between [`BEGIN`] and [`END`].
    within: bool,
    tasks: HashMap<i32, Task>,
    objects: HashMap<u64, Object>,
    ends: HashMap<u16, End>,
    pending: HashSet<u64>,
    counts: Counts,
}

impl Attribution {
    /// `commits` is the hook `bprm_committing_creds`.
    pub(super) fn new(extent: Extent, commits: Hook) -> Self {
        Self {
            extent,
            commits,
            begun: false,
            within: false,
            tasks: HashMap::new(),
            objects: HashMap::new(),
            ends: HashMap::new(),
            pending: HashSet::new(),
            counts: Counts::default(),
        }
    }

    /// How many objects were released by counted calls, and have not ended yet.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn counts(self) -> Counts {
        self.counts
    }

    pub(super) fn take(&mut self, event: &Event) {
        match event.what {
            What::Enter(number) => self.enter(event.task, number),
            What::Exit(number) => self.exit(event.task, number),
            What::PageFault => self.page_fault(event.task),
            What::Deferred => self.softirq(event),
            What::Asked { hook, caller } => self.asked(event, hook, caller),
            What::Made { object } => self.made(event, object),
            What::Released { object } => self.released(event, object),
            What::Ends { object, releases } => {
                let cause = self.objects.get(&object).and_then(|object| object.released);
                let place = (event.task, event.interrupt);
                self.ends.insert(event.processor, End { place, cause, releases });
            }
            What::Freed { hook, object, caller } => self.freed(event, hook, object, caller),
            // After its last schedule and a grace period (delayed_put_task_struct, kernel/exit.c).
            What::Gone { task } => drop(self.tasks.remove(&task)),
        }
    }

    fn enter(&mut self, task: i32, number: u32) {
        match self.extent {
            Extent::Command(root) => self.begun |= task == root && EXEC.contains(&number),
            Extent::Operations(root) if task == root => match number {
                BEGIN => (self.begun, self.within) = (true, true),
                END => self.within = false,
                FINISHED => self.begun = false,
                _ => (),
            },
            Extent::Operations(_) => (),
        }
        let cause = Cause { call: Call::System(number), counted: self.counts_now(task) };
        *self.tasks.entry(task).or_default() = Task { cause: Some(cause), in_call: true, deferred: false };
        if cause.counted && number < BEGIN {
            self.counts.calls.entry(cause.call).or_default().calls += 1;
        }
    }

    fn exit(&mut self, task: i32, number: Option<u32>) {
        let counted = self.counts_now(task);
        let task = self.tasks.entry(task).or_default();
        task.in_call = false;
        task.deferred = false;
        // The first event of a new task: the end of the call that created it.
        if let (None, Some(number)) = (task.cause, number) {
            task.cause = Some(Cause { call: Call::System(number), counted });
        }
    }

    fn page_fault(&mut self, task: i32) {
        let counted = self.counts_now(task);
        let task = self.tasks.entry(task).or_default();
        if !task.in_call {
            *task = Task { cause: Some(Cause { call: Call::PageFault, counted }), in_call: false, deferred: false };
        }
    }

    fn softirq(&mut self, event: &Event) {
        self.tasks.entry(event.task).or_default().deferred = !event.interrupt;
    }

    /// Whether what this task begins now is counted.
    fn counts_now(&self, task: i32) -> bool {
        match self.extent {
            Extent::Operations(root) if task == root => self.within,
            Extent::Command(_) | Extent::Operations(_) => self.begun,
        }
    }

    /// The cause of what a followed task does now. The work of other tasks than the measuring one is counted by its time,
    /// because they may have entered the call long before.
    fn cause_of(&self, task: i32) -> Option<Cause> {
        let cause = self.tasks.get(&task)?.cause?;
        match self.extent {
            Extent::Operations(root) if task != root => Some(Cause { counted: self.begun, ..cause }),
            _ => Some(cause),
        }
    }

    /// The cause of an event in its context; in a softirq, if the task runs it.
    fn cause(&mut self, event: &Event) -> Option<Cause> {
        let task = self.tasks.get_mut(&event.task)?;
        if !event.interrupt {
            task.deferred = false;
        } else if !task.deferred {
            return None;
        }
        self.cause_of(event.task)
    }

    fn asked(&mut self, event: &Event, hook: Hook, caller: u64) {
        if hook == self.commits && !event.interrupt {
            self.executes(event.task);
        }
        match self.cause(event) {
            Some(cause) => self.count(cause, hook, caller),
            None if self.counts_now(event.task) => self.defer(hook),
            None => (),
        }
    }

    /// A task outside a call executes a program: it has taken over another's number since its call began.
    fn executes(&mut self, task: i32) {
        let counted = self.counts_now(task);
        let task = self.tasks.entry(task).or_default();
        if !task.in_call {
            let cause = Cause { call: Call::System(EXECVE), counted };
            *task = Task { cause: Some(cause), in_call: true, deferred: false };
        }
    }

    fn made(&mut self, event: &Event, object: u64) {
        let ours = self.cause(event).is_some_and(|cause| cause.counted);
        self.pending.remove(&object);
        self.objects.insert(object, Object { ours, ..Object::default() });
    }

    fn released(&mut self, event: &Event, object: u64) {
        let followed = self.tasks.contains_key(&event.task) && !event.interrupt;
        let cause = if followed { self.cause(event) } else { self.end_here(event) };
        let Some(cause) = cause else { return };
        let entry = self.objects.entry(object).or_default();
        entry.released = Some(cause);
        entry.pending = true;
        if cause.counted {
            self.pending.insert(object);
        }
    }

    /// The end of an object to which this event belongs.
    fn end_here(&mut self, event: &Event) -> Option<Cause> {
        let end = self.ends.get_mut(&event.processor)?;
        if end.place != (event.task, event.interrupt) {
            return None;
        }
        end.releases = end.releases.checked_sub(1)?;
        end.cause
    }

    fn freed(&mut self, event: &Event, hook: Hook, object: u64, caller: u64) {
        self.pending.remove(&object);
        let own = if event.interrupt { None } else { self.cause(event) };
        let known = self.objects.remove(&object);
        let released = known.as_ref().and_then(|object| object.released.filter(|_| object.pending));
        // Not the task whose softirq it is, because grace periods end in the softirq of any task.
        let cause = own.or(released);
        if let Some(cause) = cause {
            // A file's credential is released after the file.
            self.objects.insert(object, Object { ours: false, released: Some(cause), pending: false });
            self.count(cause, hook, caller);
        } else if known.is_some_and(|object| object.ours) {
            self.defer(hook);
        }
    }

    fn count(&mut self, cause: Cause, hook: Hook, caller: u64) {
        if cause.counted {
            let counts = self.counts.calls.entry(cause.call).or_default();
            *counts.hooks.entry(hook).or_default().entry(caller).or_default() += 1;
        }
    }

    fn defer(&mut self, hook: Hook) {
        *self.counts.deferred.entry(hook).or_default() += 1;
    }
}

#[cfg(test)]
mod tests;
