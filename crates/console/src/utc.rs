//! Formats timestamps.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};

/// Returns the seconds since 1970-01-01 UTC; 0 if the clock is before that.
pub fn now_s() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a one-shot command has no injected clock"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Formats seconds since 1970-01-01 UTC as RFC 3339: `2026-03-21T12:00:00Z`.
pub fn format(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).ok();
    let moment = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let moment = moment.unwrap_or(DateTime::<Utc>::MAX_UTC);
    moment.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_follow_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(format(seconds), text);
        }
    }
}
