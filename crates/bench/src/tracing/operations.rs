//! The hooks of a workload's operation.

use std::{
    io,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, sleep},
    time::Duration,
};

use super::{
    Options,
    attribution::{BEGIN, END, Extent, FINISHED},
    median, release,
    report::Report,
    session::{Session, Tasks},
};
use crate::{
    Error,
    counter::{Counter, Meter},
    measure::{measure, turns::Turns},
    places::Places,
    selection::Selection,
    workload::{self, Operation},
};

/// How often the buffers are read, and what a workload's other tasks are given to fall asleep.
const BEAT: Duration = Duration::from_millis(5);
const CALM: Duration = Duration::from_millis(20);

/// Counts so many operations of each workload, in a thread of its own; where instructions can be counted, they are measured
/// first, as `bench run` does it. Files are made below `work`, as [`Places::open`] says.
///
/// # Errors
///
/// [`Error::Unavailable`] where the tracer cannot be had, a workload cannot be run, or a signal has come; [`Error::Io`].
pub fn count_workloads(
    selections: &[Selection],
    work: Option<&Path>,
    options: Options,
    stop: &AtomicBool,
) -> Result<Vec<Report>, Error> {
    let costs = costs(selections, work)?;
    let mut reports = Vec::new();
    for (selection, cost) in selections.iter().zip(costs) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Unavailable(format!("interrupted before {selection}")));
        }
        let report =
            count_one(selection, work, options).map_err(|error| Error::Unavailable(format!("{selection}: {error}")))?;
        reports.push(Report { workload: Some(selection.to_string()), cost, ..report });
    }
    Ok(reports)
}

/// Instructions of an operation of each, where they can be counted.
fn costs(selections: &[Selection], work: Option<&Path>) -> Result<Vec<Option<f64>>, Error> {
    let Ok(mut meter) = Meter::open(Counter::Instructions) else { return Ok(vec![None; selections.len()]) };
    let places = Places::open(work, selections)?;
    Ok(selections.iter().map(|selection| median(measure(selection, &places, &mut meter, None).samples)).collect())
}

fn count_one(selection: &Selection, work: Option<&Path>, options: Options) -> Result<Report, Error> {
    let mut session = Session::open(options.kilobytes)?;
    let tasks = session.begin()?;
    let (number, root) = std::sync::mpsc::channel();
    let (selection, work) = (selection.clone(), work.map(Path::to_owned));
    let operations = options.runs;
    let worker = thread::spawn(move || {
        // SAFETY: takes nothing and cannot fail.
        let _ = number.send(unsafe { libc::gettid() });
        operate(&selection, work.as_deref(), operations, &tasks)
    });
    session.count(Extent::Operations(root.recv().unwrap_or_default()));
    while !worker.is_finished() {
        session.drain()?;
        sleep(BEAT);
    }
    worker.join().unwrap_or_else(|_| Err(Error::Unavailable("the workload's thread has panicked".to_owned())))?;
    let runs = u64::from(operations);
    Ok(Report::new(release()?, runs, None, session.finish(runs)?))
}

/// What the measured thread does. Its places are its own, mounts too, unless they are below `work`.
fn operate(selection: &Selection, work: Option<&Path>, operations: u32, tasks: &Tasks) -> Result<(), Error> {
    let places = Places::open(work, std::slice::from_ref(selection))?;
    let _taking_turns = match selection.workload.tasks {
        workload::Tasks::Several => Some(Turns::take()?),
        workload::Tasks::One => None,
    };
    let failed = |cause| Error::Io { what: "an operation".to_owned(), cause };
    // Before the set-up: what it starts is followed.
    tasks.follow_me().map_err(failed)?;
    let place = places.place(selection)?;
    let mut operation = (selection.workload.setup)(&place)?;
    run(operation.as_mut(), operations).map_err(failed)
}

fn run(operation: &mut dyn Operation, operations: u32) -> io::Result<()> {
    for _ in 0..operation.warm_ups(0) {
        operation.before()?;
        operation.run()?;
    }
    sleep(CALM);
    for _ in 0..operations {
        operation.before()?;
        mark(BEGIN);
        let outcome = operation.run();
        mark(END);
        outcome?;
    }
    sleep(CALM);
    mark(FINISHED);
    Ok(())
}

/// Calls what is no system call.
fn mark(number: u32) {
    // SAFETY: there is no such call: it returns ENOSYS.
    unsafe { libc::syscall(number.into()) };
}
