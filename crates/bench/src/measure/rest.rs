//! Lets the kernel finish what an operation left behind.

use crate::counter::{pass_time, ticks};

/// How many interrupts are waited for: an RCU grace period takes two or three timer ticks on a quiet machine, the callbacks
/// run at the next, and work that they queue runs before the one after that.
const INTERRUPTS: u32 = 8;

/// The instructions of [`pass_time`].
const STRETCH: u64 = 2048;

/// Without interference, a stretch takes little more than its own instructions; a timer tick runs thousands.
const INTERRUPTED: u64 = STRETCH + 1024;

/// The wait gives up after this many instructions without an interrupt: 25 ticks of 4 ms.
const MAX_INSTRUCTIONS: u64 = 100_000_000;

/// Spins in user space, which RCU counts as a quiescent state, and returns just after a timer tick, so that the next one is a
/// whole period away.
pub(crate) fn rest() {
    spin(|| {
        pass_time();
        ticks()
    });
}

/// `stretch` passes some time and returns the time.
fn spin(mut stretch: impl FnMut() -> u64) {
    let start = stretch();
    let mut last = start;
    let mut interrupts = 0;
    while interrupts < INTERRUPTS && last - start < MAX_INSTRUCTIONS {
        let now = stretch();
        if now - last > INTERRUPTED {
            interrupts += 1;
        }
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4_000_000;
    /// No kernel has a shorter tick.
    const TICK_LASTS: u64 = 1500;

    /// Spins on a clock with one tick per period, and returns the time and the end of the last tick.
    fn spin_with_ticks(period: u64) -> (u64, u64) {
        let (mut now, mut tick, mut tick_end) = (0, period, 0);
        spin(|| {
            now += STRETCH + 12;
            if now >= tick {
                tick += period;
                now += TICK_LASTS;
                tick_end = now;
            }
            now
        });
        (now, tick_end)
    }

    #[test]
    fn returns_just_after_the_last_of_the_interrupts() {
        let (now, tick_end) = spin_with_ticks(TICK);
        assert_eq!(now, tick_end);
        assert!((8 * TICK..8 * TICK + 100_000).contains(&now), "{now}");
    }

    #[test]
    fn returns_though_no_interrupt_comes() {
        let (now, _) = spin_with_ticks(u64::MAX);
        assert!((MAX_INSTRUCTIONS..MAX_INSTRUCTIONS + 10_000).contains(&now), "{now}");
    }
}
