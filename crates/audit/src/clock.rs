//! Times as people read and write them: in local time with its offset, or in UTC.

use std::{
    mem::MaybeUninit,
    time::{SystemTime, UNIX_EPOCH},
};

use super::avc;

/// The time zone of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zone {
    /// The machine's time zone (`/etc/localtime`, `TZ`).
    #[default]
    Local,
    /// Universal time.
    Utc,
}

impl Zone {
    /// How many seconds this zone is ahead of UTC at `time`, which is in seconds since 1970.
    fn offset(self, time: i64) -> i64 {
        if self == Self::Utc {
            return 0;
        }
        let mut parts = MaybeUninit::<libc::tm>::uninit();
        // SAFETY: both places are of the types that the call wants, and it keeps neither.
        let known = unsafe { libc::localtime_r(&raw const time, parts.as_mut_ptr()) };
        // SAFETY: localtime_r has written the parts if it did not return null.
        if known.is_null() { 0 } else { unsafe { parts.assume_init() }.tm_gmtoff }
    }
}

/// The text of a time in milliseconds since 1970: `2026-11-21T09:00:01.234+01:00` or `2026-11-21T08:00:01.234Z`.
#[must_use]
pub fn text(time: u64, zone: Zone) -> String {
    let offset = zone.offset(i64::try_from(time / 1000).unwrap_or(i64::MAX));
    if offset == 0 {
        return avc::time::text(time);
    }
    let shifted = avc::time::text(time.saturating_add_signed(offset * 1000));
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
    format!("{}{sign}{:02}:{:02}", shifted.trim_end_matches('Z'), minutes / 60, minutes % 60)
}

/// The time that a text means, in milliseconds since 1970. A text with an offset or `Z` (as [`text()`] writes it) names
/// its zone; any other is in `zone`. `None`: the text is not a time, or is one before 1970.
#[must_use]
pub fn parse(text: &str, zone: Zone) -> Option<u64> {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    let (plain, written) = match split(text) {
        Some((plain, offset)) => (plain, Some(offset)),
        None => (text, text.ends_with('Z').then_some(0)),
    };
    let time = seconds(humantime::parse_rfc3339_weak(plain).ok()?)?;
    let as_utc = i64::try_from(time.as_secs()).ok()?;
    // The offset is computed twice because the first one is that of another moment. Near a change of the clocks the
    // two differ.
    let offset = written.unwrap_or_else(|| zone.offset(as_utc - zone.offset(as_utc)));
    u64::try_from((as_utc - offset) * 1000 + i64::from(time.subsec_millis())).ok()
}

/// Splits off the offset, such as `+01:00`, and returns it in seconds.
fn split(text: &str) -> Option<(&str, i64)> {
    let (plain, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = match offset.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?;
    Some((plain, sign * (number(hours)? * 3600 + number(minutes)? * 60)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_with_an_offset() {
        for (text, expected) in [
            ("1970-01-01T01:00:02+01:00", Some(2000)),
            ("1970-01-01T01:00:02.5+01:00", Some(2500)),
            ("1969-12-31T19:00:02.250-05:00", None),
            ("1970-01-01T00:00:02Z", Some(2000)),
            ("1970-01-02 00:00:00Z", Some(86_400_000)),
            ("1970-01-01T00:00:02+1:000", None),
            ("+01:00", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(parse(text, Zone::Utc), expected, "{text}");
        }
        assert_eq!(parse("1970-01-02 00:00:00", Zone::Utc), Some(86_400_000));
    }

    #[test]
    fn reads_what_it_writes() {
        for time in [86_400_000, 1_700_000_001_234, 1_720_000_001_234] {
            for zone in [Zone::Local, Zone::Utc] {
                let text = text(time, zone);
                assert_eq!(parse(&text, Zone::Utc), Some(time), "{text}");
            }
        }
        assert_eq!(text(1_700_000_001_234, Zone::Utc), "2023-11-14T22:13:21.234Z");
    }
}
