//! The unit of samples, and how the counter is read.

mod idle;
mod soaker;

use std::{
    arch::{asm, x86_64::_rdtsc},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub(crate) use self::{idle::TimerList, soaker::Soaker};
use crate::{Error, decisions::Counts};

/// The unit of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counter {
    /// Guest instructions: the time stamp counter of a QEMU guest run with `-icount shift=0`, where one tick is one
    /// nanosecond of guest time and one executed instruction.
    Instructions,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    Wall,
}

impl Counter {
    /// The unit of the samples, per operation.
    pub fn unit(self) -> &'static str {
        match self {
            Counter::Instructions => "instructions",
            Counter::Wall => "ns",
        }
    }
}

/// How long the time stamp counter is compared with the clock, to learn its frequency.
const CALIBRATION_TIME: Duration = Duration::from_millis(2);

/// The accepted deviation of the two, as a share.
const CHECK_TOLERANCE: f64 = 0.01;

/// A counter that was checked.
#[derive(Debug)]
pub struct Meter {
    counter: Counter,
    /// Only for [`Counter::Instructions`]: shows whether the processor was idle, or why that cannot be known.
    idle: Option<Result<TimerList, String>>,
    /// The counts of decisions, if they are counted.
    pub(crate) decisions: Option<Counts>,
}

impl Meter {
    /// Checks that the counter counts in its unit, and opens the files that it reads. Call it before confinement, because a
    /// confined process may not open the kernel's files.
    pub fn open(counter: Counter) -> Result<Meter, Error> {
        let idle = match counter {
            Counter::Wall => None,
            Counter::Instructions => {
                counts_instructions(ticks_per_nanosecond())?;
                Some(TimerList::open().map_err(|e| e.to_string()))
            }
        };
        Ok(Meter { counter, idle, decisions: None })
    }

    /// The unit that it counts in.
    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// Shows whether the processor was idle, for workloads whose tasks wait for one another; `None` on a wall clock, where
    /// waiting is part of the figure.
    pub(crate) fn idle(&mut self) -> Result<Option<&mut TimerList>, Error> {
        match &mut self.idle {
            None => Ok(None),
            Some(Ok(list)) => Ok(Some(list)),
            Some(Err(why)) => Err(Error::Unavailable(format!(
                "tasks wait for one another here, and the time slept cannot be taken out: {why}"
            ))),
        }
    }
}

/// The time stamp counter.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; Linux allows it in user space by default.
    unsafe { _rdtsc() }
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
#[inline(always)]
pub(crate) fn nanoseconds() -> u64 {
    // The clock exists on every Linux and the pointer is valid: `clock_gettime` has no error left to return.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(|time| Duration::from(time).as_nanos() as u64).unwrap_or_default()
}

/// Executes 2048 instructions that do nothing. QEMU translates them into almost nothing, so that they pass a guest's time at
/// little cost to the host.
#[inline(always)]
pub(crate) fn pass_time() {
    // SAFETY: does nothing.
    unsafe { asm!(".rept 2048", "nop", ".endr", options(nomem, nostack, preserves_flags)) }
}

fn ticks_per_nanosecond() -> f64 {
    let (clock, counter) = (nanoseconds(), ticks());
    while nanoseconds() - clock < CALIBRATION_TIME.as_nanos() as u64 {}
    let elapsed = (nanoseconds() - clock) as f64;
    (ticks() - counter) as f64 / elapsed
}

fn counts_instructions(ticks_per_nanosecond: f64) -> Result<(), Error> {
    if (ticks_per_nanosecond - 1.0).abs() <= CHECK_TOLERANCE {
        return Ok(());
    }
    Err(Error::Unavailable(format!(
        "the time stamp counter does not count instructions here: it ticks {ticks_per_nanosecond:.3} times a nanosecond, \
         not once; measure in a guest run with -icount shift=0, or count in wall clock time"
    )))
}

/// Nanoseconds that the only processor was idle since boot; `None` if the kernel does not report it, or has several
/// processors.
pub fn idle_nanoseconds() -> Option<u64> {
    TimerList::open().and_then(|mut list| list.read()).ok()?.slept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_time_stamp_counter_of_another_frequency() {
        assert!(counts_instructions(1.0).is_ok());
        assert!(counts_instructions(0.995).is_ok());
        let error = counts_instructions(2.6).unwrap_err().to_string();
        assert!(error.contains("2.600 times") && error.contains("-icount"), "{error}");
        assert!(counts_instructions(0.98).is_err());
    }

    #[test]
    fn opens_a_wall_clock_anywhere() {
        let mut meter = Meter::open(Counter::Wall).unwrap();
        assert!(meter.idle().unwrap().is_none());
        assert!(nanoseconds() <= nanoseconds());
    }
}
