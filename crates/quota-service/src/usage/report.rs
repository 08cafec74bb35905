//! Pages of usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use quota::{Pattern, Subject, Unit};

use super::days::{Day, LimitKey};
use super::spends::Spend;
use crate::service::Quotas;

/// Maximum number of rows of a page.
const ROWS_MAX: usize = 10_000;

/// The rows that are wanted.
pub struct UsageQuery<'a> {
    /// The first day, in days since 1970-01-01 UTC.
    pub from: u32,
    /// The last day.
    pub to: u32,
    /// The name of the only limit.
    pub limit: Option<&'a str>,
    /// The pattern of the subjects.
    pub subject: Option<&'a Pattern>,
    /// The grouping of rows.
    pub by: UsageBy,
    /// The position after which the page starts.
    pub after: Option<UsageCursor>,
    /// Maximum number of rows, at most 10,000.
    pub count: usize,
    /// The subjects that the client may see; `None` for all, also those that share a row.
    pub is_visible: Option<&'a (dyn Fn(&str) -> bool + Sync)>,
}

/// The grouping of rows of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageBy {
    /// A subject, a limit and a day.
    #[default]
    Day,
    /// A subject and a limit, over all days.
    Subject,
    /// A limit, over all days and subjects.
    Limit,
}

/// A position in the order of rows: day, limit, unit, subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCursor {
    /// The day; 0 if rows have none.
    pub day: u32,
    /// The name of the limit.
    pub limit: Arc<str>,
    /// The unit of the limit.
    pub unit: Unit,
    /// The subject; empty for other subjects, and if rows have none.
    pub subject: Arc<str>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The day, the limit and the subject of the row.
    pub at: UsageCursor,
    /// The amount, in the unit of the limit.
    pub amount: u64,
    /// Number of takes: admitted ones, and holds that have ended.
    pub takes: u64,
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsagePage {
    /// The rows, in order.
    pub rows: Vec<UsageRow>,
    /// True if more rows follow.
    pub is_more: bool,
    /// True if some usage of these days and limits is that of subjects which have no row of their
    /// own, since a day had too many rows.
    pub has_other_subjects: bool,
}

/// The rows of a page while they are summed.
struct Sums<'q, 'a> {
    query: &'q UsageQuery<'a>,
    /// The first rows after the cursor, and one more.
    rows: BTreeMap<UsageCursor, Spend>,
    count: usize,
    no_subject: Arc<str>,
    has_other_subjects: bool,
}

impl Quotas<'_> {
    /// Returns a page of usage, up to the last take. Reads all rows of the days, so it should not
    /// run on a thread that serves connections.
    pub fn usage(self, query: &UsageQuery<'_>) -> UsagePage {
        let guard = self.state().usage.lock();
        self.collect_usage(&guard, &self.rules());
        drop(guard);
        self.expire_usage();
        let days = self.state().usage.days.lock().range(query.from..=query.to);
        let mut sums = Sums {
            query,
            rows: BTreeMap::new(),
            count: query.count.clamp(1, ROWS_MAX),
            no_subject: "".into(),
            has_other_subjects: false,
        };
        for (day, rows) in &days {
            sums.add_day(*day, rows);
        }
        sums.into_page()
    }
}

impl Sums<'_, '_> {
    fn add_day(&mut self, day: u32, rows: &Day) {
        let query = self.query;
        let limits = rows.limits.iter();
        for (key, subjects) in limits.filter(|(key, _)| query.limit.is_none_or(|it| *it == *key.0))
        {
            for (name, row) in subjects {
                self.has_other_subjects |= name.is_empty();
                if self.is_wanted(name) {
                    self.add(day, key, name, row.spend);
                }
            }
        }
    }

    fn is_wanted(&self, name: &str) -> bool {
        let is_visible = self
            .query
            .is_visible
            .is_none_or(|is_visible| is_visible(name));
        is_visible
            && match self.query.subject {
                None => true,
                Some(pattern) => Subject::new(name, "").is_ok_and(|it| pattern.covers(&it)),
            }
    }

    fn add(&mut self, day: u32, (limit, unit): &LimitKey, name: &Arc<str>, spend: Spend) {
        let by = self.query.by;
        let at = UsageCursor {
            day: match by {
                UsageBy::Day => day,
                UsageBy::Subject | UsageBy::Limit => 0,
            },
            limit: limit.clone(),
            unit: *unit,
            subject: match by {
                UsageBy::Limit => self.no_subject.clone(),
                UsageBy::Day | UsageBy::Subject => name.clone(),
            },
        };
        if self.query.after.as_ref().is_some_and(|after| at <= *after) {
            return;
        }
        self.rows.entry(at).or_default().add(spend);
        // A removed row has enough rows before it, which stay: it is not on this page.
        if self.rows.len() > self.count + 1 {
            self.rows.pop_last();
        }
    }

    fn into_page(mut self) -> UsagePage {
        let is_more = self.rows.len() > self.count;
        if is_more {
            self.rows.pop_last();
        }
        let rows = self.rows.into_iter().map(|(at, spend)| UsageRow {
            at,
            amount: spend.amount,
            takes: spend.takes,
        });
        UsagePage {
            rows: rows.collect(),
            is_more,
            has_other_subjects: self.has_other_subjects,
        }
    }
}
