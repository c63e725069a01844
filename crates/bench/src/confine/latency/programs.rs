//! BPF programs of tunable latency (`bpf/latency.bpf.c`), attached, with their delays in a map.

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    path::Path,
};

use libbpf_rs::{
    MapCore, MapFlags, MapHandle,
    libbpf_sys::{self, BPF_FUNC_loop, BPF_PROG_TYPE_KPROBE},
};
use tollgate_abi::HOOKS;

use super::{Delay, Delays};
use crate::{
    Error,
    confine::bpf::{self, Pinned, Programs},
};

const LATENCY: Programs = Programs {
    object: include_bytes!(concat!(env!("OUT_DIR"), "/latency.bpf.o")),
    what: "programs of tunable latency",
    pins: "/sys/fs/bpf/tollgate-latency",
    maps: &[(".data.latency", "latency"), ("chosen", "chosen")],
};

/// Attached programs. Dropping the value of [`Attached::new`] detaches them.
#[derive(Debug)]
pub(super) struct Attached {
    latency: MapHandle,
    chosen: MapHandle,
    pinned: Option<Pinned>,
}

impl Attached {
    /// Attaches programs without delays to the hooks and to the calibration's hook; without hooks, to those that the
    /// workloads reach. Returns a description too.
    pub(super) fn new(hooks: &[String], calibrated_on: &str) -> Result<(String, Self), Error> {
        if !has_bpf_loop() {
            return Err(Error::Unavailable(
                "latency: this kernel has no bpf_loop, which a delay is made of; boot Linux 5.17 or newer".to_owned(),
            ));
        }
        let mut hooks = if hooks.is_empty() { bpf::reached()? } else { hooks.to_vec() };
        hooks.push(calibrated_on.to_owned());
        let (verified, pinned) = bpf::attach(LATENCY, &hooks)?;
        Ok((verified, Self { pinned: Some(pinned), ..Self::open()? }))
    }

    /// Programs that are already attached, and stay attached.
    pub(super) fn open() -> Result<Self, Error> {
        let map = |name: &str| {
            let path = Path::new(LATENCY.pins).join(name);
            let cannot =
                |cause| Error::Unavailable(format!("latency: no programs are attached: {}: {cause}", path.display()));
            MapHandle::from_pinned_path(&path).map_err(cannot)
        };
        Ok(Self { latency: map("latency")?, chosen: map("chosen")?, pinned: None })
    }

    /// Leaves the programs attached until [`Attached::detach`].
    pub(super) fn keep(mut self) {
        // Forgetting the value keeps the pins, and leaks only the few bytes of its path.
        if let Some(pinned) = self.pinned.take() {
            std::mem::forget(pinned);
        }
    }

    /// Detaches the programs.
    pub(super) fn detach(mut self) {
        self.pinned.get_or_insert_with(|| Pinned(LATENCY.pins.into()));
    }

    /// Whether a program is attached to the hook.
    pub(super) fn has(hook: &str) -> bool {
        Path::new(LATENCY.pins).join(hook).exists()
    }

    /// Sets the delays of all hooks; the named hooks must have a program.
    pub(super) fn set(&self, delays: &Delays) -> Result<(), Error> {
        if let Some(hook) = delays.keys().find(|hook| !Self::has(hook)) {
            return Err(Error::Unavailable(format!(
                "latency: no program is attached to the hook {hook}; name it when programs are attached"
            )));
        }
        self.write(layout(self.read()?[0], delays)?)
    }

    /// The present delays.
    pub(super) fn delays(&self) -> Result<Delays, Error> {
        let words = self.read()?;
        let delays = words[1..].chunks_exact(2).map(|words| Delay { units: words[0], nanoseconds: words[1] });
        let named = HOOKS.iter().zip(delays).filter(|(_, delay)| *delay != Delay::default());
        Ok(named.map(|(hook, delay)| (hook.name.to_owned(), delay)).collect())
    }

    /// Delays only the tasks of a control group (version 2), and those below it, from now on.
    pub(super) fn limit(&self, group: BorrowedFd<'_>) -> Result<(), Error> {
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

/// Whether programs may use `bpf_loop`. The probe is for kprobes, which have the same helpers, because libbpf cannot probe
/// LSM programs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lays_delays_out_in_the_order_of_the_hooks() {
        let delays = Delays::from([(HOOKS[2].name.to_owned(), Delay { units: 7, nanoseconds: 9 })]);
        let words = layout(1, &delays).unwrap();
        assert_eq!(words.len(), 1 + 2 * HOOKS.len());
        assert_eq!(words[..8], [1, 0, 0, 0, 0, 7, 9, 0]);
        assert!(layout(0, &Delays::from([("file_opening".to_owned(), Delay::default())])).is_err());
    }
}
