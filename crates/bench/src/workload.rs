//! The definition of a workload.

use std::io;

use crate::{Error, place::Place};

/// One operation, ready to be timed: the set-up has created everything that it needs, and dropping it undoes the set-up.
///
/// Most are a closure without lasting effects. An operation that uses something up (a name to create, a file to remove)
/// implements the trait itself, restores it in [`Operation::before`] and returns in [`Operation::reach`] how many runs one
/// restoring lasts.
pub(crate) trait Operation {
    /// Restores what the runs used up. It is called outside the clock, at least once every [`Operation::reach`] runs and once
    /// before the first.
    fn before(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// How many runs may follow one [`Operation::before`]: at least 1. The instruction counter makes one run after each; a
    /// wall clock, which must time many runs at once, makes at most this many.
    fn reach(&self) -> u32 {
        u32::MAX
    }

    /// Whether the kernel goes on working after the operation, in RCU callbacks and work queues, so that the caches of one
    /// operation are filled by the last ones. The instruction counter then lets the kernel finish before each run.
    fn leaves_work(&self) -> bool {
        false
    }

    /// Whether the processor may be idle before the operation is over, so that idle time must be subtracted in any case.
    fn sleeps(&self) -> bool {
        false
    }

    /// How many runs come before the first sample: a quarter of the samples, and a few more.
    fn warm_ups(&self, samples: usize) -> usize {
        samples / 4 + 4
    }

    /// The operation: little more than its system calls, with prepared arguments and without allocations.
    fn run(&mut self) -> io::Result<()>;
}

impl<F: FnMut() -> io::Result<()>> Operation for F {
    fn run(&mut self) -> io::Result<()> {
        self()
    }
}

/// An operation that [leaves work](Operation::leaves_work), such as one that makes and ends a task.
#[derive(Debug)]
pub(crate) struct LeavesWork<F>(pub(crate) F);

impl<F: FnMut() -> io::Result<()>> Operation for LeavesWork<F> {
    fn leaves_work(&self) -> bool {
        true
    }

    fn run(&mut self) -> io::Result<()> {
        self.0()
    }
}

/// An operation on connections, which take long to find their pace: windows grow, and buffers that are used again come from
/// fewer and fewer slabs.
#[derive(Debug)]
pub(crate) struct Paced<F>(pub(crate) F);

impl<F: FnMut() -> io::Result<()>> Operation for Paced<F> {
    fn warm_ups(&self, samples: usize) -> usize {
        5 * samples / 2 + 4
    }

    fn run(&mut self) -> io::Result<()> {
        self.0()
    }
}

/// What a set-up returns: `Ok(Box::new(move || ...))`.
pub(crate) type Prepared = Result<Box<dyn Operation>, Error>;

/// The family of a workload, in the order of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// No security hook is on the way: the minimum must be the same under every module.
    Control,
    /// System calls on files and directories, after LMBench as the 2021 study extended it.
    Files,
    /// Processes, signals, memory.
    Processes,
    /// Pipes, sockets, System V and POSIX IPC.
    Communication,
    /// The operations of Flask's evaluation of 1999: messages by their size, a program's build.
    Flask,
    /// The rows of a study of what multilevel security costs, of 2010.
    Mls,
    /// Whole commands, with which a model of the others is compared.
    Commands,
    /// System calls, one each.
    Calls,
}

impl Group {
    /// Whether `@all` leaves it out, because it takes too long or repeats what others measure.
    pub fn stands_apart(self) -> bool {
        matches!(self, Group::Flask | Group::Mls | Group::Commands | Group::Calls)
    }
}

/// The number of tasks: whether the processor can be idle inside an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tasks {
    /// One task that never waits: minimum and median are exact.
    One,
    /// Tasks that wait for one another: the figure is CPU time without idle.
    Several,
}

/// Which variants of a place a workload can be run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Only one place.
    Fixed,
    /// Works on an open file or a name: on any file system.
    File,
    /// Resolves a path: on any file system, at depths 1 to 10.
    Path,
    /// Sends packets: over loopback, or across two network namespaces.
    Network,
}

/// A workload of the catalogue.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Workload {
    /// The name in study files, tables and results.
    pub name: &'static str,
    /// One line about the operation, for `tollgate bench list`.
    pub about: &'static str,
    /// The family of the workload.
    pub group: Group,
    /// Whether tasks wait for one another.
    pub tasks: Tasks,
    /// The variants of its place.
    pub scope: Scope,
    /// Samples by default; on the instruction clock, each sample is one operation.
    pub samples: u32,
    /// Creates what the operation needs, outside the clock.
    #[serde(skip)]
    pub(crate) setup: fn(&Place) -> Prepared,
}

impl PartialEq for Workload {
    /// Names are unique in the catalogue.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Workload {}
