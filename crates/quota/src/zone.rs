//! Time zones of budgets: fixed offsets, and those of the IANA database.
//!
//! The database is compiled in, so that every node of a version agrees on it and nothing is read
//! from the machine.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::calendar::Every;

/// Maximum offset from UTC in either direction, in seconds.
pub const OFFSET_MAX_S: i32 = 18 * 3600;

const DAY_S: i64 = 86_400;
/// Distance from UTC midnight within which every zone's midnight lies, in seconds.
const SEARCH_S: i64 = 26 * 3600;

/// The time zone of a budget's calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// A fixed offset in seconds ahead of UTC.
    Fixed(i32),
    /// A zone of the IANA database; its days have 23 or 25 hours when the clock is changed.
    Named(Tz),
    /// A named zone in a form for a store without the database: the offset of the current period,
    /// and the offset at the start of the next one.
    Changing {
        /// The offset in the current period.
        offset_s: i32,
        /// The offset at the start of the next period.
        next_offset_s: i32,
    },
}

/// A text that names no time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time zone: use UTC, an offset such as +02:00, or a name such as Europe/Berlin")]
pub struct ZoneError;

impl Zone {
    /// The zone without an offset.
    pub const UTC: Self = Self::Fixed(0);

    /// Parses `UTC`, `+02:00`, `-05:30` or `Europe/Berlin`.
    pub fn parse(text: &str) -> Result<Self, ZoneError> {
        if matches!(text, "UTC" | "Z") {
            return Ok(Self::UTC);
        }
        let (sign, rest) = match text.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return Tz::from_str(text).map(Self::Named).map_err(|_| ZoneError),
        };
        let (hours, minutes) = rest.split_once(':').ok_or(ZoneError)?;
        let read = |text: &str, below: i32| {
            let number = text.parse::<u8>().ok().filter(|_| text.len() == 2);
            let number = number.map(i32::from).filter(|number| *number < below);
            number.ok_or(ZoneError)
        };
        Ok(Self::Fixed(
            sign * (read(hours, 19)? * 3_600 + read(minutes, 60)? * 60),
        ))
    }

    /// Returns whether the offset is within [`OFFSET_MAX_S`].
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Fixed(offset_s) => (-OFFSET_MAX_S..=OFFSET_MAX_S).contains(&offset_s),
            Self::Named(_) | Self::Changing { .. } => true,
        }
    }

    /// Returns the offset from UTC at a moment, in seconds, for periods of that kind. For minutes
    /// and hours of a named zone, only the part of the offset below a whole hour counts, so that no
    /// period is repeated or skipped.
    pub(crate) fn offset_s(self, every: Every, utc_s: i64) -> i32 {
        match (self, every) {
            (Self::Fixed(offset_s) | Self::Changing { offset_s, .. }, _) => offset_s,
            (Self::Named(tz), Every::Minute | Every::Hour) => {
                offset_at(tz, utc_s).rem_euclid(3_600)
            }
            (Self::Named(tz), _) => offset_at(tz, utc_s),
        }
    }

    /// Returns the moment, in seconds of UTC, at which the local clock shows `local_s` and a period
    /// of that kind begins.
    pub(crate) fn begin_s(self, every: Every, local_s: i64) -> i64 {
        match (self, every) {
            (Self::Fixed(offset_s), _) => local_s - i64::from(offset_s),
            (Self::Changing { next_offset_s, .. }, _) => local_s - i64::from(next_offset_s),
            (Self::Named(_), Every::Minute | Every::Hour) => {
                local_s - i64::from(self.offset_s(every, local_s))
            }
            (Self::Named(tz), _) => day_begin_s(tz, local_s.div_euclid(DAY_S)),
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset_s = match self {
            Self::Named(tz) => return f.write_str(tz.name()),
            Self::Fixed(offset_s) | Self::Changing { offset_s, .. } => *offset_s,
        };
        let sign = if offset_s < 0 { '-' } else { '+' };
        let minutes = offset_s.abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

fn offset_at(tz: Tz, utc_s: i64) -> i32 {
    // Every timestamp in 64-bit nanoseconds is a valid date.
    let at = DateTime::from_timestamp(utc_s, 0).unwrap_or_default();
    let offset = tz.offset_from_utc_datetime(&at.naive_utc());
    offset.fix().local_minus_utc()
}

/// Returns the first second of a local date: midnight, or later if the clock skips midnight.
fn day_begin_s(tz: Tz, day: i64) -> i64 {
    let local_day = |utc_s: i64| (utc_s + i64::from(offset_at(tz, utc_s))).div_euclid(DAY_S);
    let midnight_s = day * DAY_S;
    let about_s = midnight_s - i64::from(offset_at(tz, midnight_s));
    let guess_s = midnight_s - i64::from(offset_at(tz, about_s));
    if local_day(guess_s) >= day && local_day(guess_s - 1) < day {
        return guess_s;
    }
    let (mut before_s, mut from_s) = (midnight_s - SEARCH_S, midnight_s + SEARCH_S);
    while from_s - before_s > 1 {
        let middle_s = before_s + (from_s - before_s) / 2;
        match local_day(middle_s) >= day {
            true => from_s = middle_s,
            false => before_s = middle_s,
        }
    }
    from_s
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: i64 = 3_600;

    #[test]
    fn zones_are_read_and_shown_as_written() {
        for text in ["+02:00", "-05:30", "Europe/Berlin", "America/Sao_Paulo"] {
            assert_eq!(Zone::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Zone::parse("UTC"), Ok(Zone::UTC));
        for text in ["", "Berlin", "europe/berlin", "+2:00", "+19:00", "+02:60"] {
            assert_eq!(Zone::parse(text), Err(ZoneError), "{text}");
        }
    }

    fn day_hours(zone: &str, day: u64) -> i64 {
        let zone = Zone::parse(zone).unwrap();
        let begin_s = |day| zone.begin_s(Every::Day, day as i64 * DAY_S);
        (begin_s(day + 1) - begin_s(day)) / HOUR_S
    }

    #[test]
    fn days_have_23_or_25_hours_when_the_clock_is_changed() {
        let day = |year, month, day| crate::calendar::day_of_date(year, month, day).unwrap();
        for (date, hours) in [
            (day(2026, 3, 28), 24),
            (day(2026, 3, 29), 23),
            (day(2026, 10, 25), 25),
            (day(2026, 10, 26), 24),
        ] {
            assert_eq!(day_hours("Europe/Berlin", date), hours, "{date}");
        }
        // At midnight the clock went to one in the morning: the day began an hour later.
        assert_eq!(day_hours("America/Sao_Paulo", day(2018, 11, 4)), 23);
        assert_eq!(day_hours("America/Sao_Paulo", day(2018, 2, 17)), 25);
    }
}
