//! What libbpf says, the verifier's log above all: it is logged, and an error carries what was said on the way to it.

use std::{
    mem,
    sync::{Mutex, PoisonError},
};

use libbpf_rs::{PrintLevel, set_print};
use tracing::{Level, debug, enabled, warn};

/// Logs what libbpf says from now on: its warnings as such, all else as details.
pub fn log() {
    set_print(Some((wanted(), pass_on)));
}

/// The result of `work`, and what libbpf said meanwhile of what may be wrong. It is logged as details only: where the work
/// fails, the error has it.
pub fn listen<T>(work: impl FnOnce() -> T) -> (T, String) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = set_print(Some((wanted(), keep)));
    let result = work();
    set_print(before);
    (result, mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// What libbpf has said since somebody listens.
static SAID: Mutex<String> = Mutex::new(String::new());

/// libbpf makes texts of what is wanted only.
fn wanted() -> PrintLevel {
    if enabled!(Level::DEBUG) { PrintLevel::Debug } else { PrintLevel::Warn }
}

fn pass_on(level: PrintLevel, text: String) {
    match level {
        PrintLevel::Warn => warn!("{}", text.trim_end()),
        PrintLevel::Info | PrintLevel::Debug => debug!("{}", text.trim_end()),
    }
}

fn keep(level: PrintLevel, text: String) {
    debug!("{}", text.trim_end());
    if level == PrintLevel::Warn {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }
}
