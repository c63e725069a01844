//! Whether, and for how long, the only processor was idle.

use std::{
    fs::File,
    io::{Read, Seek},
};

use crate::{Error, error::Context};

/// The kernel's list of timers, with the state of the tick code for each processor.
const TIMER_LIST: &str = "/proc/timer_list";

/// The idle time of the only processor in `/proc/timer_list`; kernel/time/tick-sched.c counts it and kernel/time/timer_list.c
/// (`print_cpu`) prints it.
///
/// An emulated guest with `-icount sleep=off` jumps to its next timer when it has nothing to do, so instructions counted
/// across a wait include an arbitrary time in which none ran.
#[derive(Debug)]
pub(crate) struct TimerList {
    list: File,
    text: String,
}

/// The idle state at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Idling {
    /// When the processor last entered the idle loop (`tick_nohz_start_idle`), in nanoseconds since boot. As long as
    /// it is the same, the processor always had a task to run.
    pub(crate) entered: u64,
    /// Nanoseconds idle since boot, taken with one clock on entering and on leaving the idle loop, so that differences
    /// are exact; `None` on kernels that keep it elsewhere (7.2 has it in `kernel_cpustat`, which /proc shows in steps
    /// of 10 ms only).
    pub(crate) slept: Option<u64>,
}

impl TimerList {
    pub(super) fn open() -> Result<TimerList, Error> {
        let list = File::open(TIMER_LIST).context(format!("open {TIMER_LIST} (as root)"))?;
        let mut list = TimerList { list, text: String::with_capacity(1 << 18) };
        list.read()?;
        Ok(list)
    }

    /// Call it outside the timed part: it runs some 100,000 instructions.
    pub(crate) fn read(&mut self) -> Result<Idling, Error> {
        self.text.clear();
        self.list.rewind().context(format!("rewind {TIMER_LIST}"))?;
        self.list.read_to_string(&mut self.text).context(format!("read {TIMER_LIST}"))?;
        idling(&self.text).map_err(|reason| Error::Unavailable(format!("{TIMER_LIST}: {reason}")))
    }
}

/// Reads the idle state of the one processor in a timer list; waiting for a disk (`iowait_sleeptime`) is idle time too.
fn idling(timer_list: &str) -> Result<Idling, String> {
    let entered = only(timer_list, ".idle_entrytime")?
        .ok_or("it does not say when the processor fell idle; the kernel needs CONFIG_NO_HZ_COMMON")?;
    let slept = match (only(timer_list, ".idle_sleeptime")?, only(timer_list, ".iowait_sleeptime")?) {
        (Some(idle), Some(iowait)) => Some(idle + iowait),
        (None, None) => None,
        _ => return Err("it has only one of .idle_sleeptime and .iowait_sleeptime".into()),
    };
    Ok(Idling { entered, slept })
}

/// The only value of this name; there is one per processor.
fn only(timer_list: &str, name: &str) -> Result<Option<u64>, String> {
    let mut values = timer_list.lines().filter_map(|line| {
        let (field, value) = line.split_once(':')?;
        (field.trim() == name).then_some(value)
    });
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("there is more than one processor; measure in a guest with one".into());
    }
    let number = value.trim().strip_suffix("nsecs").and_then(|number| number.trim().parse().ok());
    number.map(Some).ok_or_else(|| format!("{name} is {value:?}, not a number of nanoseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relevant part of a 6.1 kernel's list, with one processor.
    const LIST: &str = "Timer List Version: v0.9\nHRTIMER_MAX_CLOCK_BASES: 8\nnow at 5021350513 nsecs\n\ncpu: 0\n \
                        clock 0:\n  .base:       00000000a1b2c3d4\n  .nohz_mode      : 2\n  .idle_tick      : 4992000000 nsecs\n  \
                        .tick_stopped   : 0\n  .idle_entrytime : 5020000000 nsecs\n  .idle_sleeptime : 4100200300 nsecs\n  \
                        .iowait_sleeptime: 17 nsecs\n  .last_jiffies   : 4295\njiffies: 4295\n";

    /// The same of a 7.2 kernel.
    const WITHOUT_TIMES: &str = "Timer List Version: v0.11\nnow at 3470212612 nsecs\n\ncpu: 0\n clock 0:\n  .nohz           : 1\n  \
                                 .idle_calls     : 8\n  .idle_entrytime : 3368002156 nsecs\n  .idle_waketime  : 3466850869 nsecs\n";

    #[test]
    fn reports_the_last_entry_and_the_time_slept_of_one_processor() {
        assert_eq!(idling(LIST), Ok(Idling { entered: 5_020_000_000, slept: Some(4_100_200_317) }));
    }

    #[test]
    fn reports_the_last_entry_alone_where_the_kernel_keeps_the_times_elsewhere() {
        assert_eq!(idling(WITHOUT_TIMES), Ok(Idling { entered: 3_368_002_156, slept: None }));
    }

    #[test]
    fn rejects_a_list_of_two_processors() {
        let two = format!("{LIST}{LIST}");
        assert!(idling(&two).unwrap_err().contains("more than one processor"));
    }

    #[test]
    fn rejects_a_list_without_or_with_unreadable_times() {
        assert!(idling("cpu: 0\n").unwrap_err().contains("CONFIG_NO_HZ_COMMON"));
        assert!(idling(&LIST.replace("17 nsecs", "many nsecs")).unwrap_err().contains("not a number"));
        assert!(idling(&LIST.replace(".idle_sleeptime", ".other")).unwrap_err().contains("only one of"));
    }
}
