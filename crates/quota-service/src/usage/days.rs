//! The rows of usage, by day.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use quota::Unit;

use super::spends::{Spend, Spent};

/// Number of days of usage that are kept, with the current one.
pub const USAGE_DAYS: u32 = 90;

/// A limit as it was on a day.
pub(super) type LimitKey = (Arc<str>, Unit);

/// The rows of all days.
pub(super) struct Days {
    /// Days are shared with queries, which therefore do not hold the lock.
    by_day: BTreeMap<u32, Arc<Day>>,
    /// Names of subjects, which have rows on many days.
    names: HashSet<Arc<str>>,
    /// The rows that differ from their journal record, each once.
    changed: Vec<RowKey>,
    /// Maximum number of rows of a day.
    rows_max: usize,
    is_persistent: bool,
}

/// The rows of a day.
#[derive(Clone, Default)]
pub(super) struct Day {
    pub(super) limits: BTreeMap<LimitKey, HashMap<Arc<str>, Row>>,
    /// Number of subjects, over all limits.
    count: usize,
}

/// A row: what a subject has spent of a limit. The row of the empty name is that of all subjects
/// for which there was no room.
#[derive(Clone, Copy, Default)]
pub(super) struct Row {
    pub(super) spend: Spend,
    /// True if the row is in the list of changed rows.
    is_changed: bool,
}

/// Identifies a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey {
    pub(super) day: u32,
    pub(super) limit: LimitKey,
    pub(super) subject: Arc<str>,
}

impl Days {
    pub(super) fn new(rows_max: usize, is_persistent: bool) -> Self {
        Self {
            by_day: BTreeMap::new(),
            names: HashSet::new(),
            changed: Vec::new(),
            rows_max,
            is_persistent,
        }
    }

    /// Adds a sum. Without room for another subject, it is added to the row of the empty name.
    pub(super) fn add(&mut self, (limit, unit): (&Arc<str>, Unit), spent: &Spent) {
        let day = spent.day;
        let rows = Arc::make_mut(self.by_day.entry(day).or_default());
        let key = (limit.clone(), unit);
        let subjects = rows.limits.entry(key.clone()).or_default();
        let mut subject = &*spent.subject;
        if !subject.is_empty() && !subjects.contains_key(subject) {
            match rows.count < self.rows_max {
                true => rows.count += 1,
                false => subject = "",
            }
        }
        let row = match subjects.get_mut(subject) {
            Some(row) => row,
            None => subjects
                .entry(interned(&mut self.names, subject))
                .or_default(),
        };
        row.spend.add(spent.spend);
        if self.is_persistent && !row.is_changed {
            row.is_changed = true;
            self.changed.push(RowKey {
                day,
                limit: key,
                subject: interned(&mut self.names, subject),
            });
        }
    }

    /// Restores a row from its journal record. A later record replaces an earlier one.
    pub(super) fn restore(&mut self, day: u32, limit: LimitKey, subject: &str, spend: Spend) {
        let rows = Arc::make_mut(self.by_day.entry(day).or_default());
        let name = interned(&mut self.names, subject);
        let row = Row {
            spend,
            is_changed: false,
        };
        let old = rows.limits.entry(limit).or_default().insert(name, row);
        if old.is_none() && !subject.is_empty() {
            rows.count += 1;
        }
    }

    /// Removes days that are too old.
    pub(super) fn expire(&mut self, today: u32) {
        let first = today.saturating_sub(USAGE_DAYS - 1);
        let mut is_any = false;
        while let Some(oldest) = self.by_day.first_entry() {
            if *oldest.key() >= first {
                break;
            }
            oldest.remove();
            is_any = true;
        }
        if is_any {
            self.changed.retain(|row| row.day >= first);
            // One count is that of the set itself.
            self.names.retain(|name| Arc::strong_count(name) > 1);
        }
    }

    /// Returns the rows of these days.
    pub(super) fn range(&self, days: RangeInclusive<u32>) -> Vec<(u32, Arc<Day>)> {
        if days.is_empty() {
            return Vec::new();
        }
        let found = self.by_day.range(days);
        found.map(|(day, rows)| (*day, rows.clone())).collect()
    }

    /// Returns the first day from `from` on, and its rows.
    pub(super) fn next(&self, from: u32) -> Option<(u32, Arc<Day>)> {
        let (day, rows) = self.by_day.range(from..).next()?;
        Some((*day, rows.clone()))
    }

    /// Returns whether any row differs from its journal record.
    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the rows that differ from their journal records, sorted, with their values.
    pub(super) fn take_changed(&mut self) -> Vec<(RowKey, Spend)> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        let mut rows = Vec::with_capacity(changed.len());
        for key in changed {
            if let Some(row) = self.row_mut(&key) {
                row.is_changed = false;
                let spend = row.spend;
                rows.push((key, spend));
            }
        }
        rows
    }

    /// Marks rows as changed that could not be written.
    pub(super) fn put_back(&mut self, rows: Vec<(RowKey, Spend)>) {
        for (key, _) in rows {
            if let Some(row) = self.row_mut(&key)
                && !row.is_changed
            {
                row.is_changed = true;
                self.changed.push(key);
            }
        }
    }

    fn row_mut(&mut self, key: &RowKey) -> Option<&mut Row> {
        let rows = Arc::make_mut(self.by_day.get_mut(&key.day)?);
        rows.limits.get_mut(&key.limit)?.get_mut(&key.subject)
    }
}

/// Returns the shared copy of a name.
fn interned(names: &mut HashSet<Arc<str>>, name: &str) -> Arc<str> {
    match names.get(name) {
        Some(known) => known.clone(),
        None => {
            let name: Arc<str> = name.into();
            names.insert(name.clone());
            name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quota::LimitId;

    fn days(rows_max: usize) -> Days {
        Days::new(rows_max, true)
    }

    fn add(days: &mut Days, day: u32, subject: &str, amount: u64) {
        let spent = Spent {
            day,
            limit: LimitId(1),
            subject: subject.into(),
            spend: Spend { amount, takes: 1 },
        };
        days.add((&"tpm".into(), Unit::TOKENS), &spent);
    }

    fn rows(days: &Days) -> Vec<(u32, String, u64)> {
        let mut rows = Vec::new();
        for (day, found) in days.range(0..=u32::MAX) {
            for subjects in found.limits.values() {
                let row =
                    |(name, row): (&Arc<str>, &Row)| (day, name.to_string(), row.spend.amount);
                rows.extend(subjects.iter().map(row));
            }
        }
        rows.sort();
        rows
    }

    #[test]
    fn subjects_beyond_the_maximum_of_a_day_share_a_row() {
        let mut days = days(2);
        for (day, subject) in [(7, "a"), (7, "b"), (7, "c"), (7, "d"), (7, "a"), (8, "c")] {
            add(&mut days, day, subject, 5);
        }
        let row = |day, name: &str, amount| (day, name.to_owned(), amount);
        let expected = [
            row(7, "", 10),
            row(7, "a", 10),
            row(7, "b", 5),
            row(8, "c", 5),
        ];
        assert_eq!(rows(&days), expected);
    }

    #[test]
    fn days_are_removed_after_90_days() {
        let mut days = days(10);
        for day in [10, 11, 99] {
            add(&mut days, day, "a", u64::from(day));
        }
        days.expire(99);
        assert_eq!(rows(&days).len(), 3);
        days.expire(100);
        let row = |day: u32| (day, "a".to_owned(), u64::from(day));
        assert_eq!(rows(&days), [row(11), row(99)]);
        let changed: Vec<_> = days
            .take_changed()
            .into_iter()
            .map(|(row, _)| row.day)
            .collect();
        assert_eq!(changed, [11, 99]);
        days.expire(1_000);
        assert!(rows(&days).is_empty() && days.names.is_empty());
    }

    #[test]
    fn each_changed_row_is_taken_once_with_its_sum() {
        let mut days = days(10);
        add(&mut days, 7, "b", 1);
        add(&mut days, 7, "a", 2);
        add(&mut days, 7, "b", 3);
        let taken = |days: &mut Days| {
            let rows = days.take_changed().into_iter();
            rows.map(|(row, spend)| (row.subject.to_string(), spend.amount))
                .collect::<Vec<_>>()
        };
        assert_eq!(taken(&mut days), [("a".to_owned(), 2), ("b".to_owned(), 4)]);
        assert_eq!(taken(&mut days), []);
        add(&mut days, 7, "a", 1);
        let failed = days.take_changed();
        days.put_back(failed);
        assert_eq!(taken(&mut days), [("a".to_owned(), 3)]);
    }
}
