//! Which guests the tests run: how many at a time, whatever the number of test threads; with which kernels.

use std::sync::{Condvar, Mutex, PoisonError};

/// The kernels on which enforcement is tested.
pub(crate) const KERNELS: &[&str] = if cfg!(feature = "long") { &["6.1", "6.18"] } else { &["6.1"] };

/// The kernels of a test of attacks: those that it says, or those that TOLLGATE_KERNELS names, such as `6.12,7.2`.
pub(crate) fn kernels(said: &[&'static str]) -> Vec<&'static str> {
    const KNOWN: [&str; 4] = ["6.1", "6.12", "6.18", "7.2"];
    let Ok(named) = std::env::var("TOLLGATE_KERNELS") else { return said.to_vec() };
    let known = |name: &str| KNOWN.into_iter().find(|known| *known == name);
    named.split(',').map(|name| known(name).unwrap_or_else(|| panic!("TOLLGATE_KERNELS: {name}"))).collect()
}

/// Places for guests: one more than two processors are, for guests wait now and then. Most take 1 GiB of memory.
const PLACES: u32 = 3;

static FREE: Mutex<u32> = Mutex::new(PLACES);
static FREED: Condvar = Condvar::new();
/// Who is next: whoever wants two places waits until they are free, and is not overtaken by those who want one.
static NEXT: Mutex<()> = Mutex::new(());

/// Places that are taken until this is dropped.
pub(crate) struct Taken(u32);

/// Waits for places and takes them, all at once: two tests that each have one of two would wait for ever.
pub(crate) fn take(wanted: u32) -> Taken {
    let _next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut free = FREED.wait_while(free, |free| *free < wanted).unwrap_or_else(PoisonError::into_inner);
    *free -= wanted;
    Taken(wanted)
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A failed test poisons nothing: the count is right at any time.
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        FREED.notify_all();
    }
}
