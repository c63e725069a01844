//! Times as people read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long ago a time was.
pub(super) fn ago(time: u64) -> String {
    humantime::format_duration(Duration::from_secs(now().saturating_sub(time))).to_string()
}

/// Now, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
