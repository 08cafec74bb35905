//! The appended data of a partition that is not durable yet: its tickets, and the batches
//! themselves where readers may see them before they are durable.
//!
//! Its size is bounded by the journal's queue, plus the data that became durable since the last
//! [`Tail::settle`].

use std::collections::VecDeque;

use bytes::Bytes;
use journal::{Journal, Status, Ticket};

/// Data that is not durable yet; see the module docs.
#[derive(Default)]
pub(super) struct Tail {
    /// End offsets and the tickets with which they become durable, oldest first.
    pending: VecDeque<(u64, Ticket)>,
    /// Batches without a gap up to the end of the partition, or none.
    kept: VecDeque<TailBatch>,
}

/// A batch in memory, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TailBatch {
    /// Its first offset.
    pub(super) offset: u64,
    /// The offset after its last record.
    pub(super) end: u64,
    /// Its record number.
    pub(super) record: u64,
    pub(super) bytes: Bytes,
}

impl Tail {
    /// Notes that data before `end` becomes durable with `ticket`.
    pub(super) fn wait_for(&mut self, end: u64, ticket: Ticket) {
        match self.pending.back_mut() {
            Some((last, of)) if *of == ticket => *last = end,
            _ => self.pending.push_back((end, ticket)),
        }
    }

    /// Keeps the newest batch in memory.
    pub(super) fn keep(&mut self, batch: TailBatch) {
        self.kept.push_back(batch);
    }

    /// Returns whether batches are kept in memory: then the next one must be kept too, or there
    /// would be a gap.
    pub(super) fn is_keeping(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Drops the entries that have become durable; returns the new durable end, if it advanced.
    pub(super) fn settle(&mut self, journal: &Journal) -> Option<u64> {
        let mut durable = None;
        while let Some((end, ticket)) = self.pending.front()
            && journal.status(*ticket) == Status::Durable
        {
            durable = Some(*end);
            self.pending.pop_front();
        }
        while let Some(oldest) = self.kept.front()
            && durable.is_some_and(|durable| oldest.end <= durable)
        {
            self.kept.pop_front();
        }
        durable
    }

    /// Returns the ticket with which everything before `end` becomes durable.
    pub(super) fn ticket_of(&self, end: u64) -> Option<Ticket> {
        let covers = self.pending.iter().find(|(upto, _)| *upto >= end);
        covers.map(|(_, ticket)| *ticket)
    }

    /// Returns the ticket of the oldest data that is not durable.
    pub(super) fn oldest(&self) -> Option<Ticket> {
        self.pending.front().map(|(_, ticket)| *ticket)
    }

    /// Returns whether everything after offset `durable` is in memory.
    pub(super) fn is_whole(&self, durable: u64) -> bool {
        self.kept
            .front()
            .is_some_and(|oldest| oldest.offset <= durable)
    }

    /// Returns the batches in memory from the one that contains an offset, up to `size` bytes and
    /// one batch more.
    pub(super) fn batches(&self, offset: u64, size: usize) -> Vec<TailBatch> {
        let from = self.kept.partition_point(|it| it.end <= offset);
        let mut taken = 0;
        let batches = self.kept.range(from..).take_while(|it| {
            let fits = taken <= size;
            taken = taken.saturating_add(it.bytes.len());
            fits
        });
        batches.cloned().collect()
    }
}
