//! What samples are counted in, and how the count is read.

use std::{
    arch::x86_64::_rdtsc,
    fs::File,
    io::{Read, Seek},
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::{Error, error::Context};

/// What samples are counted in.
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

/// The kernel's list of timers, and of how long each processor slept.
const TIMER_LIST: &str = "/proc/timer_list";

/// For how long the time stamp counter is compared with the clock.
const CHECK: Duration = Duration::from_millis(2);

/// How far the two may be apart, in parts of the whole.
const CHECK_TOLERANCE: f64 = 0.01;

/// A counter that was found fit to count.
#[derive(Debug)]
pub struct Meter {
    counter: Counter,
    /// Only for [`Counter::Instructions`]: what is asked for the time slept, or why it cannot be.
    idle: Option<Result<IdleClock, String>>,
}

impl Meter {
    /// Makes sure that the counter counts what it says, and opens what it reads. Call it before anything is confined: a
    /// confined process may not open files of the kernel.
    pub fn open(counter: Counter) -> Result<Meter, Error> {
        let idle = match counter {
            Counter::Wall => None,
            Counter::Instructions => {
                counts_instructions(ticks_per_nanosecond())?;
                Some(IdleClock::open().map_err(|e| e.to_string()))
            }
        };
        Ok(Meter { counter, idle })
    }

    /// What it counts in.
    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// The clock of time slept, for workloads whose tasks wait for one another; `None` on a wall clock, where waiting
    /// is part of the figure.
    pub(crate) fn idle(&mut self) -> Result<Option<&mut IdleClock>, Error> {
        match &mut self.idle {
            None => Ok(None),
            Some(Ok(clock)) => Ok(Some(clock)),
            Some(Err(why)) => Err(Error::Unavailable(format!(
                "tasks wait for one another here, and the time slept cannot be taken out: {why}"
            ))),
        }
    }
}

/// The time stamp counter.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; Linux leaves it open to user space unless asked otherwise.
    unsafe { _rdtsc() }
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
#[inline(always)]
pub(crate) fn nanoseconds() -> u64 {
    // The clock exists on every Linux and the pointer is valid: `clock_gettime` has no error left to return.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(|time| Duration::from(time).as_nanos() as u64).unwrap_or_default()
}

fn ticks_per_nanosecond() -> f64 {
    let (clock, counter) = (nanoseconds(), ticks());
    while nanoseconds() - clock < CHECK.as_nanos() as u64 {}
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

/// The time for which the only processor was idle since boot, as the kernel's tick code accounts it
/// (`tick_nohz_start_idle` and `tick_nohz_stop_idle` in kernel/time/tick-sched.c), read from `/proc/timer_list`.
///
/// An emulated guest with `-icount sleep=off` jumps to its next timer when it has nothing to do, so that instructions
/// counted across a wait include an arbitrary stretch in which none ran. The kernel takes the time on entering and on
/// leaving the idle loop with the same clock, so that the difference is exact.
#[derive(Debug)]
pub(crate) struct IdleClock {
    list: File,
    text: String,
}

impl IdleClock {
    fn open() -> Result<IdleClock, Error> {
        let list = File::open(TIMER_LIST).context(format!("open {TIMER_LIST} (as root)"))?;
        let mut clock = IdleClock { list, text: String::with_capacity(1 << 18) };
        clock.read()?;
        Ok(clock)
    }

    /// Nanoseconds slept since boot. To be called outside the timed stretch: it runs some 100,000 instructions.
    pub(crate) fn read(&mut self) -> Result<u64, Error> {
        self.text.clear();
        self.list.rewind().context(format!("rewind {TIMER_LIST}"))?;
        self.list.read_to_string(&mut self.text).context(format!("read {TIMER_LIST}"))?;
        slept(&self.text).map_err(|reason| Error::Unavailable(format!("{TIMER_LIST}: {reason}")))
    }
}

/// Nanoseconds that the only processor was idle since boot, as [`Meter`] takes them out of workloads that wait; `None`
/// where the kernel does not say, or has more than one processor.
pub fn idle_nanoseconds() -> Option<u64> {
    IdleClock::open().and_then(|mut clock| clock.read()).ok()
}

/// The time that the one processor of a timer list slept, waiting for a disk (`iowait_sleeptime`) included.
fn slept(timer_list: &str) -> Result<u64, String> {
    let mut values = timer_list.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let name = name.trim();
        matches!(name, ".idle_sleeptime" | ".iowait_sleeptime").then_some((name, value))
    });
    let mut next = |wanted: &str| match values.next() {
        Some((name, value)) if name == wanted => Ok(Some(value)),
        Some((name, _)) => Err(format!("{name} where {wanted} is expected")),
        None => Ok(None),
    };
    let (Some(idle), Some(iowait)) = (next(".idle_sleeptime")?, next(".iowait_sleeptime")?) else {
        return Err("it does not say how long the processor slept; the kernel needs CONFIG_NO_HZ_COMMON".into());
    };
    if values.next().is_some() {
        return Err("there is more than one processor; measure in a guest with one".into());
    }
    Ok(whole_nanoseconds(idle)? + whole_nanoseconds(iowait)?)
}

/// Reads ` 123 nsecs`.
fn whole_nanoseconds(value: &str) -> Result<u64, String> {
    let number = value.trim().strip_suffix("nsecs").map(str::trim);
    number.and_then(|n| n.parse().ok()).ok_or_else(|| format!("{value:?} is not a number of nanoseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part that matters of a 6.1 kernel's list, one processor.
    const LIST: &str = "Timer List Version: v0.9\nHRTIMER_MAX_CLOCK_BASES: 8\nnow at 5021350513 nsecs\n\ncpu: 0\n \
                        clock 0:\n  .base:       00000000a1b2c3d4\n  .nohz_mode      : 2\n  .idle_tick      : 4992000000 nsecs\n  \
                        .tick_stopped   : 0\n  .idle_entrytime : 5020000000 nsecs\n  .idle_sleeptime : 4100200300 nsecs\n  \
                        .iowait_sleeptime: 17 nsecs\n  .last_jiffies   : 4295\njiffies: 4295\n";

    #[test]
    fn reports_time_slept_of_one_processor() {
        assert_eq!(slept(LIST), Ok(4_100_200_317));
    }

    #[test]
    fn rejects_a_list_of_two_processors() {
        let two = format!("{LIST}{LIST}");
        assert!(slept(&two).unwrap_err().contains("more than one processor"));
    }

    #[test]
    fn rejects_a_list_without_or_with_unreadable_times() {
        assert!(slept("cpu: 0\n").unwrap_err().contains("CONFIG_NO_HZ_COMMON"));
        assert!(slept(&LIST.replace("17 nsecs", "many nsecs")).unwrap_err().contains("not a number"));
        assert!(slept(&LIST.replace(".idle_sleeptime", ".other")).is_err());
    }

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
