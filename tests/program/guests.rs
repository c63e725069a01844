//! Which guests the tests run: how many at a time, whatever the number of test threads; with which kernels.

use std::{
    collections::BTreeSet,
    fs,
    sync::{Condvar, LazyLock, Mutex, PoisonError},
    thread,
};

/// The kernels on which enforcement is tested.
pub(crate) const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.18"] } else { &["6.1"] };

/// The kernels of a test of attacks: those that it says, or those that TOLLGATE_KERNELS names, such as `6.12,7.2`.
pub(crate) fn kernels(said: &[&'static str]) -> Vec<&'static str> {
    const KNOWN: [&str; 4] = ["6.1", "6.12", "6.18", "7.2"];
    let Ok(named) = std::env::var("TOLLGATE_KERNELS") else { return said.to_vec() };
    let known = |name: &str| KNOWN.into_iter().find(|known| *known == name);
    named.split(',').map(|name| known(name).unwrap_or_else(|| panic!("TOLLGATE_KERNELS: {name}"))).collect()
}

/// What a guest takes of memory, in MiB: most are of 1024, and QEMU needs some itself.
const GUEST_MIB: u64 = 1300;

/// Places for guests: one more than processors are, for guests wait now and then, and no more than memory is free for.
fn places() -> u32 {
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next());
    places_of(processors, available.and_then(|kilobytes| kilobytes.parse().ok()))
}

/// At least as many as a test takes at once.
fn places_of(processors: u64, available_kib: Option<u64>) -> u32 {
    let fit = available_kib.map_or(u64::MAX, |kilobytes| kilobytes / 1024 / GUEST_MIB);
    u32::try_from((processors + 1).min(fit).max(2)).unwrap_or(u32::MAX)
}

/// Tests whose guests take longest, which get places first: what is begun last is waited for by all.
const LONGEST: [&str; 7] =
    ["scenarios::", "enforcer_labels::", "debian::", "flask::", "enforcer_labelling::", "learn::", "attacks::shares::"];

/// Who waits for places: those in the list above first, then in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    longest: usize,
    came: u32,
}

struct Places {
    free: u32,
    came: u32,
    waiting: BTreeSet<Turn>,
}

static PLACES: LazyLock<Mutex<Places>> =
    LazyLock::new(|| Places { free: places(), came: 0, waiting: BTreeSet::new() }.into());
static CHANGED: Condvar = Condvar::new();

/// Places that are taken until this is dropped.
pub(crate) struct Taken(u32);

/// Waits for places and takes them, all at once: two tests that each have one of two would wait for ever. Whoever wants two
/// is not overtaken by those who want one.
pub(crate) fn take(wanted: u32) -> Taken {
    let current = thread::current();
    let test = current.name().unwrap_or_default();
    let longest = LONGEST.iter().position(|prefix| test.starts_with(prefix)).unwrap_or(LONGEST.len());
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.came += 1;
    let turn = Turn { longest, came: places.came };
    places.waiting.insert(turn);
    let waits = |places: &mut Places| places.waiting.first() != Some(&turn) || places.free < wanted;
    let mut places = CHANGED.wait_while(places, waits).unwrap_or_else(PoisonError::into_inner);
    places.waiting.remove(&turn);
    places.free -= wanted;
    CHANGED.notify_all();
    Taken(wanted)
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A failed test poisons nothing: the count is right at any time.
        PLACES.lock().unwrap_or_else(PoisonError::into_inner).free += self.0;
        CHANGED.notify_all();
    }
}

#[test]
fn has_places_for_guests_by_processors_and_memory() {
    assert_eq!(places_of(2, Some(24 << 20)), 3);
    assert_eq!(places_of(16, Some(64 << 20)), 17);
    assert_eq!(places_of(16, Some(4 << 20)), 3);
    assert_eq!(places_of(1, Some(1 << 20)), 2);
    assert_eq!(places_of(4, None), 5);
}
