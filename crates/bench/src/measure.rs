//! The measuring loop.

use std::io;

use crate::{
    Error,
    counter::{Counter, IdleClock, Meter, nanoseconds, ticks},
    job::Measured,
    place::Places,
    selection::Selection,
    workload::{Operation, Tasks},
};

/// How long a sample on the wall clock lasts at least, if the operation can be repeated for so long: long enough for
/// the reading of the clock to vanish in it, short enough to fall between two timer ticks.
const WALL_SAMPLE_NS: u64 = 200_000;

/// Measures one selection. What goes wrong with it is in the result's `error`; the next selection can go on.
///
/// `samples` stands for the workload's own number. On the instruction counter a sample is one operation, the reading of
/// the counter and one indirect call included (some ten instructions, the same in every sample). On the wall clock it is
/// the mean of so many operations as take [200 microseconds](WALL_SAMPLE_NS).
pub fn measure(selection: &Selection, places: &Places, meter: &mut Meter, samples: Option<u32>) -> Measured {
    let workload = selection.workload;
    let count = samples.unwrap_or(workload.samples) as usize;
    let taken = prepare_and_take(selection, places, meter, count);
    let (samples, error) = match taken {
        Ok(samples) => (samples, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Measured {
        name: selection.to_string(),
        unit: meter.counter().unit().to_owned(),
        tasks: workload.tasks,
        samples,
        error,
    }
}

fn prepare_and_take(
    selection: &Selection,
    places: &Places,
    meter: &mut Meter,
    count: usize,
) -> Result<Vec<f64>, Error> {
    let workload = selection.workload;
    // Dropped after the operation, which may have files open in it.
    let place = places.place(selection)?;
    let mut operation = (workload.setup)(&place)?;
    let failed = |cause| Error::Io { what: selection.to_string(), cause };
    // Touched before the loop: a page fault must not fall between two samples of some configurations only.
    let mut samples = vec![0.0; count];
    match meter.counter() {
        Counter::Wall => wall(operation.as_mut(), &mut samples).map_err(failed)?,
        Counter::Instructions => {
            let idle = match workload.tasks {
                Tasks::One => None,
                Tasks::Several => meter.idle()?,
            };
            instructions(operation.as_mut(), idle, &mut samples, failed)?;
        }
    }
    Ok(samples)
}

/// Fills the samples, one operation each, after a quarter as many that are thrown away.
fn instructions(
    operation: &mut dyn Operation,
    mut idle: Option<&mut IdleClock>,
    samples: &mut [f64],
    failed: impl Fn(io::Error) -> Error,
) -> Result<(), Error> {
    let warm_up = samples.len() / 4 + 4;
    for number in 0..warm_up + samples.len() {
        operation.before().map_err(&failed)?;
        let slept_before = idle.as_mut().map(|clock| clock.read()).transpose()?;
        let start = ticks();
        let outcome = operation.run();
        let end = ticks();
        outcome.map_err(&failed)?;
        let slept_after = idle.as_mut().map(|clock| clock.read()).transpose()?;
        let slept = slept_after.unwrap_or_default() - slept_before.unwrap_or_default();
        if let Some(sample) = number.checked_sub(warm_up) {
            samples[sample] = (end - start) as f64 - slept as f64;
        }
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

/// The batch to try next; the same one once it is long enough or as large as the operation allows.
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

    #[test]
    fn takes_one_operation_a_sample_after_a_warm_up() {
        let runs = Rc::new(Cell::new(0));
        let mut samples = vec![0.0; 100];
        let failed = |cause| Error::Io { what: "pool".into(), cause };
        instructions(&mut Pool { left: 0, runs: runs.clone() }, None, &mut samples, failed).unwrap();
        assert_eq!(runs.get(), 100 + 29);
        assert!(samples.iter().all(|s| *s > 0.0), "the counter moved in every sample");
    }

    #[test]
    fn reports_the_error_of_an_operation() {
        let mut failing = || Err(io::Error::from_raw_os_error(libc::EACCES));
        let failed = |cause| Error::Io { what: "open+close".into(), cause };
        let error = instructions(&mut failing, None, &mut [0.0], failed).unwrap_err().to_string();
        assert!(error.starts_with("open+close: Permission denied"), "{error}");
        assert_eq!(wall(&mut failing, &mut [0.0]).unwrap_err().raw_os_error(), Some(libc::EACCES));
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
