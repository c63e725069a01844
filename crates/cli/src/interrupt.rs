//! Ctrl-C and SIGTERM: a flag that every long loop looks at; the second one ends the program at once.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag::{register, register_conditional_shutdown},
};

/// The exit status of a program that the user has stopped: 128 and SIGINT, as shells have it.
pub(crate) const STATUS: u8 = 130;

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether a signal has come.
pub(crate) fn came() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// The flag, set once a signal has come.
pub(crate) fn flag() -> anyhow::Result<&'static AtomicBool> {
    if let Some(flag) = FLAG.get() {
        return Ok(flag);
    }
    let flag = FLAG.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal only sets the flag, the second finds it set and exits.
        register_conditional_shutdown(signal, STATUS.into(), Arc::clone(flag))?;
        register(signal, Arc::clone(flag))?;
    }
    Ok(flag)
}
