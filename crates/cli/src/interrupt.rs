//! Ctrl-C, SIGTERM and a lost terminal set a flag, which every long loop checks. A second signal ends the program at once.

use std::{
    fs,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag::{register, register_conditional_shutdown},
};

/// The exit status after an interrupt: 128 + SIGINT, as in shells.
pub(crate) const STATUS: u8 = 130;

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether a signal has arrived.
pub(crate) fn came() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// The flag that the first signal sets.
pub(crate) fn flag() -> anyhow::Result<&'static AtomicBool> {
    if let Some(flag) = FLAG.get() {
        return Ok(flag);
    }
    let flag = FLAG.get_or_init(Arc::default);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    // `nohup` makes us ignore SIGHUP; it stays ignored.
    let lost = (!ignores(&status, SIGHUP)).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(lost) {
        // The order matters: the first signal only sets the flag, the second finds it set and exits.
        register_conditional_shutdown(signal, STATUS.into(), Arc::clone(flag))?;
        register(signal, Arc::clone(flag))?;
    }
    Ok(flag)
}

/// Whether a process with this `status` ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_is_ignored() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001002\nSigCgt:\tffffffffffffffff\n";
        assert!(ignores(status, SIGINT) && ignores(status, 13));
        assert!(!ignores(status, SIGHUP) && !ignores("", SIGHUP));
    }
}
