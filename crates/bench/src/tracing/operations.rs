//! Counts the hooks of a workload's operation.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
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

/// How often the buffers are read.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long a workload's other tasks get to fall asleep.
const SETTLE_TIME: Duration = Duration::from_millis(20);
/// How often a workload is counted again because probes were missed.
const MAX_ATTEMPTS: u32 = 3;
/// How long an operation may take to end after a signal, before it is abandoned.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Counts this many operations of each workload, in a thread of its own.
///
/// If instructions can be counted, they are measured first, as `bench run` does. Files are created below `work`, as
/// [`Places::open`] says. `progress` is called with the number of counted workloads.
///
/// # Errors
///
/// [`Error::Unavailable`] where the tracer cannot be had, a workload cannot be run, or a signal has come; [`Error::Io`].
pub fn count_workloads(
    selections: &[Selection],
    work: Option<&Path>,
    options: Options,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Report>, Error> {
    let costs = costs(selections, work, stop)?;
    let mut reports = Vec::new();
    for (selection, cost) in selections.iter().zip(costs) {
        progress(reports.len());
        let count = || {
            count_one(selection, work, options, stop)
                .map_err(|error| Error::Unavailable(format!("{selection}: {error}")))
        };
        let mut report = count()?;
        // An operation can be counted again, a command cannot.
        for _ in 1..MAX_ATTEMPTS {
            if report.missed > 0 {
                report = count()?;
            }
        }
        reports.push(Report { workload: Some(selection.to_string()), cost, ..report });
    }
    Ok(reports)
}

/// Instructions of one operation of each workload, if they can be counted.
fn costs(selections: &[Selection], work: Option<&Path>, stop: &AtomicBool) -> Result<Vec<Option<f64>>, Error> {
    let Ok(mut meter) = Meter::open(Counter::Instructions) else { return Ok(vec![None; selections.len()]) };
    let places = Places::open(work, selections)?;
    let cost = |selection: &Selection| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Unavailable(format!("interrupted before {selection}")));
        }
        Ok(median(measure(selection, &places, &mut meter, None).samples))
    };
    selections.iter().map(cost).collect()
}

fn count_one(selection: &Selection, work: Option<&Path>, options: Options, stop: &AtomicBool) -> Result<Report, Error> {
    let mut session = Session::open(options.kilobytes)?;
    let tasks = session.begin()?;
    let (number, root) = std::sync::mpsc::channel();
    let (selection, work) = (selection.clone(), work.map(Path::to_owned));
    let operations = options.runs;
    let halt = Arc::new(AtomicBool::new(false));
    let halted = Arc::clone(&halt);
    let worker = thread::spawn(move || {
        // SAFETY: takes nothing and cannot fail.
        let _ = number.send(unsafe { libc::gettid() });
        operate(&selection, work.as_deref(), operations, tasks, &halted)
    });
    session.count(Extent::Operations(root.recv().unwrap_or_default()));
    let mut told: Option<Instant> = None;
    while !worker.is_finished() && told.is_none_or(|told| told.elapsed() < TERMINATION_TIMEOUT) {
        if stop.load(Ordering::Relaxed) && told.is_none() {
            halt.store(true, Ordering::Relaxed);
            told = Some(Instant::now());
        }
        session.drain()?;
        sleep(POLL_INTERVAL);
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Unavailable("interrupted; nothing was counted".to_owned()));
    }
    worker.join().unwrap_or_else(|_| Err(Error::Unavailable("the workload's thread has panicked".to_owned())))?;
    let runs = u64::from(operations);
    Ok(Report::new(release()?, runs, None, session.finish(runs)?))
}

/// The main loop of the measured thread, until `halt`. Its places are its own, with its own mounts unless they are below
/// `work`.
fn operate(
    selection: &Selection,
    work: Option<&Path>,
    operations: u32,
    tasks: Tasks,
    halt: &AtomicBool,
) -> Result<(), Error> {
    let places = Places::open(work, std::slice::from_ref(selection))?;
    let _taking_turns = match selection.workload.tasks {
        workload::Tasks::Several => Some(Turns::take()?),
        workload::Tasks::One => None,
    };
    let failed = |cause| Error::Io { what: "an operation".to_owned(), cause };
    // Before the set-up, so that its processes are followed.
    tasks.follow_me().map_err(failed)?;
    // Open files would keep the instance if this thread is abandoned.
    drop(tasks);
    let place = places.place(selection)?;
    let mut operation = selection.set_up(&place)?;
    run(operation.as_mut(), operations, halt).map_err(failed)
}

fn run(operation: &mut dyn Operation, operations: u32, halt: &AtomicBool) -> io::Result<()> {
    let go_on = || if halt.load(Ordering::Relaxed) { Err(io::Error::from(io::ErrorKind::Interrupted)) } else { Ok(()) };
    for _ in 0..operation.warm_ups(0) {
        go_on()?;
        operation.before()?;
        operation.run()?;
    }
    sleep(SETTLE_TIME);
    for _ in 0..operations {
        go_on()?;
        operation.before()?;
        mark(BEGIN);
        let outcome = operation.run();
        mark(END);
        outcome?;
    }
    sleep(SETTLE_TIME);
    mark(FINISHED);
    Ok(())
}

/// Makes a call with the number of no system call.
fn mark(number: u32) {
    // SAFETY: there is no such call: it returns ENOSYS.
    unsafe { libc::syscall(number.into()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets the stop flag itself, in its third run.
    struct Halting<'h> {
        runs: u32,
        halt: &'h AtomicBool,
    }

    impl Operation for Halting<'_> {
        fn run(&mut self) -> io::Result<()> {
            self.runs += 1;
            self.halt.store(self.runs == 3, Ordering::Relaxed);
            Ok(())
        }

        fn warm_ups(&self, _: usize) -> usize {
            1
        }
    }

    #[test]
    fn ends_between_operations_when_interrupted() {
        let halt = AtomicBool::new(false);
        let mut operation = Halting { runs: 0, halt: &halt };
        let error = run(&mut operation, 1000, &halt).unwrap_err();
        assert_eq!((error.kind(), operation.runs), (io::ErrorKind::Interrupted, 3));
    }
}
