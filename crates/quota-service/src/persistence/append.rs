//! Appends takes, ends of holds and changes to the journal.

use std::sync::atomic::Ordering;

use platform::Durable;
use quota::record::{self, Audit};
use quota::{Rules, Subject};

use super::{OpenError, QuotaJournal};
use crate::cells::SHARDS;
use crate::desk::Desk;
use crate::outcome::{Note, Take};
use crate::service::Quotas;
use crate::usage::WriteTime;
use crate::usage::spends::Spent;

/// Approximate maximum size of a record of cells, in bytes.
const RECORD_SIZE: usize = 256 << 10;

impl Quotas<'_> {
    /// Returns whether quotas are persistent.
    pub(crate) fn is_persistent(self) -> bool {
        self.state().journal.is_some()
    }

    /// Returns the durability of everything appended so far.
    pub(crate) fn everything_so_far(self) -> Option<Durable> {
        let journal = self.state().journal.as_ref()?;
        let guard = journal.lock(self.service.platform.unix_ms());
        Some(journal.durable(guard.last_ticket(journal.streams.state)))
    }

    /// Appends a take before its answer, if one of its limits is `sync`. Its cells are locked.
    pub(crate) fn append_take(
        self,
        rules: &Rules,
        desk: &mut Desk,
        take: &Take<'_>,
        note: Option<&Note>,
    ) -> Result<Option<Durable>, String> {
        let records = note.map_or(&[][..], |note| &note.records);
        self.append_sync(rules, desk, &take.subject, records)
    }

    /// Appends the end of a hold before its answer, if one of its limits is `sync`.
    pub(crate) fn append_hold_end(
        self,
        rules: &Rules,
        desk: &mut Desk,
        subject: &Subject<'_>,
        ended: &[u8],
    ) -> Result<Option<Durable>, String> {
        let records = [(record::ENDED, ended.to_vec())];
        self.append_sync(rules, desk, subject, &records)
    }

    fn append_sync(
        self,
        rules: &Rules,
        desk: &mut Desk,
        subject: &Subject<'_>,
        records: &[(u8, Vec<u8>)],
    ) -> Result<Option<Durable>, String> {
        let journal = self.state().journal.as_ref();
        let Some(journal) = journal.filter(|_| desk.plan.is_sync(rules)) else {
            return Ok(None);
        };
        desk.bytes.clear();
        desk.plan.encode_cells(rules, subject, &mut desk.bytes);
        let cells = (!desk.bytes.is_empty()).then_some((record::CELLS, &desk.bytes[..]));
        let others = records.iter().map(|(tag, bytes)| (*tag, &bytes[..]));
        let all: Vec<(u8, &[u8])> = cells.into_iter().chain(others).collect();
        self.append(journal, &all)
    }

    /// Appends the records of a take whose cells are in a shared store.
    pub(crate) fn append_records(
        self,
        records: &[(u8, Vec<u8>)],
    ) -> Result<Option<Durable>, String> {
        let Some(journal) = &self.state().journal else {
            return Ok(None);
        };
        let records = records.iter().map(|(tag, bytes)| (*tag, &bytes[..]));
        self.append(journal, &records.collect::<Vec<_>>())
    }

    fn append(
        self,
        journal: &QuotaJournal,
        records: &[(u8, &[u8])],
    ) -> Result<Option<Durable>, String> {
        let guard = journal.lock(self.service.platform.unix_ms());
        let ticket = journal.append(guard, records);
        let ticket = ticket.map_err(|error| error.to_string())?;
        Ok(ticket.map(|ticket| journal.durable(ticket)))
    }

    /// Appends all changes to the journal. Returns whether some are left.
    pub(crate) fn flush(self, usage_time: WriteTime) -> bool {
        let mut usage = self.state().usage.lock();
        let rules = self.state().rules.read();
        let Some(journal) = &self.state().journal else {
            // Without a journal, changes need no record: mark buckets clean so that full ones can
            // be evicted.
            for shard in &self.state().shards {
                shard.lock().table.clean();
            }
            self.collect_usage(&usage, &rules);
            return false;
        };
        let mut spent = Vec::new();
        let mut is_left = false;
        for table in 0..SHARDS {
            let flushed = self.flush_shard(journal, &rules, table, &mut spent);
            is_left |= flushed.is_err();
        }
        self.add_usage(&rules, &spent);
        // Usage follows the takes that it counts, so that a crash counts none of them twice.
        if !is_left {
            is_left = self.write_usage(journal, &mut usage, usage_time);
        }
        let is_rewriting = self.rewrite(journal, &rules);
        is_left || is_rewriting
    }

    /// Appends the changes of a shard, locked until all are appended, so that a cell's records stay
    /// in order. Moves the sums of what was appended to `spent`.
    fn flush_shard(
        self,
        journal: &QuotaJournal,
        rules: &Rules,
        table: u16,
        spent: &mut Vec<Spent>,
    ) -> Result<(), journal::AppendError> {
        let mut shard = self.state().shard(table);
        if !shard.table.is_dirty() && shard.unwritten.is_empty() {
            shard.spends.collect(spent);
            return Ok(());
        }
        let mut batches = vec![Vec::new()];
        shard.table.each_dirty(|key, cell| {
            if batches
                .last()
                .is_some_and(|batch| batch.len() >= RECORD_SIZE)
            {
                batches.push(Vec::new());
            }
            if let Some(batch) = batches.last_mut() {
                record::encode_cell(rules, key, cell, batch);
            }
        });
        let cells = batches.iter().filter(|batch| !batch.is_empty());
        let cells = cells.map(|batch| (record::CELLS, &batch[..]));
        let others = shard
            .unwritten
            .iter()
            .map(|(tag, bytes)| (*tag, &bytes[..]));
        let all: Vec<(u8, &[u8])> = cells.chain(others).collect();
        let now_ms = self.service.platform.unix_ms();
        let round = journal.journal().round();
        for record in &all {
            let guard = round.lock(journal.streams.shard, now_ms);
            journal.append(guard, std::slice::from_ref(record))?;
        }
        drop(all);
        shard.table.clean();
        shard.unwritten.clear();
        shard.spends.collect(spent);
        Ok(())
    }

    /// Appends all changes and returns their durability. Called last when a node stops.
    pub fn flush_all(self) -> Option<Durable> {
        self.flush(WriteTime::Now);
        let journal = self.state().journal.as_ref()?;
        let guard = journal.lock(self.service.platform.unix_ms());
        let streams = [journal.streams.state, journal.streams.usage];
        let tickets = streams.map(|stream| Some(guard.last_ticket(stream)));
        Some(Durable::of_earlier(journal.journal(), tickets))
    }

    /// Appends a change and its author; it is acknowledged when durable.
    pub(crate) fn append_change(
        self,
        changes: &[(u8, Vec<u8>)],
        audit: &Audit,
    ) -> Result<Option<Durable>, journal::AppendError> {
        let Some(journal) = &self.state().journal else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        audit.encode(&mut bytes);
        let size = bytes.len() + changes.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let streams = &journal.streams;
        let mut guard = journal.lock(self.service.platform.unix_ms());
        guard.reserve(size, changes.len() + 1)?;
        for (tag, change) in changes {
            guard.append(streams.changes, None, *tag, change)?;
        }
        let audited = guard.append(streams.audit, None, record::AUDIT, &bytes)?;
        let audit_max = self.state().options.audit_max as u64;
        if audited.offset >= audit_max * 2 {
            guard.trim(streams.audit, audited.offset - audit_max)?;
        }
        Ok(Some(journal.durable(audited.ticket)))
    }

    /// Trims the stream of changes after appending all current changes again.
    pub(crate) fn compact_changes(self, rules: &Rules, policies: &[u8]) {
        let Some(journal) = &self.state().journal else {
            return;
        };
        let (changes, stream) = (rules.changes(), journal.streams.changes);
        let start = journal.start(stream);
        let mut guard = journal.lock(self.service.platform.unix_ms());
        let from = guard.next(stream);
        if from - start < 1_024.max(changes.len() as u64 * 4) {
            return;
        }
        let mut records = vec![(record::POLICIES, policies.to_vec())];
        for change in changes {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            records.push((change.tag(), bytes));
        }
        let size = records.iter().map(|(_, bytes)| bytes.len()).sum();
        if guard.reserve(size, records.len()).is_err() {
            return;
        }
        let mut records = records.iter();
        let written =
            records.try_for_each(|(tag, bytes)| guard.append(stream, None, *tag, bytes).map(drop));
        if written.is_ok() {
            // A failed trim is repeated with the next change.
            let _ = guard.trim(stream, from);
        }
    }

    pub(crate) fn digest(self) -> u64 {
        let journal = self.state().journal.as_ref();
        journal.map_or(0, |journal| journal.digest.load(Ordering::Relaxed))
    }

    /// Returns audit entries from a number on, and the number of the first one.
    pub fn audit(self, from: u64, count: usize) -> Result<(u64, Vec<Audit>), OpenError> {
        let Some(journal) = &self.state().journal else {
            return Ok((from, Vec::new()));
        };
        let from = from.max(journal.start(journal.streams.audit));
        journal.audit(from, count)
    }

    /// Returns the newest audit entries, oldest first, and the number of the first one.
    pub fn newest_audit(self, count: usize) -> Result<(u64, Vec<Audit>), OpenError> {
        let Some(journal) = &self.state().journal else {
            return Ok((0, Vec::new()));
        };
        let streams = &journal.streams;
        let state = journal.journal().stream(streams.shard, streams.audit);
        let (start, next) = state.map_or((0, 0), |state| (state.start, state.next_durable));
        let first = next.saturating_sub(count as u64).max(start);
        let mut audits = Vec::new();
        // A read ends early when its records are large.
        while audits.len() < (next - first) as usize {
            let from = first + audits.len() as u64;
            let (_, more) = journal.audit(from, (next - from) as usize)?;
            if more.is_empty() {
                break;
            }
            audits.extend(more);
        }
        Ok((first, audits))
    }
}

impl QuotaJournal {
    /// Reads audit entries from a number that exists, and returns it with them.
    fn audit(&self, from: u64, count: usize) -> Result<(u64, Vec<Audit>), OpenError> {
        let streams = &self.streams;
        let limit = journal::ReadLimit {
            records: count.clamp(1, 1_000),
            bytes: 1 << 20,
        };
        let read = self
            .journal()
            .read(streams.shard, streams.audit, from, limit)?;
        let audits = read
            .records
            .iter()
            .map(|record| Audit::decode(&record.payload));
        Ok((from, audits.collect::<Result<_, _>>()?))
    }
}
