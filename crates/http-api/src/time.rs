//! Formatting and parsing of times for JSON and HTTP headers.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use httpdate::HttpDate;

/// Appends `2026-03-21T12:00:00.000Z` (RFC 3339), from milliseconds since 1970-01-01 UTC. Times after the
/// year 262142, which no clock shows, are the last moment of that year.
pub fn push_rfc3339(out: &mut Vec<u8>, unix_ms: u64) {
    let moment = i64::try_from(unix_ms)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    let moment = moment.unwrap_or(DateTime::<Utc>::MAX_UTC);
    let text = moment.to_rfc3339_opts(SecondsFormat::Millis, true);
    out.extend_from_slice(text.as_bytes());
}

/// Appends `Sat, 21 Mar 2026 12:00:00 GMT` (RFC 9110, IMF-fixdate), from seconds since 1970-01-01 UTC.
pub fn push_http_date(out: &mut Vec<u8>, unix_s: u64) {
    /// 9999-12-31T23:59:59Z: the format has four digits for the year.
    const LAST_S: u64 = 253_402_300_799;
    let moment = UNIX_EPOCH + Duration::from_secs(unix_s.min(LAST_S));
    // Writing to a Vec does not fail.
    let _ = write!(out, "{}", HttpDate::from(moment));
}

/// Milliseconds since 1970-01-01 UTC of an RFC 3339 time with any offset and any number of digits
/// behind the second; `None` for other texts and for times before 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let moment = DateTime::parse_from_rfc3339(text).ok()?;
    u64::try_from(moment.timestamp_millis()).ok()
}

/// Days since 1970-01-01 of a date like `2026-03-21`; `None` for other texts and for dates before
/// 1970.
pub fn parse_date(text: &str) -> Option<u32> {
    let is_short = text.len() == "2026-03-21".len();
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    u32::try_from(date.filter(|_| is_short)?.to_epoch_days()).ok()
}

/// Formats a date like `2026-03-21`, from days since 1970-01-01. Dates after the year 262142, which
/// no clock shows, are the last day of that year.
pub fn date_of_day(day: u32) -> String {
    let date = i32::try_from(day).ok().and_then(NaiveDate::from_epoch_days);
    date.unwrap_or(NaiveDate::MAX)
        .format("%Y-%m-%d")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_times_are_formatted_and_parsed() {
        for (unix_ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096_007, "2024-02-29T12:34:56.007Z"),
        ] {
            let mut out = Vec::new();
            push_rfc3339(&mut out, unix_ms);
            assert_eq!(out, expected.as_bytes());
            assert_eq!(parse_rfc3339(expected), Some(unix_ms));
        }
        assert_eq!(parse_rfc3339("1970-01-01T00:00:01Z"), Some(1_000));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:01.25Z"), Some(1_250));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.0019Z"), Some(1));
        assert_eq!(parse_rfc3339("1970-01-01T02:00:01+02:00"), Some(1_000));
    }

    #[test]
    fn dates_are_formatted_and_parsed() {
        for (day, date) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (20_785, "2026-11-28"),
        ] {
            assert_eq!(date_of_day(day), date);
            assert_eq!(parse_date(date), Some(day));
        }
        for text in [
            "",
            "1969-12-31",
            "2026-11-31",
            "2026-1-2",
            "2026-11-28T00:00:00Z",
            "+026-11-28",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn invalid_rfc_3339_times_are_refused() {
        for text in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1969-12-31T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2023-13-01T00:00:00Z",
            "2023-00-01T00:00:00Z",
            "2023-04-31T00:00:00Z",
            "2023-04-00T00:00:00Z",
            "2023-04-01T24:00:00Z",
            "2023-04-01T00:60:00Z",
            "2023-04-01T00:00:00.Z",
            "2023-04-01T00:00:00.xZ",
            "2023-4-01T00:00:00Z",
            "2023-04-01-01T00:00:00Z",
            "2023-04-01T+1:00:00Z",
            "2023-04-01T00:00:00.é€Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn http_dates_are_formatted_as_in_the_rfc() {
        let mut out = Vec::new();
        push_http_date(&mut out, 784_111_777);
        assert_eq!(out, b"Sun, 06 Nov 1994 08:49:37 GMT");
    }

    proptest::proptest! {
        #[test]
        fn formatted_times_round_trip(unix_ms in 0_u64..253_402_300_800_000) {
            let mut out = Vec::new();
            push_rfc3339(&mut out, unix_ms);
            let text = std::str::from_utf8(&out).unwrap();
            proptest::prop_assert_eq!(parse_rfc3339(text), Some(unix_ms));
        }
    }
}
