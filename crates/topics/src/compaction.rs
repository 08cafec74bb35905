//! Compaction: which records of a range survive.
//!
//! Of each key the newest record does. It takes two passes: [`Gather`] learns the newest offset of
//! each key in what is new, [`Sweep`] then judges everything from the beginning. A deletion outlives
//! what it deletes for a while, so that readers who are behind hear of it: until the *delete horizon*
//! that its batch is given the first time it is looked at (KIP-534). What was aborted goes; a marker
//! stays while there is something left of its transaction, and then until its horizon. The rules are
//! those of Kafka's `Cleaner`.
//!
//! What is judged ends at or before the last stable offset, so that every transaction in it has an
//! end. How much memory the keys may take is bounded; where it ends, so does the compaction, but not
//! before the first batch, whose keys are always taken ([`Gather::insert`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::ProducerId;
use crate::index::{Entry, Index};
use crate::partition::{Change, Ending, Partition, Place};
use crate::transactions::Aborted;

/// Facts of a batch that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its last offset.
    pub last_offset: u64,
    /// Whose transaction it belongs to.
    pub transaction: Option<ProducerId>,
    /// If it is a marker: how the transaction ends.
    pub marker: Option<Ending>,
    /// Until when deletions and markers in it are kept, if that has been said.
    pub delete_horizon_ms: Option<i64>,
}

/// Facts of a record that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Its offset.
    pub offset: u64,
    /// Its key. What has none is not kept.
    pub key: Option<&'a [u8]>,
    /// Whether it deletes its key.
    pub is_deletion: bool,
}

/// No more keys fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("keys of more than {bytes_max} bytes")]
pub struct Full {
    /// The limit.
    pub bytes_max: usize,
}

/// The first pass: over what is new.
#[derive(Debug)]
pub struct Gather {
    newest: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    bytes_max: usize,
    walk: Walk,
    aborted: Vec<Aborted>,
}

/// The second pass: over everything, from the beginning.
#[derive(Debug)]
pub struct Sweep {
    newest: HashMap<Box<[u8]>, u64>,
    walk: Walk,
    now_ms: i64,
    keep_deletions_ms: i64,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is left of it.
    Drop,
    /// It stays as it is.
    Keep,
    /// Each of its records is judged by [`Sweep::keeps`]. What deletions are left get this horizon,
    /// unless they have one.
    Look {
        /// In milliseconds since 1970-01-01 UTC.
        delete_horizon_ms: i64,
    },
    /// It stays, with this horizon.
    Stamp {
        /// In milliseconds since 1970-01-01 UTC.
        delete_horizon_ms: i64,
    },
}

/// A batch that is left, and where it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its place in the stream; before all that was not compacted.
    pub record: u64,
    /// The first offset that it had.
    pub offset: u64,
    /// Bytes.
    pub size: u32,
    /// The highest timestamp in it.
    pub timestamp_max: i64,
}

/// The batches that are left, as far as they are known; never larger than a bound.
#[derive(Clone, Debug)]
pub struct Left(Index);

/// Bytes that a key takes besides its own.
const KEY_OVERHEAD: usize = 48;

impl Partition {
    /// Begins a compaction; the keys take at most `bytes_max` of memory.
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

    /// Nothing is left so far.
    pub fn leave(&self) -> Left {
        Left(self.index.empty())
    }

    /// Takes what a compaction has left of everything before `until`; the first batch behind that is
    /// `rest`. What was written since it began stays as it is.
    pub fn compacted(&mut self, until: u64, rest: u64, left: Left) {
        self.index.replace(until, rest, self.end, left.0);
        self.apply(Change::Cleaned(until));
        self.index.trim(self.log_start);
    }
}

impl Left {
    /// The next batch that is left.
    pub fn push(&mut self, survivor: &Survivor) {
        let place = Place {
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
    /// Whether the keys of a batch count.
    pub fn wants(&mut self, batch: &Seen) -> bool {
        match batch.marker {
            Some(ending) => {
                self.walk.marker(batch, ending);
                false
            }
            None => !self.walk.is_aborted(batch),
        }
    }

    /// Takes the key of a record of a batch that counts. When it is full, the compaction ends before
    /// that batch.
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

    /// As [`Gather::key`], whatever memory it takes.
    pub fn insert(&mut self, key: &[u8], offset: u64) {
        if let Some(newest) = self.newest.get_mut(key) {
            *newest = offset.max(*newest);
            return;
        }
        self.bytes += key.len() + KEY_OVERHEAD;
        self.newest.insert(key.into(), offset);
    }

    /// All keys are known. Deletions are kept for `keep_deletions_ms` from now on.
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
    /// What becomes of a batch. Batches come in their order.
    pub fn judge(&mut self, batch: &Seen) -> Verdict {
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

    /// Whether a record of a batch that is looked at survives.
    pub fn keeps(&self, batch: &Seen, record: &Facts<'_>) -> bool {
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

/// Which transactions are going on while batches are walked through.
#[derive(Debug)]
struct Walk {
    /// Those that were aborted and not come to yet, by first offset; and where they end.
    ahead: BTreeMap<(u64, ProducerId), u64>,
    /// Those that were aborted, where they end, and whether there is anything left of them. A marker
    /// may be gone already, so the end has to be known without it.
    aborted: HashMap<ProducerId, (u64, bool)>,
    /// Those that were committed and of which there is something left.
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

    fn is_aborted(&mut self, batch: &Seen) -> bool {
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

    /// Whether there is something left that the marker ends.
    fn marker(&mut self, batch: &Seen, ending: Ending) -> bool {
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
