//! Points in time, in whole seconds.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The last second of the year 9999, behind which dates have another form.
const LAST: u64 = 253_402_300_799;

/// Seconds since 1970, in documents as `2026-11-27T12:34:56Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The time of so many seconds after the beginning of 1970.
    #[must_use]
    pub fn of_seconds(seconds: u64) -> Self {
        Self(seconds.min(LAST))
    }

    /// What this machine's clock says.
    #[must_use]
    pub fn now() -> Self {
        Self::of_seconds(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0
    }

    /// The time so much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self::of_seconds(self.0.saturating_add(duration.as_secs()))
    }

    /// How long ago `earlier` was; zero if it is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(self.0)))
    }
}

/// A text that is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no time: it is written as 2026-11-27T12:34:56Z")]
pub struct NoTime;

impl FromStr for Time {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        let time = humantime::parse_rfc3339(text).map_err(|_| NoTime)?;
        let time = Self::of_seconds(time.duration_since(UNIX_EPOCH).map_err(|_| NoTime)?.as_secs());
        // One time is written in one way.
        if time.to_string() == text { Ok(time) } else { Err(NoTime) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_in_one_form_only() {
        let time = Time::of_seconds(1_795_782_896);
        assert_eq!(time.to_string(), "2026-11-27T12:34:56Z");
        assert_eq!(time.to_string().parse(), Ok(time));
        assert_eq!(Time::of_seconds(u64::MAX).to_string().parse(), Ok(Time::of_seconds(LAST)));
        for other in ["2026-11-27T12:34:56.0Z", "2026-11-27 12:34:56Z", "2026-11-27T12:34:56+00:00", "1795783", ""] {
            assert_eq!(other.parse::<Time>(), Err(NoTime), "{other}");
        }
        assert_eq!(time.after(Duration::from_secs(4)).since(time), Duration::from_secs(4));
        assert_eq!(time.since(time.after(Duration::from_secs(4))), Duration::ZERO);
    }
}
