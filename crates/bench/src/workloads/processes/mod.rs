//! Processes, signals, memory.

use crate::{
    place::Place,
    workload::{Group, Prepared, Scope, Tasks, Workload},
};

mod creation;
mod fault;
mod signal;
mod switch;
mod trace;

/// Samples of an operation in which no other task takes part.
const SINGLE_TASK_SAMPLES: u32 = 200;
/// Samples of an operation that creates a task, which is some hundred times as dear.
const MAKES_TASK: u32 = 60;
/// Samples of an operation that starts a shell.
const STARTS_SHELL: u32 = 20;

pub(super) static WORKLOADS: &[Workload] = &[
    several("fork+exit", "fork; _exit in the child; waitpid", Scope::Fixed, MAKES_TASK, creation::fork_and_exit),
    several(
        "exec",
        "vfork, execve of a program of two system calls' length, waitpid",
        Scope::Path,
        MAKES_TASK,
        creation::exec,
    ),
    several("sh", "vfork, execve of /bin/sh -c :, waitpid", Scope::Fixed, STARTS_SHELL, creation::shell),
    several("thread", "pthread_create and pthread_join", Scope::Fixed, MAKES_TASK, creation::thread),
    alone("kill-0", "kill of the own process with signal 0", Scope::Fixed, signal::kill_nothing),
    alone("sigaction", "installs a signal handler", Scope::Fixed, signal::install),
    alone("signal", "tgkill of the own thread, and the handler's run and return", Scope::Fixed, signal::deliver),
    alone("prctl", "prctl(PR_GET_NAME)", Scope::Fixed, trace::prctl),
    several(
        "ptrace",
        "attaches to a process asleep in pause(2), waits for its stop, detaches",
        Scope::Fixed,
        SINGLE_TASK_SAMPLES,
        trace::attach,
    ),
    alone(
        "page-fault",
        "reads a page of a private file mapping that is in the page cache only",
        Scope::File,
        fault::page,
    ),
    alone(
        "prot-fault",
        "writes to a read-only page; the handler of SIGSEGV steps over it",
        Scope::Fixed,
        fault::protection,
    ),
    several(
        "ctx-switch",
        "passes a token of 4 bytes to a process on the same processor and back",
        Scope::Fixed,
        SINGLE_TASK_SAMPLES,
        switch::there_and_back,
    ),
];

/// A workload of one task that never waits.
const fn alone(name: &'static str, about: &'static str, scope: Scope, setup: fn(&Place) -> Prepared) -> Workload {
    Workload { name, about, group: Group::Processes, tasks: Tasks::One, scope, samples: SINGLE_TASK_SAMPLES, setup }
}

/// A workload of tasks that wait for one another.
const fn several(
    name: &'static str,
    about: &'static str,
    scope: Scope,
    samples: u32,
    setup: fn(&Place) -> Prepared,
) -> Workload {
    Workload { name, about, group: Group::Processes, tasks: Tasks::Several, scope, samples, setup }
}
