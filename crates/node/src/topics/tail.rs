//! What was appended to a partition and is not durable yet: when it will be, and, where readers may see
//! it before, the batches themselves.
//!
//! It holds no more than waits in the journal's own queue, which is bounded, and what became durable
//! since anybody looked.

use std::collections::VecDeque;

use bytes::Bytes;
use journal::{Journal, Status, Ticket};

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Tail {
    /// Where it ends, and when that is durable; oldest first.
    pending: VecDeque<(u64, Ticket)>,
    /// Batches without a gap up to the partition's end, or none.
    kept: VecDeque<Kept>,
}

/// A batch, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Its first offset.
    pub(super) offset: u64,
    /// Behind its last offset.
    pub(super) end: u64,
    /// The number of its record.
    pub(super) record: u64,
    pub(super) bytes: Bytes,
}

impl Tail {
    /// What was appended up to there is durable when that is.
    pub(super) fn wait_for(&mut self, end: u64, ticket: Ticket) {
        match self.pending.back_mut() {
            Some((last, of)) if *of == ticket => *last = end,
            _ => self.pending.push_back((end, ticket)),
        }
    }

    /// Keeps the newest batch.
    pub(super) fn keep(&mut self, batch: Kept) {
        self.kept.push_back(batch);
    }

    /// Whether batches are kept: then the next one has to be, lest there be a gap.
    pub(super) fn is_keeping(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Lets go what has become durable; up to where that is, if it is news.
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

    /// What must be durable before anything up to that offset is.
    pub(super) fn ticket_of(&self, end: u64) -> Option<Ticket> {
        let covers = self.pending.iter().find(|(upto, _)| *upto >= end);
        covers.map(|(_, ticket)| *ticket)
    }

    /// The oldest thing that is not durable.
    pub(super) fn oldest(&self) -> Option<Ticket> {
        self.pending.front().map(|(_, ticket)| *ticket)
    }

    /// Whether everything behind `durable` is kept.
    pub(super) fn is_whole(&self, durable: u64) -> bool {
        self.kept
            .front()
            .is_some_and(|oldest| oldest.offset <= durable)
    }

    /// The batches that are kept from the one with that offset on, as many as have `size` bytes and
    /// one more.
    pub(super) fn batches(&self, offset: u64, size: usize) -> Vec<Kept> {
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
