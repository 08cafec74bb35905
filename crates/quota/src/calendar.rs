//! Stretches of the calendar in which a budget may be spent.

use model::{date_of_day, day_of_date};

/// How often a budget begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// With each minute.
    Minute,
    /// With each hour.
    Hour,
    /// At midnight.
    Day,
    /// At midnight before Monday.
    Week,
    /// At midnight before the first.
    Month,
    /// Never: what is spent is spent.
    Never,
}

/// Seconds that a place's clock may be ahead of UTC, or behind.
pub const OFFSET_MAX_S: i32 = 18 * 3600;

const SECOND_NS: i128 = 1_000_000_000;
const DAY_S: u64 = 86_400;
/// 1970-01-05 was a Monday.
const MONDAY: u64 = 4;

impl Every {
    /// Every one, by its word.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("minute", Self::Minute),
        ("hour", Self::Hour),
        ("day", Self::Day),
        ("week", Self::Week),
        ("month", Self::Month),
        ("never", Self::Never),
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        let word = Self::WORDS.iter().find(|(_, every)| *every == self);
        word.map_or("never", |(word, _)| word)
    }

    /// The number of the stretch in which a moment lies: it grows by one with each.
    pub(crate) fn period(self, now_ns: u64, offset_s: i32) -> u64 {
        let local_s = local_s(now_ns, offset_s);
        let day = local_s / DAY_S;
        match self {
            Self::Minute => local_s / 60,
            Self::Hour => local_s / 3600,
            Self::Day => day,
            Self::Week => (day + 7 - MONDAY) / 7,
            Self::Month => {
                let (year, month, _) = date_of_day(day);
                year * 12 + month - 1
            }
            Self::Never => 0,
        }
    }

    /// When the stretch of that number begins, in nanoseconds since 1970-01-01 UTC; `None` if no
    /// such moment comes.
    pub(crate) fn begin_ns(self, period: u64, offset_s: i32) -> Option<u64> {
        let local_s = match self {
            Self::Minute => period.checked_mul(60)?,
            Self::Hour => period.checked_mul(3600)?,
            Self::Day => period.checked_mul(DAY_S)?,
            Self::Week => (period.checked_mul(7)? + MONDAY)
                .checked_sub(7)?
                .checked_mul(DAY_S)?,
            Self::Month => day_of_date(period / 12, period % 12 + 1, 1)?.checked_mul(DAY_S)?,
            Self::Never => return None,
        };
        let at_ns = (i128::from(local_s) - i128::from(offset_s)) * SECOND_NS;
        u64::try_from(at_ns.max(0)).ok()
    }
}

fn local_s(now_ns: u64, offset_s: i32) -> u64 {
    let seconds = (now_ns / 1_000_000_000) as i64 + i64::from(offset_s);
    seconds.max(0) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(year: u64, month: u64, day: u64, second: u64) -> u64 {
        (day_of_date(year, month, day).unwrap() * DAY_S + second) * 1_000_000_000
    }

    #[test]
    fn stretches_begin_where_the_calendar_says() {
        let next = |every: Every, now_ns, offset_s| {
            let period = every.period(now_ns, offset_s);
            every.begin_ns(period + 1, offset_s).unwrap()
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
        // Two hours ahead of UTC the day is over two hours earlier.
        assert_eq!(next(Every::Day, now, 7_200), at(2026, 11, 21, 22 * 3600));
        assert_eq!(Every::Never.begin_ns(1, 0), None);
    }

    proptest! {
        #[test]
        fn every_moment_lies_in_the_stretch_that_is_counted(
            now_ns in 1_000_000_000_000_000_u64..8_000_000_000_000_000_000,
            offset_s in -OFFSET_MAX_S..=OFFSET_MAX_S,
        ) {
            for (_, every) in Every::WORDS.into_iter().take(5) {
                let period = every.period(now_ns, offset_s);
                let begin = every.begin_ns(period, offset_s).unwrap();
                let end = every.begin_ns(period + 1, offset_s).unwrap();
                prop_assert!(begin <= now_ns && now_ns < end, "{every:?}");
            }
        }
    }
}
