//! Parses and prints durations such as `5s`, `100ms` and `1m`.

use std::time::Duration;

/// The error of a text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a duration: write a whole number with ns, us, ms, s, m (or min), h or d, like 100ms"
)]
pub struct DurationError {
    /// The given text.
    pub text: String,
}

/// Units that are accepted but never printed, and their nanoseconds.
const READ_UNITS: [(&str, u64); 2] = [("d", 86_400_000_000_000), ("min", 60_000_000_000)];

/// Units and their nanoseconds, in an order in which no unit's text ends in an earlier one's.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

/// Parses a whole number with its unit, up to 584 years.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError {
        text: text.to_owned(),
    };
    let units = READ_UNITS.iter().chain(&UNITS);
    let (digits, unit_ns) = units
        .into_iter()
        .find_map(|(unit, unit_ns)| Some((text.trim().strip_suffix(unit)?, *unit_ns)))
        .ok_or_else(error)?;
    let count: u64 = digits.trim_end().parse().map_err(|_| error())?;
    count
        .checked_mul(unit_ns)
        .map(Duration::from_nanos)
        .ok_or_else(error)
}

/// Returns the shortest text that [`parse`] reads back; a duration above 584 years is cut to that.
pub fn print(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (unit, unit_ns) = UNITS
        .into_iter()
        .filter(|(_, unit_ns)| nanos != 0 && nanos.is_multiple_of(*unit_ns))
        .max_by_key(|(_, unit_ns)| *unit_ns)
        .unwrap_or(("s", 1_000_000_000));
    format!("{}{unit}", nanos / unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_durations_parse_back() {
        for text in [
            "0s", "100ms", "5s", "90s", "1m", "2h", "250us", "1ns", "1500ms",
        ] {
            assert_eq!(print(parse(text).unwrap()), text);
        }
        for (text, printed) in [
            ("60 s", "1m"),
            ("3min", "3m"),
            ("2d", "48h"),
            ("1 d", "24h"),
        ] {
            assert_eq!(print(parse(text).unwrap()), printed);
        }
    }

    #[test]
    fn a_number_without_a_unit_and_nonsense_are_refused() {
        for text in [
            "",
            "5",
            "s",
            "-1s",
            "1.5s",
            "5 parsecs",
            "99999999999999999999s",
            "9999999h",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
