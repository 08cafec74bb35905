//! Moments as JSON has them.

use std::io::Write;

/// Appends `2026-03-21T12:00:00.000Z` (RFC 3339), from milliseconds since 1970-01-01 UTC.
pub(super) fn push_rfc3339(out: &mut Vec<u8>, unix_ms: u64) {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // A Vec takes everything that is written to it.
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
    );
}

/// The Gregorian date of a day since 1970-01-01. Source: Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (unix_ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096_007, "2024-02-29T12:34:56.007Z"),
        ] {
            let mut out = Vec::new();
            push_rfc3339(&mut out, unix_ms);
            assert_eq!(out, expected.as_bytes());
        }
    }
}
