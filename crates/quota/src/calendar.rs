//! Calendar periods of budgets.

use chrono::{Datelike, NaiveDate};

use crate::zone::Zone;

/// The calendar period after which a budget starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// Each minute.
    Minute,
    /// Each hour.
    Hour,
    /// Each day, at midnight.
    Day,
    /// Each week, at midnight before Monday.
    Week,
    /// Each month, at midnight before the first day.
    Month,
    /// Never: the budget is not renewed.
    Never,
}

const SECOND_NS: i128 = 1_000_000_000;
const DAY_S: u64 = 86_400;
/// 1970-01-05 was a Monday.
const MONDAY: u64 = 4;

impl Every {
    /// All periods with the words that name them.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("minute", Self::Minute),
        ("hour", Self::Hour),
        ("day", Self::Day),
        ("week", Self::Week),
        ("month", Self::Month),
        ("never", Self::Never),
    ];

    /// Returns the word that names the period.
    pub fn as_str(self) -> &'static str {
        let word = Self::WORDS.iter().find(|(_, every)| *every == self);
        word.map_or("never", |(word, _)| word)
    }

    /// Returns the number of the period that contains a moment. Numbers grow by one with each
    /// period.
    pub(crate) fn period(self, now_ns: u64, zone: Zone) -> u64 {
        let local_s = self.local_s(now_ns, zone);
        let day = local_s / DAY_S;
        match self {
            Self::Minute => local_s / 60,
            Self::Hour => local_s / 3600,
            Self::Day => day,
            Self::Week => (day + 7 - MONDAY) / 7,
            Self::Month => {
                let date = i32::try_from(day).ok().and_then(NaiveDate::from_epoch_days);
                let date = date.unwrap_or(NaiveDate::MAX);
                date.year() as u64 * 12 + u64::from(date.month0())
            }
            Self::Never => 0,
        }
    }

    /// Returns the start of the period with that number, in nanoseconds since 1970-01-01 UTC;
    /// `None` if there is no such moment.
    pub(crate) fn begin_ns(self, period: u64, zone: Zone) -> Option<u64> {
        let begin_s = zone.begin_s(self, self.local_begin_s(period)?);
        u64::try_from((i128::from(begin_s) * SECOND_NS).max(0)).ok()
    }

    /// Returns the second that the local clock shows at the start of a period.
    fn local_begin_s(self, period: u64) -> Option<i64> {
        let local_s = match self {
            Self::Minute => period.checked_mul(60)?,
            Self::Hour => period.checked_mul(3600)?,
            Self::Day => period.checked_mul(DAY_S)?,
            Self::Week => (period.checked_mul(7)? + MONDAY)
                .checked_sub(7)?
                .checked_mul(DAY_S)?,
            Self::Month => {
                let year = i32::try_from(period / 12).ok()?;
                day_of_date(year, (period % 12) as u32 + 1, 1)?.checked_mul(DAY_S)?
            }
            Self::Never => return None,
        };
        i64::try_from(local_s).ok()
    }

    /// Returns the zone in a form for a store without a time zone database. The result is valid
    /// until the next period begins.
    pub(crate) fn zone_without_database(self, now_ns: u64, zone: Zone) -> Zone {
        let Zone::Named(_) = zone else {
            return zone;
        };
        let offset_s = zone.offset_s(self, (now_ns / 1_000_000_000) as i64);
        let next = self.local_begin_s(self.period(now_ns, zone) + 1);
        let next_offset_s = next.map(|local_s| local_s - zone.begin_s(self, local_s));
        Zone::Changing {
            offset_s,
            next_offset_s: next_offset_s.map_or(offset_s, |offset_s| offset_s as i32),
        }
    }

    fn local_s(self, now_ns: u64, zone: Zone) -> u64 {
        let utc_s = (now_ns / 1_000_000_000) as i64;
        (utc_s + i64::from(zone.offset_s(self, utc_s))).max(0) as u64
    }
}

/// The day since 1970-01-01 of a date; `None` for dates before that and for days that do not exist.
pub(crate) fn day_of_date(year: i32, month: u32, day: u32) -> Option<u64> {
    let date = NaiveDate::from_ymd_opt(year, month, day)?;
    u64::try_from(date.to_epoch_days()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::zone::OFFSET_MAX_S;

    fn at(year: i32, month: u32, day: u32, second: u64) -> u64 {
        (day_of_date(year, month, day).unwrap() * DAY_S + second) * 1_000_000_000
    }

    #[test]
    fn periods_begin_at_calendar_boundaries() {
        let next = |every: Every, now_ns, offset_s| {
            let zone = Zone::Fixed(offset_s);
            let period = every.period(now_ns, zone);
            every.begin_ns(period + 1, zone).unwrap()
        };
        let now = at(2026, 11, 21, 3_661); // A Saturday.
        assert_eq!(next(Every::Minute, now, 0), at(2026, 11, 21, 3_720));
        assert_eq!(next(Every::Hour, now, 0), at(2026, 11, 21, 7_200));
        assert_eq!(next(Every::Day, now, 0), at(2026, 11, 22, 0));
        assert_eq!(next(Every::Week, now, 0), at(2026, 11, 23, 0));
        assert_eq!(next(Every::Month, now, 0), at(2026, 12, 1, 0));
        assert_eq!(
            next(Every::Month, at(2026, 12, 31, 5), 0),
            at(2027, 1, 1, 0)
        );
        // Two hours ahead of UTC, the day ends two hours earlier.
        assert_eq!(next(Every::Day, now, 7_200), at(2026, 11, 21, 22 * 3600));
        assert_eq!(Every::Never.begin_ns(1, Zone::UTC), None);
    }

    proptest! {
        #[test]
        fn every_moment_lies_within_its_computed_period(
            now_ns in 1_000_000_000_000_000_u64..8_000_000_000_000_000_000,
            offset_s in -OFFSET_MAX_S..=OFFSET_MAX_S,
            name in proptest::sample::select(vec![
                "Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Havana", "Asia/Beirut",
                "Pacific/Apia",
            ]),
        ) {
            for zone in [Zone::Fixed(offset_s), Zone::parse(name).unwrap()] {
                for (_, every) in Every::WORDS.into_iter().take(5) {
                    let period = every.period(now_ns, zone);
                    let begin = every.begin_ns(period, zone).unwrap();
                    let end = every.begin_ns(period + 1, zone).unwrap();
                    prop_assert!(begin <= now_ns && now_ns < end, "{every:?}");
                    // The converted zone gives the same result until the next period begins.
                    let told = every.zone_without_database(now_ns, zone);
                    prop_assert_eq!(every.period(now_ns, told), period);
                    prop_assert_eq!(every.begin_ns(period + 1, told), Some(end));
                }
            }
        }

        #[test]
        fn periods_of_a_named_zone_never_step_back(
            now_ns in 1_767_225_600_u64..1_830_000_000, ahead_s in 0_u64..100_000,
        ) {
            let zone = Zone::parse("Europe/Berlin").unwrap();
            for (_, every) in Every::WORDS {
                let period = |s: u64| every.period(s * 1_000_000_000, zone);
                prop_assert!(period(now_ns) <= period(now_ns + ahead_s));
            }
        }
    }
}
