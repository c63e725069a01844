//! The measuring loop.

pub(crate) mod rest;
pub(crate) mod turns;

use std::io;

use self::{rest::rest, turns::Turns};
use crate::{
    Error,
    counter::{Counter, Meter, Soaker, TimerList, nanoseconds, ticks},
    decisions::{Counts, Decisions, managers},
    job::{Idle, Measured},
    places::Places,
    selection::Selection,
    workload::{Operation, Tasks},
};

/// The least length of a sample on the wall clock, if the operation can be repeated that often: long enough that reading the
/// clock does not matter, short enough to fit between two timer ticks.
const WALL_SAMPLE_NS: u64 = 200_000;

/// Measures one selection.
///
/// An error is in the result's `error`, and the next selection can go on. `samples` replaces the workload's own number. On
/// the instruction counter a sample is one operation, including the reading of the counter and one indirect call (some ten
/// instructions, the same in every sample). On the wall clock it is the mean over as many operations as take 200
/// microseconds.
pub fn measure(selection: &Selection, places: &Places, meter: &mut Meter, samples: Option<u32>) -> Measured {
    let workload = selection.workload;
    let count = samples.unwrap_or(workload.samples) as usize;
    let taken = prepare_and_take(selection, places, meter, count);
    let (Taken { samples, idle, decisions }, error) = match taken {
        Ok(taken) => (taken, None),
        Err(error) => (Taken::default(), Some(error.to_string())),
    };
    Measured {
        name: selection.to_string(),
        unit: meter.counter().unit().to_owned(),
        tasks: workload.tasks,
        samples,
        idle,
        decisions,
        error,
    }
}

/// The result of a measurement.
#[derive(Debug, Default)]
struct Taken {
    samples: Vec<f64>,
    idle: Option<Idle>,
    decisions: Option<Decisions>,
}

fn prepare_and_take(selection: &Selection, places: &Places, meter: &mut Meter, count: usize) -> Result<Taken, Error> {
    // Before the set-up, because its peers inherit the policy.
    let _taking_turns = taking_turns(selection, meter)?;
    // Dropped after the operation, which may have files open in it.
    let place = places.place(selection)?;
    let mut operation = selection.set_up(&place)?;
    let before = meter.decisions.as_ref().map(Counts::read);
    meter.decisions.as_ref().map(Counts::asked).transpose()?;
    let (samples, idle) = take(selection, operation.as_mut(), meter, count)?;
    let decisions = match (&meter.decisions, before, meter.counter()) {
        (Some(counts), Some(before), Counter::Instructions) => Some(Decisions {
            operations: operations(idle, operation.as_ref(), count) as u64,
            managers: managers(&before, &counts.read()),
            asked: Some(counts.asked()?),
        }),
        _ => None,
    };
    Ok(Taken { samples, idle, decisions })
}

/// Makes the tasks of a workload take turns on the instruction counter, if there are several.
pub(crate) fn taking_turns(selection: &Selection, meter: &Meter) -> Result<Option<Turns>, Error> {
    match (meter.counter(), selection.workload.tasks) {
        (Counter::Instructions, Tasks::Several) => Turns::take().map(Some),
        _ => Ok(None),
    }
}

/// How often an operation runs for this many samples on the instruction counter: [`without_idle`] may take them twice.
fn operations(idle: Option<Idle>, operation: &dyn Operation, samples: usize) -> usize {
    let warm_ups = operation.warm_ups(samples);
    let first = if operation.sleeps() { warm_ups } else { warm_ups + samples };
    match idle {
        None | Some(Idle::Never) => warm_ups + samples,
        Some(Idle::TimerList) => first + samples,
        Some(Idle::Soaker) => first + warm_ups + samples,
    }
}

/// Takes the samples.
fn take(
    selection: &Selection,
    operation: &mut dyn Operation,
    meter: &mut Meter,
    count: usize,
) -> Result<(Vec<f64>, Option<Idle>), Error> {
    let failed = |cause| Error::Io { what: selection.to_string(), cause };
    // Touched before the loop, so that no page fault falls between two samples of some configurations only.
    let mut samples = vec![0.0; count];
    let idle = match (meter.counter(), selection.workload.tasks) {
        (Counter::Wall, _) => {
            wall(operation, &mut samples).map_err(failed)?;
            None
        }
        (Counter::Instructions, Tasks::One) => {
            warm_up(operation, count).map_err(failed)?;
            instructions(operation, || Ok(0), &mut samples, failed)?;
            None
        }
        (Counter::Instructions, Tasks::Several) => match meter.idle()? {
            Some(list) => Some(without_idle(operation, list, &mut samples, failed)?),
            None => None,
        },
    };
    Ok((samples, idle))
}

/// Fills the samples with the instructions of an operation in which tasks wait for one another, without idle time.
///
/// Usually there is none, because the next task is always ready to run. So the samples are first taken as those of one task.
/// Only if the processor was idle are they taken again, with the idle time of each. Reading the idle time moves a figure by
/// some 2 %: it takes so long that timer ticks fall before every few samples, and the scheduler then has more to decay in its
/// load averages.
fn without_idle(
    operation: &mut dyn Operation,
    list: &mut TimerList,
    samples: &mut [f64],
    failed: impl Fn(io::Error) -> Error,
) -> Result<Idle, Error> {
    warm_up(operation, samples.len()).map_err(&failed)?;
    let before = list.read()?;
    if !operation.sleeps() {
        instructions(operation, || Ok(0), samples, &failed)?;
        if list.read()?.entered == before.entered {
            return Ok(Idle::Never);
        }
    }
    if before.slept.is_some() {
        let slept = || Ok(list.read()?.slept.unwrap_or_default());
        instructions(operation, slept, samples, failed)?;
        return Ok(Idle::TimerList);
    }
    let soaker = Soaker::start()?;
    warm_up(operation, samples.len()).map_err(&failed)?;
    instructions(operation, || soaker.soaked(), samples, failed)?;
    soaker.confirm()?;
    Ok(Idle::Soaker)
}

/// Runs the operation as often as it needs before the first sample.
pub(crate) fn warm_up(operation: &mut dyn Operation, samples: usize) -> io::Result<()> {
    for _ in 0..operation.warm_ups(samples) {
        operation.before()?;
        operation.run()?;
    }
    Ok(())
}

/// Fills the samples, one operation each; `slept` returns the idle time so far, and is called around each operation.
fn instructions(
    operation: &mut dyn Operation,
    mut slept: impl FnMut() -> Result<u64, Error>,
    samples: &mut [f64],
    failed: impl Fn(io::Error) -> Error,
) -> Result<(), Error> {
    for sample in samples {
        operation.before().map_err(&failed)?;
        if operation.leaves_work() {
            rest();
        }
        let slept_before = slept()?;
        let start = ticks();
        let outcome = operation.run();
        let end = ticks();
        outcome.map_err(&failed)?;
        *sample = (end - start) as f64 - (slept()? - slept_before) as f64;
    }
    Ok(())
}

/// Fills the samples, a batch of operations each; finding the size of the batch is the warm-up.
fn wall(operation: &mut dyn Operation, samples: &mut [f64]) -> io::Result<()> {
    let mut batch = 1;
    loop {
        let elapsed = timed_batch(operation, batch)?;
        let larger = larger_batch(batch, elapsed, operation.reach());
        if larger == batch {
            break;
        }
        batch = larger;
    }
    for sample in samples {
        *sample = timed_batch(operation, batch)? as f64 / f64::from(batch);
    }
    Ok(())
}

fn timed_batch(operation: &mut dyn Operation, batch: u32) -> io::Result<u64> {
    operation.before()?;
    let start = nanoseconds();
    for _ in 0..batch {
        operation.run()?;
    }
    Ok(nanoseconds() - start)
}

/// The next batch to try; the same one if it is long enough, or as large as the operation allows.
fn larger_batch(batch: u32, elapsed_ns: u64, reach: u32) -> u32 {
    if elapsed_ns >= WALL_SAMPLE_NS {
        return batch;
    }
    batch.saturating_mul(2).min(reach).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, rc::Rc};

    /// Counts its calls, and fails if `before` is not called in time.
    struct Pool {
        left: u32,
        runs: Rc<Cell<u32>>,
    }

    impl Operation for Pool {
        fn before(&mut self) -> io::Result<()> {
            self.left = self.reach();
            Ok(())
        }

        fn reach(&self) -> u32 {
            8
        }

        fn run(&mut self) -> io::Result<()> {
            self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::NotFound)?;
            self.runs.set(self.runs.get() + 1);
            Ok(())
        }
    }

    #[test]
    fn allows_only_as_many_runs_as_the_operation_reaches() {
        let runs = Rc::new(Cell::new(0));
        let mut samples = vec![0.0; 10];
        wall(&mut Pool { left: 0, runs: runs.clone() }, &mut samples).unwrap();
        // 1 + 2 + 4 + 8 while the batch grows (the last one again at its limit), then 8 a sample.
        assert!(runs.get() >= 80, "{}", runs.get());
        assert!(samples.iter().all(|s| *s >= 0.0));
    }

    fn failed(cause: io::Error) -> Error {
        Error::Io { what: "open+close".into(), cause }
    }

    #[test]
    fn takes_one_operation_a_sample_after_a_warm_up() {
        let runs = Rc::new(Cell::new(0));
        let mut pool = Pool { left: 0, runs: runs.clone() };
        let mut samples = vec![0.0; 100];
        warm_up(&mut pool, samples.len()).unwrap();
        assert_eq!(runs.get(), 29);
        instructions(&mut pool, || Ok(0), &mut samples, failed).unwrap();
        assert_eq!(runs.get(), 100 + 29);
        assert!(samples.iter().all(|s| *s > 0.0), "the counter moved in every sample");
    }

    #[test]
    fn leaves_out_the_time_slept_in_each_operation() {
        // More than a machine can run between two readings of the counter.
        const SLEPT: u64 = 1 << 50;
        let mut readings = 0;
        let slept = || {
            readings += 1;
            Ok(readings * SLEPT)
        };
        let mut samples = [0.0; 3];
        instructions(&mut || Ok(()), slept, &mut samples, failed).unwrap();
        assert!(samples.iter().all(|s| *s < 0.0 && *s >= -(SLEPT as f64)), "{samples:?}");
        assert_eq!(readings, 6);
    }

    #[test]
    fn reports_the_error_of_an_operation() {
        let mut failing = || Err(io::Error::from_raw_os_error(libc::EACCES));
        let error = instructions(&mut failing, || Ok(0), &mut [0.0], failed).unwrap_err().to_string();
        assert!(error.starts_with("open+close: Permission denied"), "{error}");
        assert_eq!(warm_up(&mut failing, 1).unwrap_err().raw_os_error(), Some(libc::EACCES));
        assert_eq!(wall(&mut failing, &mut [0.0]).unwrap_err().raw_os_error(), Some(libc::EACCES));
    }

    #[test]
    fn counts_the_operations_of_each_time_that_samples_are_taken() {
        struct Sleeper(bool);
        impl Operation for Sleeper {
            fn sleeps(&self) -> bool {
                self.0
            }
            fn warm_ups(&self, _: usize) -> usize {
                1
            }
            fn run(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let runs = |idle| operations(idle, &Sleeper(false), 4);
        assert_eq!([None, Some(Idle::Never)].map(runs), [5, 5]);
        assert_eq!([Some(Idle::TimerList), Some(Idle::Soaker)].map(runs), [9, 10]);
        assert_eq!(operations(Some(Idle::TimerList), &Sleeper(true), 4), 5);
    }

    #[test]
    fn doubles_a_batch_until_it_is_long_enough() {
        assert_eq!(larger_batch(4, 100, 100), 8);
        assert_eq!(larger_batch(64, 100, 100), 100);
        assert_eq!(larger_batch(100, 100, 100), 100);
        assert_eq!(larger_batch(4, WALL_SAMPLE_NS, 100), 4);
        assert_eq!(larger_batch(u32::MAX, 1, u32::MAX), u32::MAX);
    }
}
