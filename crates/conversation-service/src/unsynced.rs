//! Records that may not be durable yet, in memory, so that a retry can be compared with its
//! original.
//!
//! There are two generations: when the older one is durable, the newer one replaces it. The memory
//! is bounded by the appends of two syncs, however long a conversation is written to.

use std::collections::VecDeque;

use journal::Ticket;

/// Memory above this size is freed when a generation is cleared, in bytes.
const CAPACITY_MAX: usize = 64 << 10;

/// Records that may not be durable yet; see the module docs.
#[derive(Default)]
pub(super) struct UnsyncedRecords {
    older: Generation,
    newer: Generation,
}

#[derive(Default)]
struct Generation {
    /// The number of each message, and the position of its record.
    starts: VecDeque<(u64, usize)>,
    bytes: Vec<u8>,
    /// The ticket with which all of the generation is durable.
    ticket: Option<Ticket>,
}

impl UnsyncedRecords {
    /// Adds records that were appended.
    pub(super) fn push<'r>(
        &mut self,
        records: impl Iterator<Item = (u64, &'r [u8])>,
        ticket: Ticket,
        is_durable: impl Fn(Ticket) -> bool,
    ) {
        if self.older.ticket.is_none_or(&is_durable) {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        }
        for (seq, record) in records {
            self.newer.starts.push_back((seq, self.newer.bytes.len()));
            self.newer.bytes.extend_from_slice(record);
        }
        self.newer.ticket = Some(ticket);
    }

    /// Returns the record of a message, if it is still in memory.
    pub(super) fn get(&self, seq: u64) -> Option<&[u8]> {
        self.newer.get(seq).or_else(|| self.older.get(seq))
    }
}

impl Generation {
    fn clear(&mut self) {
        self.starts.clear();
        self.bytes.clear();
        self.bytes.shrink_to(CAPACITY_MAX);
        self.ticket = None;
    }

    fn get(&self, seq: u64) -> Option<&[u8]> {
        let place = self.starts.binary_search_by_key(&seq, |(it, _)| *it).ok()?;
        let begin = self.starts[place].1;
        let end = self
            .starts
            .get(place + 1)
            .map_or(self.bytes.len(), |it| it.1);
        self.bytes.get(begin..end)
    }
}

#[cfg(test)]
mod tests {
    use journal::{Index, Reign, ShardId};

    use super::*;

    fn ticket(index: u64) -> Ticket {
        Ticket {
            shard: ShardId(0),
            reign: Reign(1),
            index: Index(index),
        }
    }

    #[test]
    fn durable_records_are_dropped_from_unsynced_memory() {
        let mut unsynced = UnsyncedRecords::default();
        let push = |unsynced: &mut UnsyncedRecords, seq: u64, durable: u64| {
            let record = [seq as u8; 3];
            let records = [(seq, &record[..])].into_iter();
            unsynced.push(records, ticket(seq), |it| it.index.0 <= durable);
        };
        for seq in 1..=4 {
            push(&mut unsynced, seq, 0);
        }
        for seq in 1..=4 {
            assert_eq!(unsynced.get(seq), Some(&[seq as u8; 3][..]));
        }
        assert_eq!((unsynced.get(0), unsynced.get(5)), (None, None));
        for seq in 5..=100 {
            push(&mut unsynced, seq, seq - 3);
            for seq in seq - 2..=seq {
                assert_eq!(unsynced.get(seq), Some(&[seq as u8; 3][..]));
            }
        }
        assert!(unsynced.get(50).is_none());
    }
}
