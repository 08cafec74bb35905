//! Compacts partitions, one at a time, away from the threads that serve connections.
//!
//! A compaction first gathers the keys of the new records. Then it judges all batches from the
//! beginning, a few megabytes at a time, and writes the survivors to the partition's compacted
//! stream. When all of them are durable, one guard switches the partition over to them, so a crash
//! leaves either the old state or the new one.
//!
//! The dirtiest partition comes first. A partition whose compaction fails pauses, longer after each
//! failure, so that it does not hold up others. While the journal accepts no appends, the
//! compaction waits and then continues from where it was.

mod batch;
mod failures;
mod run;
mod warnings;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use journal::{ReadLimit, Ticket};
use topics::compaction::{SurvivorIndex, Sweep};

use crate::partition::{Live, Slot};
use crate::places::Places;
use crate::topic::Topic;

pub(super) use failures::Failures;

/// Bytes that are judged before other work gets a turn.
const AT_ONCE: usize = 8 << 20;

/// Bytes written under one guard, in one block of the journal.
const CHUNK: usize = 256 << 10;

/// Limit of one read.
const READ: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// A compaction in progress.
pub(super) struct Compaction {
    slot: Arc<Slot>,
    places: Places,
    sweep: Sweep,
    log_start: u64,
    until: u64,
    /// The next record to judge.
    from: u64,
    left: SurvivorIndex,
    /// The first record that it wrote.
    first: Option<u64>,
    end: u64,
    /// The last record that it wrote.
    written: Option<Ticket>,
    /// Judged batches that are not written yet, with their offsets.
    unwritten: VecDeque<(u64, Bytes)>,
    /// The partition's next record when the compaction began, if every record before it is
    /// compacted.
    behind: Option<u64>,
    /// The first record after the compacted ones, once all batches are judged.
    rest: Option<u64>,
}

/// A partition that is due for compaction.
pub(super) struct Dirty {
    topic: Arc<Topic>,
    slot: Arc<Slot>,
    /// The share of its bytes that are not compacted, from 0 to 1.
    ratio: f64,
}

impl Dirty {
    /// Returns the partition, if it is due for compaction now.
    pub(super) fn of(
        topic: &Arc<Topic>,
        slot: &Arc<Slot>,
        live: &Live,
        now_ms: i64,
    ) -> Option<Self> {
        if !live.rules.is_compacted {
            return None;
        }
        let policy = &live.rules.compaction;
        let (_, ratio) = live.partition.decide_compaction(policy, now_ms)?;
        Some(Self {
            topic: topic.clone(),
            slot: slot.clone(),
            ratio,
        })
    }

    /// Returns the dirtier of the two; `self` if they are equal.
    pub(super) fn or_dirtier(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.ratio >= self.ratio => other,
            _ => self,
        }
    }
}
