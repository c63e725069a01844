//! The policy testing module: hooks with a tunable delay that decide nothing.
//!
//! On stock kernels BPF programs do this ([`programs`]), on kernels that a study has built a kernel module does ([`module`]).
//! A unit of delay is a turn of a loop, which takes the same number of instructions each time, so that the cost of a delay is
//! known to the instruction. [`Calibration`] finds the cost of a unit, on a hook that a system call passes once.

mod module;
mod programs;

use std::{collections::BTreeMap, fmt, os::fd::BorrowedFd, str::FromStr};

use serde::{Deserialize, Serialize};

use self::{module::Module, programs::Attached};
use crate::{
    Error,
    counter::{Counter, nanoseconds, ticks},
};

/// The most units: the kernel's `BPF_MAX_LOOPS`.
pub const MAX_UNITS: u64 = 1 << 23;
/// The longest delay of one call, in nanoseconds. The total over many calls is not limited: the kernel's watchdogs report
/// after 20 s in which no task could be scheduled, or after 21 s in one RCU section, such as a path walk, which calls
/// `inode_permission` for each component.
pub const MAX_NANOSECONDS: u64 = 100_000_000;

/// The hook of the calibration: getpgid calls it once (kernel/sys.c).
const CALIBRATED_ON: &str = "task_getpgid";
/// The numbers of units whose cost is measured.
const UNITS: [u64; 5] = [0, 1, 10, 100, 1000];
/// Samples per measurement; for units, the least counts.
const SAMPLES: usize = 32;
/// The delays by the clock, in nanoseconds, that are measured; the first shows the shortest possible delay.
const NANOSECONDS: [u64; 4] = [1, 1_000, 10_000, 100_000];

/// The delay of a hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delay {
    /// The number of turns of an empty loop.
    pub units: u64,
    /// Nanoseconds after the units: at least this many, until the clock is read next ([`Waited`]).
    pub nanoseconds: u64,
}

/// Delays of hooks by name; all others have none.
pub type Delays = BTreeMap<String, Delay>;

/// `UNITS` or `NUMBERns`.
impl FromStr for Delay {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Unavailable(format!("latency: {text:?} is neither a number of units nor one of ns"));
        let (number, most, unit) = match text.strip_suffix("ns") {
            Some(number) => (number, MAX_NANOSECONDS, "ns"),
            None => (text, MAX_UNITS, "units"),
        };
        let number = number.parse().map_err(|_| wrong())?;
        if number > most {
            return Err(Error::Unavailable(format!(
                "latency: {text} is more than a hook may take, {most} {unit}: the kernel's watchdog would take the \
                 machine for hung"
            )));
        }
        Ok(match unit {
            "ns" => Delay { units: 0, nanoseconds: number },
            _ => Delay { units: number, nanoseconds: 0 },
        })
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delay { units, nanoseconds: 0 } => write!(to, "{units}"),
            Delay { units: 0, nanoseconds } => write!(to, "{nanoseconds}ns"),
            Delay { units, nanoseconds } => write!(to, "{units}+{nanoseconds}ns"),
        }
    }
}

/// The cost of a delay on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// `instructions` or `ns`.
    pub unit: String,
    /// The least cost of the system call before programs were attached; with the kernel's module, the least cost without a
    /// delay.
    pub detached: f64,
    /// The least cost of the system call by number of units; the first number is 0.
    pub attached: Vec<(u64, f64)>,
}

impl Calibration {
    /// What an attached program without a delay adds to a call of its hook.
    #[must_use]
    pub fn floor(&self) -> f64 {
        self.at(0) - self.detached
    }

    /// What the first unit adds, with the start of the loop.
    #[must_use]
    pub fn first(&self) -> f64 {
        self.at(1) - self.at(0)
    }

    /// What each further unit adds, by the two greatest measured numbers of units.
    #[must_use]
    pub fn further(&self) -> f64 {
        match self.attached[..] {
            [.., (few, less), (many, more)] => (more - less) / (many - few) as f64,
            _ => f64::NAN,
        }
    }

    fn at(&self, units: u64) -> f64 {
        self.attached.iter().find(|(tried, _)| *tried == units).map_or(f64::NAN, |(_, cost)| *cost)
    }
}

/// What a delay by the clock adds to a call of a hook, in nanoseconds of `CLOCK_MONOTONIC`: the median, and the range of the
/// middle half of the calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waited {
    /// The requested delay, in nanoseconds.
    pub asked: u64,
    /// The lower quartile.
    pub low: f64,
    /// The median of the calls.
    pub median: f64,
    /// The upper quartile.
    pub high: f64,
}

impl Waited {
    /// From the times of calls with the delay and without one.
    fn of(asked: u64, mut with: Vec<u64>, mut without: Vec<u64>) -> Self {
        with.sort_unstable();
        without.sort_unstable();
        let plain = without[without.len() / 2] as f64;
        let at = |quarter: usize| with[with.len() * quarter / 4] as f64 - plain;
        Self { asked, low: at(1), median: at(2), high: at(3) }
    }
}

/// Hooks that can be delayed.
#[derive(Debug)]
pub struct Latency(Means);

#[derive(Debug)]
enum Means {
    Programs(Attached),
    Module(Module),
}

impl Latency {
    /// Attaches programs without delays to the hooks and to the calibration's hook; without hooks, to those that the
    /// workloads reach. Returns a description too. Dropping the value detaches them.
    pub fn attach(hooks: &[String]) -> Result<(String, Self), Error> {
        let (verified, attached) = Attached::new(hooks, CALIBRATED_ON)?;
        Ok((verified, Self(Means::Programs(attached))))
    }

    /// Uses the kernel's own module, which can delay all hooks. Dropping the value removes the delays. Refused while the
    /// module has delays.
    pub fn module() -> Result<(String, Self), Error> {
        let Some(module) = Module::find() else {
            return Err(Error::Unavailable(
                "latency: the module tollgate_latency is not active; boot a kernel that has it (6.1-built) with \
                 lsm=tollgate_latency, or take bpf-latency"
                    .to_owned(),
            ));
        };
        let module = module.taken()?;
        let verified = format!("latency: the kernel's own module, {} hooks", module.hooks()?);
        Ok((verified, Self(Means::Module(module))))
    }

    /// Whether the kernel's own module is active.
    #[must_use]
    pub fn has_module() -> bool {
        Module::find().is_some()
    }

    /// Uses programs that are already attached, and leaves them attached; else the kernel's own module.
    pub fn open() -> Result<Self, Error> {
        match (Attached::open(), Module::find()) {
            (Ok(attached), _) => Ok(Self(Means::Programs(attached))),
            (Err(_), Some(module)) => Ok(Self(Means::Module(module))),
            (Err(error), None) => Err(error),
        }
    }

    /// Leaves the hooks as they are until [`Latency::detach`].
    pub fn keep(self) {
        match self.0 {
            Means::Programs(attached) => attached.keep(),
            Means::Module(mut module) => module.kept = true,
        }
    }

    /// Detaches the programs, or removes the module's delays.
    pub fn detach(self) {
        match self.0 {
            Means::Programs(attached) => attached.detach(),
            Means::Module(mut module) => module.kept = false,
        }
    }

    /// Measures the cost of a delay; `detached` is [`cost`] before programs were attached. No hook has a delay afterwards.
    pub fn calibrate(&self, counter: Counter, detached: f64) -> Result<Calibration, Error> {
        let mut attached = Vec::new();
        for units in UNITS {
            self.set(&Delays::from([(CALIBRATED_ON.to_owned(), Delay { units, nanoseconds: 0 })]))?;
            attached.push((units, cost(counter)));
        }
        self.set(&Delays::new())?;
        Ok(Calibration { unit: counter.unit().to_owned(), detached, attached })
    }

    /// Measures delays by the clock, from the shortest on. No hook has a delay afterwards.
    pub fn wait(&self) -> Result<Vec<Waited>, Error> {
        let calls = |asked: u64| {
            self.set(&Delays::from([(CALIBRATED_ON.to_owned(), Delay { units: 0, nanoseconds: asked })]))?;
            Ok(costs(nanoseconds))
        };
        let without = calls(0)?;
        let waited = NANOSECONDS.iter().map(|asked| Ok(Waited::of(*asked, calls(*asked)?, without.clone())));
        let waited: Result<Vec<_>, Error> = waited.collect();
        self.set(&Delays::new())?;
        waited
    }

    /// Sets the delays of all hooks; the named hooks must have a program.
    pub fn set(&self, delays: &Delays) -> Result<(), Error> {
        match &self.0 {
            Means::Programs(attached) => attached.set(delays),
            Means::Module(module) => module.set(delays),
        }
    }

    /// The delays whose hooks have a program, or, with the module, exist in the kernel.
    #[must_use]
    pub fn of_attached(&self, delays: &Delays) -> Delays {
        let has = |hook: &str| match &self.0 {
            Means::Programs(_) => Attached::has(hook),
            Means::Module(module) => module.has(hook),
        };
        delays.iter().filter(|(hook, _)| has(hook)).map(|(hook, delay)| (hook.clone(), *delay)).collect()
    }

    /// The present delays.
    pub fn delays(&self) -> Result<Delays, Error> {
        match &self.0 {
            Means::Programs(attached) => attached.delays(),
            Means::Module(module) => module.delays(),
        }
    }

    /// Whether programs are attached, or the module has a delay.
    pub fn is_on(&self) -> Result<bool, Error> {
        match &self.0 {
            Means::Programs(_) => Ok(true),
            Means::Module(module) => module.is_on(),
        }
    }

    /// Delays only the tasks of a control group (version 2), and those below it, from now on.
    pub fn limit(&self, group: BorrowedFd<'_>) -> Result<(), Error> {
        match &self.0 {
            Means::Programs(attached) => attached.limit(group),
            Means::Module(module) => module.limit(Some(group)),
        }
    }
}

/// The least cost of a call of getpgid, which passes one hook once.
#[must_use]
pub fn cost(counter: Counter) -> f64 {
    let costs = match counter {
        Counter::Instructions => costs(ticks),
        Counter::Wall => costs(nanoseconds),
    };
    costs.into_iter().min().unwrap_or_default() as f64
}

/// The cost of calls of getpgid, by a clock.
fn costs(now: impl Fn() -> u64) -> Vec<u64> {
    // SAFETY: both calls have no preconditions.
    let own = unsafe { libc::getpid() };
    let one = |_| {
        let start = now();
        // SAFETY: it has no preconditions.
        unsafe { libc::getpgid(own) };
        now() - start
    };
    (0..SAMPLES).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_nanoseconds() {
        let read = |text: &str| text.parse::<Delay>();
        assert_eq!(read("100").unwrap(), Delay { units: 100, nanoseconds: 0 });
        assert_eq!(read("250ns").unwrap(), Delay { units: 0, nanoseconds: 250 });
        for text in ["", "ns", "-1", "1.5", "10us", "99999999999999999999"] {
            assert!(read(text).unwrap_err().to_string().contains("neither"), "{text}");
        }
        for text in ["100", "7ns"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_delays_that_the_watchdog_would_not_bear() {
        for text in ["8388609", "100000001ns"] {
            let refusal = text.parse::<Delay>().unwrap_err().to_string();
            assert!(refusal.contains("watchdog"), "{refusal}");
        }
        assert!("8388608".parse::<Delay>().is_ok() && "100000000ns".parse::<Delay>().is_ok());
    }

    #[test]
    fn tells_what_a_delay_adds_to_half_of_the_calls() {
        // One call in four was interrupted.
        let with = vec![1190, 1200, 1180, 9000, 1210, 1185, 1195, 9500];
        let waited = Waited::of(1000, with, vec![10, 20, 30]);
        assert_eq!(waited, Waited { asked: 1000, low: 1170.0, median: 1180.0, high: 8980.0 });
    }

    #[test]
    fn tells_floor_first_and_further_units_apart() {
        let attached = vec![(0, 520.0), (1, 568.0), (10, 757.0), (100, 2647.0), (1000, 21547.0)];
        let calibration = Calibration { unit: "instructions".into(), detached: 300.0, attached };
        assert_eq!((calibration.floor(), calibration.first(), calibration.further()), (220.0, 48.0, 21.0));
    }
}
