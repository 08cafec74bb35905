//! Persistence of usage: a stream of rows, of which the last record of each counts.

use std::sync::Arc;

use quota::record::{self, Malformed, UsageRecord, UsageRow};

use super::days::{Day, LimitKey};
use super::spends::Spend;
use super::writing::{Rewrite, UsageGuard, Writing};
use crate::persistence::{OpenError, QuotaJournal};
use crate::service::Quotas;

/// Minimum interval between two writes of changed rows, in nanoseconds.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Approximate maximum size of a record, in bytes.
const RECORD_SIZE: usize = 256 << 10;

/// Minimum size of the stream, in bytes, for it to be rewritten.
const SIZE_MIN: u64 = 1 << 20;

/// When changed rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteTime {
    /// At most once a second.
    WhenDue,
    Now,
}

/// Encodes rows of several days and limits as records.
#[derive(Default)]
struct Records {
    records: Vec<Vec<u8>>,
    /// The day and the limit of the last record.
    of: Option<(u32, LimitKey)>,
}

impl Records {
    fn push(&mut self, day: u32, limit: &LimitKey, subject: &str, spend: Spend) {
        let is_same = self
            .of
            .as_ref()
            .is_some_and(|(of, key)| *of == day && key == limit);
        let is_full = self
            .records
            .last()
            .is_some_and(|it| it.len() >= RECORD_SIZE);
        if !is_same || is_full {
            let mut record = Vec::new();
            let (name, unit) = limit;
            UsageRecord {
                day,
                limit: name,
                unit: *unit,
            }
            .encode(&mut record);
            self.records.push(record);
            self.of = Some((day, limit.clone()));
        }
        let row = UsageRow {
            subject,
            amount: spend.amount,
            takes: spend.takes,
        };
        if let Some(record) = self.records.last_mut() {
            row.encode(record);
        }
    }

    /// Encodes all rows of a day.
    fn of_day(day: u32, rows: &Day) -> Self {
        let mut records = Self::default();
        for (limit, subjects) in &rows.limits {
            // Sorted, so that equal usage gives equal records.
            let mut subjects: Vec<_> = subjects.iter().collect();
            subjects.sort_unstable_by_key(|(name, _)| *name);
            for (name, row) in subjects {
                records.push(day, limit, name, row.spend);
            }
        }
        records
    }
}

impl Quotas<'_> {
    /// Writes the changed rows, and rewrites the stream if most of it is superseded. What the rows
    /// count must have been appended before. Returns whether work remains.
    pub(crate) fn write_usage(
        self,
        journal: &QuotaJournal,
        guard: &mut UsageGuard<'_>,
        time: WriteTime,
    ) -> bool {
        let (writing, now_ns) = (&mut *guard.0, self.now_ns());
        if time == WriteTime::WhenDue && now_ns < writing.due_ns {
            return writing.rewriting.is_some() || self.state().usage.days.lock().is_changed();
        }
        let rows = self.state().usage.days.lock().take_changed();
        if !rows.is_empty() {
            writing.due_ns = now_ns.saturating_add(INTERVAL_NS);
        }
        let mut records = Records::default();
        for (key, spend) in &rows {
            records.push(key.day, &key.limit, &key.subject, *spend);
        }
        match self.append_usage(journal, &records) {
            Ok(size) => writing.written += size,
            Err(_) => {
                self.state().usage.days.lock().put_back(rows);
                return true;
            }
        }
        self.rewrite_usage(journal, writing)
    }

    /// Appends records, and returns their size.
    fn append_usage(
        self,
        journal: &QuotaJournal,
        records: &Records,
    ) -> Result<u64, journal::AppendError> {
        let mut size = 0;
        for bytes in &records.records {
            journal.append_usage(bytes, self.service.platform.unix_ms())?;
            size += bytes.len() as u64;
        }
        Ok(size)
    }

    /// Appends the rows of one day again, when more than half of the stream is superseded, and
    /// trims it after the last day. Returns whether a rewrite is in progress.
    fn rewrite_usage(self, journal: &QuotaJournal, writing: &mut Writing) -> bool {
        let now_ms = self.service.platform.unix_ms();
        let mut rewrite = match writing.rewriting.take() {
            Some(rewrite) => rewrite,
            None if writing.written < SIZE_MIN.max(writing.alive * 2) => return false,
            None => Rewrite {
                until: journal.next_usage(now_ms),
                day: 0,
                size: 0,
            },
        };
        let next = self.state().usage.days.lock().next(rewrite.day);
        match next {
            Some((day, rows)) => {
                if let Ok(size) = self.append_usage(journal, &Records::of_day(day, &rows)) {
                    rewrite.size += size;
                    rewrite.day = day + 1;
                }
                writing.rewriting = Some(rewrite);
                true
            }
            None => {
                // The trimmed rows were appended again before this trim, in the same shard.
                journal.trim_usage(rewrite.until, now_ms);
                (writing.alive, writing.written) = (rewrite.size, rewrite.size);
                false
            }
        }
    }

    /// Loads the stored rows.
    pub(crate) fn restore_usage(self, journal: &QuotaJournal) -> Result<(), OpenError> {
        let usage = &self.state().usage;
        let mut days = usage.days.lock();
        let size = journal.each_usage(|payload| {
            let (head, rows) = UsageRecord::decode(payload)?;
            let limit: Arc<str> = head.limit.into();
            for row in rows {
                let UsageRow {
                    subject,
                    amount,
                    takes,
                } = row;
                let spend = Spend { amount, takes };
                days.restore(head.day, (limit.clone(), head.unit), subject, spend);
            }
            Ok::<_, Malformed>(())
        })?;
        days.expire(self.today());
        drop(days);
        usage.writing.lock().written = size;
        Ok(())
    }
}

impl QuotaJournal {
    fn append_usage(&self, bytes: &[u8], now_ms: u64) -> Result<(), journal::AppendError> {
        let round = self.journal().round();
        let mut guard = round.lock(self.streams.shard, now_ms);
        guard.append(self.streams.usage, None, record::USAGE, bytes)?;
        Ok(())
    }

    /// Returns the offset of the next record of usage.
    fn next_usage(&self, now_ms: u64) -> u64 {
        self.lock(now_ms).next(self.streams.usage)
    }

    fn trim_usage(&self, until: u64, now_ms: u64) {
        // A failed trim is repeated by the next rewrite.
        let _ = self.lock(now_ms).trim(self.streams.usage, until);
    }

    /// Passes every record of usage to `take`, oldest first. Returns the size of the stream.
    fn each_usage(
        &self,
        mut take: impl FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<u64, OpenError> {
        self.each_record(self.streams.usage, |record| match record.tag {
            record::USAGE => Ok(take(&record.payload)?),
            _ => Err(Malformed { what: "usage" }.into()),
        })?;
        let size = self.journal().bytes(self.streams.shard, self.streams.usage);
        Ok(size.unwrap_or(SIZE_MIN))
    }
}
