//! Moments as JSON has them.

use std::io::Write;

use model::{date_of_day, day_of_date};

/// Appends `2026-03-21T12:00:00.000Z` (RFC 3339), from milliseconds since 1970-01-01 UTC.
pub(super) fn push_rfc3339(out: &mut Vec<u8>, unix_ms: u64) {
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date_of_day(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // A Vec takes everything that is written to it.
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
    );
}

/// Appends `Sat, 21 Mar 2026 12:00:00 GMT` (RFC 9110, IMF-fixdate), from seconds since 1970-01-01 UTC.
pub(super) fn push_http_date(out: &mut Vec<u8>, unix_s: u64) {
    // 1970-01-01 was a Thursday.
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = date_of_day(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (name, month) = (DAYS[(days % 7) as usize], MONTHS[(month - 1) as usize]);
    // A Vec takes everything that is written to it.
    let _ = write!(
        out,
        "{name}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
    );
}

/// Milliseconds since 1970-01-01 UTC of a moment as [`push_rfc3339`] writes it, with any number of
/// digits behind the second, or none; `None` for anything else.
pub(super) fn parse_rfc3339(text: &str) -> Option<u64> {
    let (date, rest) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !is_time || !digits || fraction.is_empty() {
        return None;
    }
    let days = day_of_date(year, month, day)?;
    let ms = format!("{:0<3.3}", fraction).parse::<u64>().ok()?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

/// Three numbers of so many digits.
fn numbers(text: &str, between: char, sizes: [usize; 3]) -> Option<[u64; 3]> {
    let mut pieces = text.split(between);
    let mut read = [0; 3];
    for (number, size) in read.iter_mut().zip(sizes) {
        let piece = pieces.next()?;
        let is_whole = piece.len() == size && piece.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_whole.then(|| piece.parse().ok()).flatten()?;
    }
    pieces.next().is_none().then_some(read)
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
            assert_eq!(parse_rfc3339(expected), Some(unix_ms));
        }
        assert_eq!(parse_rfc3339("1970-01-01T00:00:01Z"), Some(1_000));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:01.25Z"), Some(1_250));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.0019Z"), Some(1));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
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
    fn a_date_of_a_field_is_as_the_rfc_writes_it() {
        let mut out = Vec::new();
        push_http_date(&mut out, 784_111_777);
        assert_eq!(out, b"Sun, 06 Nov 1994 08:49:37 GMT");
    }

    proptest::proptest! {
        #[test]
        fn a_moment_is_read_back(unix_ms in 0_u64..253_402_300_800_000) {
            let mut out = Vec::new();
            push_rfc3339(&mut out, unix_ms);
            let text = std::str::from_utf8(&out).unwrap();
            proptest::prop_assert_eq!(parse_rfc3339(text), Some(unix_ms));
        }
    }
}
