//! Rewrites the state: appends its live items again, in parts, and trims the older records.

use std::sync::atomic::Ordering;

use quota::Rules;
use quota::record;

use super::QuotaJournal;
use crate::cells::SHARDS;
use crate::service::Quotas;

/// Cells that are rewritten at a time.
const CELLS_AT_ONCE: usize = 4_096;
/// Minimum size of a stream, in bytes, for it to be rewritten.
pub(super) const SIZE_MIN: u64 = 4 << 20;

impl Quotas<'_> {
    /// Rewrites the live state in parts when more than half of it is superseded. Returns whether a
    /// rewrite is in progress.
    pub(super) fn rewrite(self, journal: &QuotaJournal, rules: &Rules) -> bool {
        let mut rewriting = journal.rewriting.lock();
        let written = journal.written.load(Ordering::Relaxed);
        let now_ms = self.service.platform.unix_ms();
        let (until, table, from) = match rewriting.under_way {
            Some(place) => place,
            None if written < SIZE_MIN.max(rewriting.alive * 2) => return false,
            None => {
                rewriting.size = 0;
                (journal.lock(now_ms).next(journal.streams.state), 0, 0)
            }
        };
        let shard = self.state().shard(table);
        let mut cells = Vec::new();
        let next = shard.table.walk(from, CELLS_AT_ONCE, |key, cell| {
            record::encode_cell(rules, key, cell, &mut cells);
        });
        let mut records = vec![(record::CELLS, cells)];
        if from == 0 {
            let holds = shard.holds.iter().map(|(id, hold)| {
                let mut bytes = Vec::new();
                record::encode_hold(id, hold, &mut bytes);
                (record::HOLD, bytes)
            });
            records.extend(holds);
            let ids = shard.recent.iter().map(|(id, taken, until_ns)| {
                let mut bytes = Vec::new();
                let taken = record::TakeRecord {
                    until_ns,
                    hold: taken.hold.map(|hold| (hold.id, hold.deadline_ns)),
                    cost_digest: taken.cost_digest,
                    id,
                };
                taken.encode(&mut bytes);
                (record::TAKEN, bytes)
            });
            records.extend(ids);
        }
        records.retain(|(_, bytes)| !bytes.is_empty());
        rewriting.size += records
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .sum::<u64>();
        let records: Vec<_> = records
            .iter()
            .map(|(tag, bytes)| (*tag, &bytes[..]))
            .collect();
        let round = journal.journal().round();
        for record in &records {
            let guard = round.lock(journal.streams.shard, now_ms);
            if journal.append(guard, std::slice::from_ref(record)).is_err() {
                return false;
            }
        }
        drop((round, shard));
        rewriting.under_way = match next {
            Some(next) => Some((until, table, next)),
            None if table + 1 < SHARDS => Some((until, table + 1, 0)),
            None => {
                // The trimmed items were appended again before this trim, in the same shard.
                let _ = journal.lock(now_ms).trim(journal.streams.state, until);
                rewriting.alive = rewriting.size;
                journal.written.store(rewriting.size, Ordering::Relaxed);
                None
            }
        };
        rewriting.under_way.is_some()
    }
}
