//! Gregorian dates, by counting days in eras of 400 years that begin on 1 March.
//!
//! Source of both formulas: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

/// Returns the date (year, month from 1, day from 1) of a day since 1970-01-01; `civil_from_days`.
pub fn date_of_day(day: u64) -> (u64, u64, u64) {
    let days = day + 719_468;
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

/// Returns the day since 1970-01-01 of a date, if it is valid and not earlier; `days_from_civil`.
pub fn day_of_date(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let shifted_year = year - u64::from(month <= 2);
    let (era, year_of_era) = (shifted_year / 400, shifted_year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    // A day that its month does not have maps to another date.
    (date_of_day(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (11_015, (2000, 2, 28)),
            (11_016, (2000, 2, 29)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date_of_day(day), date);
            let (year, month, day_of_month) = date;
            assert_eq!(day_of_date(year, month, day_of_month), Some(day));
        }
        for (year, month, day) in [(1969, 12, 31), (2023, 2, 29), (2023, 13, 1), (2023, 4, 0)] {
            assert_eq!(day_of_date(year, month, day), None, "{year}-{month}-{day}");
        }
    }
}
