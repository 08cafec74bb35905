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

/// Approximate maximum size of a record of cells, in bytes.
const RECORD_SIZE: usize = 256 << 10;

impl Quotas<'_> {
    /// Returns whether quotas are persisted.
    pub(crate) fn is_kept(self) -> bool {
        self.state().kept.is_some()
    }

    /// Returns the durability of everything appended so far.
    pub(crate) fn everything_so_far(self) -> Option<Durable> {
        let kept = self.state().kept.as_ref()?;
        let guard = kept
            .journal()
            .lock(kept.streams.shard, self.service.platform.unix_ms());
        let ticket = guard.last_ticket(kept.streams.state);
        Some(Durable::new(kept.journal(), [Some(ticket), None]))
    }

    /// Appends a take before its answer, if one of its limits is `sync`. Its cells are locked.
    pub(crate) fn keep_taken(
        self,
        rules: &Rules,
        desk: &mut Desk,
        take: &Take<'_>,
        note: Option<&Note>,
    ) -> Result<Option<Durable>, String> {
        let records = note.map_or(&[][..], |note| &note.records);
        self.keep_sync(rules, desk, &take.subject, records)
    }

    /// Appends the end of a hold before its answer, if one of its limits is `sync`.
    pub(crate) fn keep_ended(
        self,
        rules: &Rules,
        desk: &mut Desk,
        subject: &Subject<'_>,
        ended: &[u8],
    ) -> Result<Option<Durable>, String> {
        let records = [(record::ENDED, ended.to_vec())];
        self.keep_sync(rules, desk, subject, &records)
    }

    fn keep_sync(
        self,
        rules: &Rules,
        desk: &mut Desk,
        subject: &Subject<'_>,
        records: &[(u8, Vec<u8>)],
    ) -> Result<Option<Durable>, String> {
        let kept = self.state().kept.as_ref();
        let Some(kept) = kept.filter(|_| desk.plan.is_sync(rules)) else {
            return Ok(None);
        };
        desk.bytes.clear();
        desk.plan.encode_cells(rules, subject, &mut desk.bytes);
        let cells = (!desk.bytes.is_empty()).then_some((record::CELLS, &desk.bytes[..]));
        let others = records.iter().map(|(tag, bytes)| (*tag, &bytes[..]));
        let all: Vec<(u8, &[u8])> = cells.into_iter().chain(others).collect();
        self.append(kept, &all)
    }

    /// Appends the records of a take whose cells are in a shared store.
    pub(crate) fn keep_records(self, records: &[(u8, Vec<u8>)]) -> Result<Option<Durable>, String> {
        let Some(kept) = &self.state().kept else {
            return Ok(None);
        };
        let records = records.iter().map(|(tag, bytes)| (*tag, &bytes[..]));
        self.append(kept, &records.collect::<Vec<_>>())
    }

    fn append(
        self,
        kept: &QuotaJournal,
        records: &[(u8, &[u8])],
    ) -> Result<Option<Durable>, String> {
        let now_ms = self.service.platform.unix_ms();
        match kept.append(kept.journal().lock(kept.streams.shard, now_ms), records) {
            Ok(ticket) => {
                Ok(ticket.map(|ticket| Durable::new(kept.journal(), [Some(ticket), None])))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Appends all changes to the journal. Returns whether some are left.
    pub(crate) fn flush(self) -> bool {
        let Some(kept) = &self.state().kept else {
            // Without a journal, changes need no record: mark buckets clean so that full ones can
            // be evicted.
            for shard in &self.state().shards {
                shard.lock().table.clean();
            }
            return false;
        };
        let mut is_left = false;
        let rules = self.state().rules.read();
        for table in 0..SHARDS {
            is_left |= self.flush_shard(kept, &rules, table).is_err();
        }
        let is_rewriting = self.rewrite(kept, &rules);
        is_left || is_rewriting
    }

    /// Appends the changes of a shard, locked until all are appended, so that a cell's records stay
    /// in order.
    fn flush_shard(
        self,
        kept: &QuotaJournal,
        rules: &Rules,
        table: u16,
    ) -> Result<(), journal::AppendError> {
        let mut shard = self.state().shard(table);
        if !shard.table.is_dirty() && shard.unkept.is_empty() {
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
        let others = shard.unkept.iter().map(|(tag, bytes)| (*tag, &bytes[..]));
        let all: Vec<(u8, &[u8])> = cells.chain(others).collect();
        let now_ms = self.service.platform.unix_ms();
        let round = kept.journal().round();
        for record in &all {
            kept.append(
                round.lock(kept.streams.shard, now_ms),
                std::slice::from_ref(record),
            )?;
        }
        drop(all);
        shard.table.clean();
        shard.unkept.clear();
        Ok(())
    }

    /// Appends all changes and returns their durability. Called last when a node stops.
    pub fn flush_all(self) -> Option<Durable> {
        self.flush();
        self.everything_so_far()
    }

    /// Appends a change and its author; it is acknowledged when durable.
    pub(crate) fn keep_change(
        self,
        changes: &[(u8, Vec<u8>)],
        audit: &Audit,
    ) -> Result<Option<Durable>, journal::AppendError> {
        let Some(kept) = &self.state().kept else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        audit.encode(&mut bytes);
        let size = bytes.len() + changes.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let mut guard = kept
            .journal()
            .lock(kept.streams.shard, self.service.platform.unix_ms());
        guard.reserve(size, changes.len() + 1)?;
        for (tag, change) in changes {
            guard.append(kept.streams.changes, None, *tag, change)?;
        }
        let audited = guard.append(kept.streams.audit, None, record::AUDIT, &bytes)?;
        let audit_max = self.state().options.audit_max as u64;
        if audited.offset >= audit_max * 2 {
            guard.trim(kept.streams.audit, audited.offset - audit_max)?;
        }
        Ok(Some(Durable::new(
            kept.journal(),
            [Some(audited.ticket), None],
        )))
    }

    /// Trims the stream of changes after appending all current changes again.
    pub(crate) fn compact_changes(self, rules: &Rules, policies: &[u8]) {
        let Some(kept) = &self.state().kept else {
            return;
        };
        let standing = rules.changes();
        let now_ms = self.service.platform.unix_ms();
        let start = kept
            .journal()
            .stream(kept.streams.shard, kept.streams.changes)
            .map_or(0, |it| it.start);
        let mut guard = kept.journal().lock(kept.streams.shard, now_ms);
        let from = guard.next(kept.streams.changes);
        if from - start < 1_024.max(standing.len() as u64 * 4) {
            return;
        }
        let mut records = vec![(record::POLICIES, policies.to_vec())];
        for change in standing {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            records.push((change.tag(), bytes));
        }
        let size = records.iter().map(|(_, bytes)| bytes.len()).sum();
        if guard.reserve(size, records.len()).is_err() {
            return;
        }
        let written = records.iter().try_for_each(|(tag, bytes)| {
            guard
                .append(kept.streams.changes, None, *tag, bytes)
                .map(drop)
        });
        if written.is_ok() {
            // A failed trim is repeated with the next change.
            let _ = guard.trim(kept.streams.changes, from);
        }
    }

    pub(crate) fn digest(self) -> u64 {
        let kept = self.state().kept.as_ref();
        kept.map_or(0, |kept| kept.digest.load(Ordering::Relaxed))
    }

    /// Returns audit entries from a number on, and the number of the first one.
    pub fn audit(self, from: u64, count: usize) -> Result<(u64, Vec<Audit>), OpenError> {
        let Some(kept) = &self.state().kept else {
            return Ok((from, Vec::new()));
        };
        let start = kept
            .journal()
            .stream(kept.streams.shard, kept.streams.audit)
            .map_or(0, |state| state.start);
        let from = from.max(start);
        let limit = journal::ReadLimit {
            records: count.clamp(1, 1_000),
            bytes: 1 << 20,
        };
        let read = kept
            .journal()
            .read(kept.streams.shard, kept.streams.audit, from, limit)?;
        let audits = read
            .records
            .iter()
            .map(|record| Audit::decode(&record.payload));
        Ok((from, audits.collect::<Result<_, _>>()?))
    }
}
