//! Limits how many guests run at a time, whatever the number of test threads; chooses their kernels.

use std::{
    collections::BTreeSet,
    fs,
    sync::{Condvar, LazyLock, Mutex, PoisonError},
    thread,
};

/// The kernels under which enforcement can be tested.
pub(crate) const KNOWN: [&str; 4] = ["6.1", "6.12", "6.18", "7.2"];

/// The kernels on which enforcement is tested.
pub(crate) const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.18"] } else { &["6.1"] };

/// The kernels of a test of attacks: the test's own, or those in TOLLGATE_KERNELS, such as `6.12,7.2`.
pub(crate) fn kernels(said: &[&'static str]) -> Vec<&'static str> {
    let Ok(named) = std::env::var("TOLLGATE_KERNELS") else { return said.to_vec() };
    let known = |name: &str| KNOWN.into_iter().find(|known| *known == name);
    named.split(',').map(|name| known(name).unwrap_or_else(|| panic!("TOLLGATE_KERNELS: {name}"))).collect()
}

/// The memory of a guest, in MiB: most have 1024, and QEMU itself needs some.
const GUEST_MIB: u64 = 1300;

/// Places for guests: two per processor, because guests wait a third of their time, and no more than free memory allows.
fn places() -> u32 {
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next());
    places_of(processors, available.and_then(|kilobytes| kilobytes.parse().ok()))
}

/// At least as many as one test takes at once.
fn places_of(processors: u64, available_kib: Option<u64>) -> u32 {
    let fit = available_kib.map_or(u64::MAX, |kilobytes| kilobytes / 1024 / GUEST_MIB);
    u32::try_from((2 * processors).min(fit).max(3)).unwrap_or(u32::MAX)
}

/// Tests with the longest guests, which get places first, so that no other test waits for them at the end.
const LONGEST_GUESTS: [&str; 11] = [
    "guests::measures_every_known_configuration",
    "scenarios::",
    "enforcer_labels::",
    "attacks::recovery::",
    "enforcer_revocation::",
    "flask::",
    "attacks::enforcement::",
    "debian::",
    "enforcer_labelling::",
    "attacks::shares::",
    "learn::",
];

/// A waiting test: those in the list above first, then in the order in which they came.
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

/// Places that are occupied until this is dropped.
pub(crate) struct Taken(u32);

/// Waits for places and takes all of them at once, because two tests that each have one of two would wait for ever. A test
/// that needs two is not overtaken by tests that need one.
pub(crate) fn take(wanted: u32) -> Taken {
    let current = thread::current();
    let test = current.name().unwrap_or_default();
    let longest = LONGEST_GUESTS.iter().position(|prefix| test.starts_with(prefix)).unwrap_or(LONGEST_GUESTS.len());
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
        // A failed test does no harm: the count is right at any time.
        PLACES.lock().unwrap_or_else(PoisonError::into_inner).free += self.0;
        CHANGED.notify_all();
    }
}

#[test]
fn has_places_for_guests_by_processors_and_memory() {
    assert_eq!(places_of(2, Some(24 << 20)), 4);
    assert_eq!(places_of(16, Some(64 << 20)), 32);
    assert_eq!(places_of(16, Some(4 << 20)), 3);
    assert_eq!(places_of(1, Some(1 << 20)), 3);
    assert_eq!(places_of(4, None), 8);
}
