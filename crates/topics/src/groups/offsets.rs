//! The offsets of a group: committed ones, and those of open transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::record::{MarkKept, Marks, Record};
use super::terms::Mark;
use crate::{Ending, ProducerId};

/// The most marks in one record when all of them are rewritten.
const MARKS_PER_RECORD: usize = 1_000;

/// The committed offset of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the last record that was read, -1 if unknown.
    pub leader_epoch: i32,
    /// The client's own text.
    pub metadata: Box<str>,
    /// When it was committed, in milliseconds since 1970-01-01 UTC.
    pub committed_ms: u64,
    /// When it expires, if the client set it.
    pub expires_ms: Option<u64>,
    /// Its position among all commits of the group.
    order: u64,
}

type Partitions = BTreeMap<Arc<str>, BTreeMap<u32, Committed>>;

/// The offsets of one group.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    committed: Partitions,
    /// The offsets of open transactions, by producer. None of the maps is empty.
    pending: BTreeMap<ProducerId, Partitions>,
    /// The number of commits so far.
    order: u64,
    /// The number of stored marks, committed and pending.
    count: usize,
    /// True once offsets were deleted: the group then exists even without offsets.
    has_forgotten: bool,
}

impl Offsets {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns whether there were offsets and all were deleted.
    pub(super) fn is_emptied(&self) -> bool {
        self.has_forgotten && self.count == 0
    }

    /// Restores the state that [`Offsets::is_emptied`] returns.
    pub(super) fn emptied(&mut self) {
        self.has_forgotten = true;
    }

    /// Returns by how many marks the count grows if this one is stored, as committed or in that
    /// transaction.
    pub(super) fn growth(
        &self,
        producer: Option<ProducerId>,
        topic: &str,
        partition: u32,
    ) -> usize {
        let held = match producer {
            None => Some(&self.committed),
            Some(producer) => self.pending.get(&producer),
        };
        let found = held
            .and_then(|it| it.get(topic))
            .is_some_and(|it| it.contains_key(&partition));
        usize::from(!found)
    }

    pub(super) fn get(&self, topic: &str, partition: u32) -> Option<&Committed> {
        self.committed.get(topic)?.get(&partition)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, u32, &Committed)> {
        flat(&self.committed)
    }

    /// Returns whether an open transaction would commit an offset of this partition.
    pub(super) fn is_pending(&self, topic: &str, partition: u32) -> bool {
        let mut pending = self.pending.values().filter_map(|it| it.get(topic));
        pending.any(|it| it.contains_key(&partition))
    }

    /// Stores marks, as committed or in that transaction.
    pub(super) fn commit(&mut self, producer: Option<ProducerId>, marks: &Marks) {
        if marks.marks.is_empty() {
            return;
        }
        let held = match producer {
            None => &mut self.committed,
            Some(producer) => self.pending.entry(producer).or_default(),
        };
        for mark in &marks.marks {
            self.order += 1;
            let committed = Committed {
                offset: mark.offset,
                leader_epoch: mark.leader_epoch,
                metadata: mark.metadata.clone(),
                committed_ms: marks.committed_ms,
                expires_ms: marks.expires_ms,
                order: self.order,
            };
            let before = put(held, &mark.topic, mark.partition, committed);
            self.count += usize::from(before.is_none());
        }
    }

    /// Returns whether that producer's transaction would commit offsets here.
    pub(super) fn has_pending(&self, producer: ProducerId) -> bool {
        self.pending.contains_key(&producer)
    }

    /// Ends a transaction: its marks become committed or are dropped. Marks that were committed
    /// later stay.
    pub(super) fn end(&mut self, producer: ProducerId, ending: Ending) {
        let Some(pending) = self.pending.remove(&producer) else {
            return;
        };
        for (topic, partitions) in pending {
            for (partition, committed) in partitions {
                self.count -= 1;
                let newer = self.get(&topic, partition);
                let counts = newer.is_none_or(|it| it.order < committed.order);
                if ending == Ending::Commit && counts {
                    let before = put(&mut self.committed, &topic, partition, committed);
                    self.count += usize::from(before.is_none());
                }
            }
        }
    }

    /// Deletes the marks of a partition, also in open transactions. Returns whether there were any.
    pub(super) fn forget(&mut self, topic: &str, partition: u32) -> bool {
        let mut found = usize::from(take(&mut self.committed, topic, partition));
        for pending in self.pending.values_mut() {
            found += usize::from(take(pending, topic, partition));
        }
        self.pending.retain(|_, it| !it.is_empty());
        self.count -= found;
        self.has_forgotten |= found > 0;
        found > 0
    }

    /// Returns the partitions of a topic that have marks.
    pub(super) fn partitions(&self, topic: &str) -> BTreeSet<u32> {
        let held = self.pending.values().chain([&self.committed]);
        let held = held.filter_map(|it| it.get(topic));
        held.flat_map(|it| it.keys().copied()).collect()
    }

    /// Returns records that restore these offsets, in the order of the commits.
    pub(super) fn records(&self, group: &Arc<str>) -> Vec<Record> {
        let pending = self.pending.iter();
        let pending = pending.flat_map(|(producer, it)| {
            flat(it).map(|(topic, partition, mark)| (Some(*producer), topic, partition, mark))
        });
        let committed = self
            .iter()
            .map(|(topic, partition, it)| (None, topic, partition, it));
        let mut all: Vec<_> = committed.chain(pending).collect();
        all.sort_unstable_by_key(|(.., it)| it.order);
        let alike = all.chunk_by(|(one, .., a), (other, .., b)| {
            one == other && a.committed_ms == b.committed_ms && a.expires_ms == b.expires_ms
        });
        let chunks = alike.flat_map(|it| it.chunks(MARKS_PER_RECORD));
        let records = chunks.filter_map(|chunk| {
            let (producer, .., first) = *chunk.first()?;
            let marks = Marks {
                group: group.clone(),
                committed_ms: first.committed_ms,
                expires_ms: first.expires_ms,
                marks: chunk
                    .iter()
                    .map(|(_, topic, partition, it)| it.mark(topic, *partition).into())
                    .collect(),
            };
            Some(match producer {
                None => Record::Committed(marks),
                Some(producer) => Record::Pending { producer, marks },
            })
        });
        records.collect()
    }
}

impl Committed {
    fn mark<'a>(&'a self, topic: &'a str, partition: u32) -> Mark<'a> {
        Mark {
            topic,
            partition,
            offset: self.offset,
            leader_epoch: self.leader_epoch,
            metadata: &self.metadata,
        }
    }
}

impl From<Mark<'_>> for MarkKept {
    fn from(mark: Mark<'_>) -> Self {
        Self {
            topic: mark.topic.into(),
            partition: mark.partition,
            offset: mark.offset,
            leader_epoch: mark.leader_epoch,
            metadata: mark.metadata.into(),
        }
    }
}

fn flat(held: &Partitions) -> impl Iterator<Item = (&str, u32, &Committed)> {
    held.iter().flat_map(|(topic, partitions)| {
        let partitions = partitions.iter();
        partitions.map(|(partition, it)| (&**topic, *partition, it))
    })
}

fn put(held: &mut Partitions, topic: &str, partition: u32, it: Committed) -> Option<Committed> {
    if let Some(partitions) = held.get_mut(topic) {
        return partitions.insert(partition, it);
    }
    held.insert(topic.into(), BTreeMap::from([(partition, it)]));
    None
}

fn take(held: &mut Partitions, topic: &str, partition: u32) -> bool {
    let Some(partitions) = held.get_mut(topic) else {
        return false;
    };
    let found = partitions.remove(&partition).is_some();
    if partitions.is_empty() {
        held.remove(topic);
    }
    found
}
