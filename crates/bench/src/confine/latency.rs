//! The policy testing module: hooks that take as long as they are told, and decide nothing.
//!
//! A unit of delay is a turn of the programs' loop, which takes as many instructions each time: what a delay costs is known
//! to the instruction once a unit is. [`Calibration`] finds out, on a hook that a system call passes once.

use std::{
    collections::BTreeMap,
    fmt,
    os::fd::{AsRawFd, BorrowedFd},
    path::Path,
    str::FromStr,
};

use libbpf_rs::{
    MapCore, MapFlags, MapHandle,
    libbpf_sys::{self, BPF_FUNC_loop, BPF_PROG_TYPE_KPROBE},
};
use serde::{Deserialize, Serialize};
use tollgate_abi::HOOKS;

use super::bpf::{self, Pinned, Programs};
use crate::{
    Error,
    counter::{Counter, nanoseconds, ticks},
};

const LATENCY: Programs = Programs {
    object: include_bytes!(concat!(env!("OUT_DIR"), "/latency.bpf.o")),
    what: "programs of tunable latency",
    pins: "/sys/fs/bpf/tollgate-latency",
    maps: &[(".data.latency", "latency"), ("chosen", "chosen")],
};

/// The most units, `BPF_MAX_LOOPS` of the kernel.
pub const MOST_UNITS: u64 = 1 << 23;
/// The longest delay in nanoseconds. The kernel's watchdog speaks up after 20 s in which no task could be scheduled, and
/// one system call may pass a hook dozens of times.
pub const MOST_NANOSECONDS: u64 = 100_000_000;

/// The hook that a delay is calibrated on: getpgid calls it once (kernel/sys.c).
const CALIBRATED_ON: &str = "task_getpgid";
/// The numbers of units whose cost is taken.
const UNITS: [u64; 5] = [0, 1, 10, 100, 1000];
/// How often each is taken; the least counts.
const SAMPLES: usize = 32;

/// How long a hook takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delay {
    /// Turns of an empty loop.
    pub units: u64,
    /// Nanoseconds, after the units; as exact as the clock is read.
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
            Some(number) => (number, MOST_NANOSECONDS, "ns"),
            None => (text, MOST_UNITS, "units"),
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

/// What a delay costs on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// `instructions` or `ns`.
    pub unit: String,
    /// Least cost of the system call before programs were attached.
    pub detached: f64,
    /// Least cost of it for each number of units; the first is 0.
    pub attached: Vec<(u64, f64)>,
}

impl Calibration {
    /// What an attached program without a delay adds to a call of its hook.
    #[must_use]
    pub fn floor(&self) -> f64 {
        self.at(0) - self.detached
    }

    /// What the first unit adds, the loop's beginning with it.
    #[must_use]
    pub fn first(&self) -> f64 {
        self.at(1) - self.at(0)
    }

    /// What each further unit adds, by the two greatest numbers of them that were tried.
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

/// Attached programs. Dropping what [`Latency::attach`] has given detaches them.
#[derive(Debug)]
pub struct Latency {
    latency: MapHandle,
    chosen: MapHandle,
    pinned: Option<Pinned>,
}

impl Latency {
    /// Attaches programs without delays to the hooks, and to that of the calibration; to those that the workloads reach if
    /// none is named. Says what was attached.
    pub fn attach(hooks: &[String]) -> Result<(String, Self), Error> {
        if !has_bpf_loop() {
            return Err(Error::Unavailable(
                "latency: this kernel has no bpf_loop, which a delay is made of; boot Linux 5.17 or newer".to_owned(),
            ));
        }
        let mut hooks = if hooks.is_empty() { bpf::reached()? } else { hooks.to_vec() };
        hooks.push(CALIBRATED_ON.to_owned());
        let (verified, pinned) = bpf::attach(LATENCY, &hooks)?;
        Ok((verified, Latency { pinned: Some(pinned), ..Self::open()? }))
    }

    /// Those that are attached already, and stay so.
    pub fn open() -> Result<Self, Error> {
        let map = |name: &str| {
            let path = Path::new(LATENCY.pins).join(name);
            let cannot =
                |cause| Error::Unavailable(format!("latency: no programs are attached: {}: {cause}", path.display()));
            MapHandle::from_pinned_path(&path).map_err(cannot)
        };
        Ok(Latency { latency: map("latency")?, chosen: map("chosen")?, pinned: None })
    }

    /// Leaves the programs attached until [`Latency::detach`].
    pub fn keep(mut self) {
        // Not dropped, it removes nothing; its path is a few bytes.
        if let Some(pinned) = self.pinned.take() {
            std::mem::forget(pinned);
        }
    }

    /// Detaches the programs.
    pub fn detach(mut self) {
        self.pinned.get_or_insert_with(|| Pinned(LATENCY.pins.into()));
    }

    /// Finds out what a delay costs; `detached` is [`cost`] before programs were attached. No hook has a delay then.
    pub fn calibrate(&self, counter: Counter, detached: f64) -> Result<Calibration, Error> {
        let mut attached = Vec::new();
        for units in UNITS {
            self.set(&Delays::from([(CALIBRATED_ON.to_owned(), Delay { units, nanoseconds: 0 })]))?;
            attached.push((units, cost(counter)));
        }
        self.set(&Delays::new())?;
        Ok(Calibration { unit: counter.unit().to_owned(), detached, attached })
    }

    /// Sets the delays of all hooks; those named must have a program.
    pub fn set(&self, delays: &Delays) -> Result<(), Error> {
        if let Some(hook) = delays.keys().find(|hook| !Path::new(LATENCY.pins).join(hook).exists()) {
            return Err(Error::Unavailable(format!(
                "latency: no program is attached to the hook {hook}; name it when programs are attached"
            )));
        }
        self.write(layout(self.read()?[0], delays)?)
    }

    /// Those of the delays whose hooks have a program.
    #[must_use]
    pub fn of_attached(&self, delays: &Delays) -> Delays {
        let attached = |hook: &str| Path::new(LATENCY.pins).join(hook).exists();
        delays.iter().filter(|(hook, _)| attached(hook)).map(|(hook, delay)| (hook.clone(), *delay)).collect()
    }

    /// The delays that are set.
    pub fn delays(&self) -> Result<Delays, Error> {
        let words = self.read()?;
        let delays = words[1..].chunks_exact(2).map(|words| Delay { units: words[0], nanoseconds: words[1] });
        let named = HOOKS.iter().zip(delays).filter(|(_, delay)| *delay != Delay::default());
        Ok(named.map(|(hook, delay)| (hook.name.to_owned(), delay)).collect())
    }

    /// Delays only the tasks of a control group (version 2) and those below it, from now on.
    pub fn limit(&self, group: BorrowedFd<'_>) -> Result<(), Error> {
        let group = group.as_raw_fd().to_ne_bytes();
        self.chosen
            .update(&0_u32.to_ne_bytes(), &group, MapFlags::ANY)
            .map_err(|cause| cannot("limit the delays", cause))?;
        let mut words = self.read()?;
        words[0] = 1;
        self.write(words)
    }

    fn read(&self) -> Result<Vec<u64>, Error> {
        let value = self.latency.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(|cause| cannot("read the delays", cause))?.unwrap_or_default();
        let (words, _) = value.as_chunks();
        if words.len() != 1 + 2 * HOOKS.len() {
            return Err(Error::Unavailable(format!(
                "latency: the programs are those of another version; remove {} to detach them",
                LATENCY.pins
            )));
        }
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    fn write(&self, words: Vec<u64>) -> Result<(), Error> {
        let value: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        let set = self.latency.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY);
        set.map_err(|cause| cannot("set the delays", cause))
    }
}

/// Whether programs may loop so. Asked of kprobes, for libbpf cannot ask it of LSM programs, which have the same helpers.
fn has_bpf_loop() -> bool {
    // SAFETY: no options are given.
    unsafe { libbpf_sys::libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, std::ptr::null()) == 1 }
}

fn cannot(what: &str, cause: libbpf_rs::Error) -> Error {
    Error::Unavailable(format!("latency: cannot {what}: {cause}"))
}

/// The programs' variable: whether only chosen tasks are delayed, then the delays in the order of the hooks.
fn layout(limited: u64, delays: &Delays) -> Result<Vec<u64>, Error> {
    if let Some(name) = delays.keys().find(|name| tollgate_abi::hook(name).is_none()) {
        return Err(Error::Unavailable(format!("latency: {name:?} is no LSM hook that programs can be attached to")));
    }
    let none = Delay::default();
    let delays = HOOKS.iter().map(|hook| delays.get(hook.name).unwrap_or(&none));
    Ok([limited].into_iter().chain(delays.flat_map(|delay| [delay.units, delay.nanoseconds])).collect())
}

/// The least that a call of getpgid costs, which passes one hook once.
#[must_use]
pub fn cost(counter: Counter) -> f64 {
    let now = || match counter {
        Counter::Instructions => ticks(),
        Counter::Wall => nanoseconds(),
    };
    // SAFETY: both calls have no preconditions.
    let own = unsafe { libc::getpid() };
    let costs = (0..SAMPLES).map(|_| {
        let start = now();
        // SAFETY: it has no preconditions.
        unsafe { libc::getpgid(own) };
        now() - start
    });
    costs.min().unwrap_or_default() as f64
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
    fn lays_delays_out_in_the_order_of_the_hooks() {
        let delays = Delays::from([(HOOKS[2].name.to_owned(), Delay { units: 7, nanoseconds: 9 })]);
        let words = layout(1, &delays).unwrap();
        assert_eq!(words.len(), 1 + 2 * HOOKS.len());
        assert_eq!(words[..8], [1, 0, 0, 0, 0, 7, 9, 0]);
        assert!(layout(0, &Delays::from([("file_opening".to_owned(), Delay::default())])).is_err());
    }

    #[test]
    fn tells_floor_first_and_further_units_apart() {
        let attached = vec![(0, 520.0), (1, 568.0), (10, 757.0), (100, 2647.0), (1000, 21547.0)];
        let calibration = Calibration { unit: "instructions".into(), detached: 300.0, attached };
        assert_eq!((calibration.floor(), calibration.first(), calibration.further()), (220.0, 48.0, 21.0));
    }
}
