//! Compaction: which records of a range survive.
//!
//! The newest record of each key survives. It takes two passes: [`Gather`] learns the newest offset
//! of each key in the uncompacted range, [`Sweep`] then judges everything from the beginning. A
//! deletion stays until the *delete horizon* that its batch gets at the first compaction (KIP-534),
//! so that slow consumers see it. Aborted records are removed; a marker stays while records of its
//! transaction are left, and then until its horizon. The rules are those of Kafka's `Cleaner`.
//!
//! The range ends at or before the last stable offset, so that every transaction in it has an end.
//! The memory for keys is bounded: when it is full, the compaction ends there, but never before the
//! first batch, whose keys are always taken ([`Gather::insert`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::ProducerId;
use crate::index::{Entry, Index};
use crate::partition::{BatchPosition, Change, Ending, Partition};
use crate::transactions::Aborted;

/// The facts of a batch that compaction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchFacts {
    /// Its last offset.
    pub last_offset: u64,
    /// The producer of the transaction that it belongs to.
    pub transaction: Option<ProducerId>,
    /// If it is a marker: how the transaction ends.
    pub marker: Option<Ending>,
    /// The time until which deletions and markers in it stay, if it was set.
    pub delete_horizon_ms: Option<i64>,
}

/// The facts of a record that compaction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Its offset.
    pub offset: u64,
    /// Its key. A record without a key does not survive.
    pub key: Option<&'a [u8]>,
    /// True if it deletes its key (a null value).
    pub is_deletion: bool,
}

/// The keys do not fit into the memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the keys need more than {bytes_max} bytes")]
pub struct Full {
    /// The limit in bytes.
    pub bytes_max: usize,
}

/// The first pass, over the uncompacted range.
#[derive(Debug)]
pub struct Gather {
    newest: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    bytes_max: usize,
    walk: Walk,
    aborted: Vec<Aborted>,
}

/// The second pass, over everything from the beginning.
#[derive(Debug)]
pub struct Sweep {
    newest: HashMap<Box<[u8]>, u64>,
    walk: Walk,
    now_ms: i64,
    keep_deletions_ms: i64,
}

/// The decision on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The batch is removed.
    Drop,
    /// The batch stays as it is.
    Keep,
    /// [`Sweep::keeps`] judges each of its records. Surviving deletions get this horizon unless the
    /// batch has one.
    Look {
        /// In milliseconds since 1970-01-01 UTC.
        delete_horizon_ms: i64,
    },
    /// The batch stays and gets this horizon.
    Stamp {
        /// In milliseconds since 1970-01-01 UTC.
        delete_horizon_ms: i64,
    },
}

/// A batch that survives, and its place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// The number of its stream record; lower than all that were not compacted.
    pub record: u64,
    /// Its first offset before the compaction.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u32,
    /// The highest timestamp in it.
    pub timestamp_max: i64,
}

/// The index of the surviving batches, of bounded size.
#[derive(Clone, Debug)]
pub struct SurvivorIndex(Index);

/// The memory that a key takes in addition to its own bytes.
const KEY_OVERHEAD: usize = 48;

impl Partition {
    /// Begins a compaction whose keys take at most `bytes_max` of memory.
    pub fn gather(&self, bytes_max: usize) -> Gather {
        let aborted = self.all_aborted().to_vec();
        Gather {
            newest: HashMap::new(),
            bytes: 0,
            bytes_max,
            walk: Walk::new(&aborted),
            aborted,
        }
    }

    /// Returns an empty index for the surviving batches.
    pub fn leave(&self) -> SurvivorIndex {
        SurvivorIndex(self.index.empty())
    }

    /// Applies a compaction of everything before `until`; `rest` is the first batch after it.
    /// Batches that were written since the compaction began stay as they are.
    pub fn compacted(&mut self, until: u64, rest: u64, left: SurvivorIndex) {
        self.index.replace(until, rest, self.end, left.0);
        self.apply(Change::Cleaned(until));
        self.index.trim(self.log_start);
    }
}

impl SurvivorIndex {
    /// Adds the next surviving batch.
    pub fn push(&mut self, survivor: &Survivor) {
        let place = BatchPosition {
            offset: survivor.offset,
            record: survivor.record,
            now_ms: 0,
        };
        // The times of what was compacted replace these; see [`Partition::compacted`].
        let entry = Entry {
            size: survivor.size,
            timestamp_max: survivor.timestamp_max,
            dated_ms: 0,
        };
        self.0.appended(place, entry);
    }
}

impl Gather {
    /// Returns whether the keys of a batch count: it is neither aborted nor a marker.
    pub fn wants(&mut self, batch: &BatchFacts) -> bool {
        match batch.marker {
            Some(ending) => {
                self.walk.marker(batch, ending);
                false
            }
            None => !self.walk.is_aborted(batch),
        }
    }

    /// Adds the key of a record of a counted batch. When the memory is full, the compaction ends
    /// before that batch.
    pub fn key(&mut self, key: &[u8], offset: u64) -> Result<(), Full> {
        if let Some(newest) = self.newest.get_mut(key) {
            *newest = offset.max(*newest);
            return Ok(());
        }
        let bytes = self.bytes + key.len() + KEY_OVERHEAD;
        if bytes > self.bytes_max {
            let bytes_max = self.bytes_max;
            return Err(Full { bytes_max });
        }
        self.insert(key, offset);
        Ok(())
    }

    /// Adds a key as [`Gather::key`] does, without the memory limit.
    pub fn insert(&mut self, key: &[u8], offset: u64) {
        if let Some(newest) = self.newest.get_mut(key) {
            *newest = offset.max(*newest);
            return;
        }
        self.bytes += key.len() + KEY_OVERHEAD;
        self.newest.insert(key.into(), offset);
    }

    /// Begins the second pass. Deletions stay for `keep_deletions_ms` from `now_ms` on.
    pub fn sweep(self, now_ms: i64, keep_deletions_ms: i64) -> Sweep {
        Sweep {
            newest: self.newest,
            walk: Walk::new(&self.aborted),
            now_ms,
            keep_deletions_ms,
        }
    }
}

impl Sweep {
    /// Judges a batch. Batches are passed in order of offset.
    pub fn judge(&mut self, batch: &BatchFacts) -> Verdict {
        let delete_horizon_ms = self.now_ms.saturating_add(self.keep_deletions_ms);
        let Some(ending) = batch.marker else {
            return match self.walk.is_aborted(batch) {
                true => Verdict::Drop,
                false => Verdict::Look { delete_horizon_ms },
            };
        };
        let is_needed = self.walk.marker(batch, ending);
        match batch.delete_horizon_ms {
            _ if is_needed => Verdict::Keep,
            Some(horizon_ms) if horizon_ms <= self.now_ms => Verdict::Drop,
            Some(_) => Verdict::Keep,
            None => Verdict::Stamp { delete_horizon_ms },
        }
    }

    /// Returns whether a record of a batch with [`Verdict::Look`] survives.
    pub fn keeps(&self, batch: &BatchFacts, record: &Facts<'_>) -> bool {
        let Some(key) = record.key else {
            return false;
        };
        let newest = self.newest.get(key);
        let is_newest = newest.is_none_or(|newest| record.offset >= *newest);
        let horizon_ms = batch.delete_horizon_ms;
        let is_over = horizon_ms.is_some_and(|horizon_ms| horizon_ms <= self.now_ms);
        is_newest && !(record.is_deletion && is_over)
    }
}

/// The transactions that are open at the present position of a pass.
#[derive(Debug)]
struct Walk {
    /// Aborted transactions that begin later, by first offset, and where they end.
    ahead: BTreeMap<(u64, ProducerId), u64>,
    /// Aborted transactions that are open: where they end, and whether records of them are left.
    /// The marker may have been removed already, so the end is known without it.
    aborted: HashMap<ProducerId, (u64, bool)>,
    /// Committed transactions of which records are left.
    committed: HashSet<ProducerId>,
}

impl Walk {
    fn new(aborted: &[Aborted]) -> Self {
        let ahead = aborted.iter().map(|it| ((it.first, it.id), it.last));
        Self {
            ahead: ahead.collect(),
            aborted: HashMap::new(),
            committed: HashSet::new(),
        }
    }

    fn come_to(&mut self, offset: u64) {
        while let Some(next) = self.ahead.first_entry()
            && next.key().0 <= offset
        {
            let ((_, id), last) = next.remove_entry();
            self.aborted.insert(id, (last, false));
        }
    }

    fn is_aborted(&mut self, batch: &BatchFacts) -> bool {
        self.come_to(batch.last_offset);
        let Some(id) = batch.transaction else {
            return false;
        };
        if let Some((last, is_left)) = self.aborted.get_mut(&id)
            && batch.last_offset < *last
        {
            *is_left = true;
            return true;
        }
        self.committed.insert(id);
        false
    }

    /// Returns whether records of the transaction that the marker ends are left.
    fn marker(&mut self, batch: &BatchFacts, ending: Ending) -> bool {
        self.come_to(batch.last_offset);
        let Some(id) = batch.transaction else {
            return false;
        };
        match ending {
            Ending::Abort => self.aborted.remove(&id).is_some_and(|it| it.1),
            Ending::Commit => self.committed.remove(&id),
        }
    }
}

#[cfg(test)]
mod tests;
