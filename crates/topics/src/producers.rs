//! Idempotent producers, as in KIP-98 and KIP-360.
//!
//! The newest five batches of each producer's epoch are stored, since a client sends at most five
//! without waiting. A batch that equals one of them is a duplicate; any other must follow the
//! newest. An unknown producer may begin with any sequence: UNKNOWN_PRODUCER_ID is not answered.

use std::collections::HashMap;

use crate::ids::{NO_SEQUENCE, ProducerId, sequence_after};
use crate::partition::{Batch, BatchPosition, Marker, Refusal, Sequenced};

/// The number of batches of a producer that are recognised as duplicates.
pub(crate) const WINDOW: usize = 5;
const NO_COORDINATOR: i32 = -1;

/// A batch that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) last_sequence: i32,
    pub(crate) offset: u64,
    pub(crate) offsets: u32,
    pub(crate) timestamp: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) epoch: i16,
    pub(crate) coordinator_epoch: i32,
    pub(crate) last_ms: i64,
    /// The first offset of its open transaction.
    pub(crate) transaction: Option<u64>,
    /// Its newest batches, oldest first.
    pub(crate) window: Window,
}

/// The newest batches of a producer, at most [`WINDOW`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    kept: [Past; WINDOW],
    count: u8,
}

impl Window {
    pub(crate) fn push(&mut self, past: Past) {
        if usize::from(self.count) == WINDOW {
            self.kept.rotate_left(1);
            self.kept[WINDOW - 1] = past;
        } else {
            self.kept[usize::from(self.count)] = past;
            self.count += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[Past] {
        &self.kept[..usize::from(self.count)]
    }
}

impl Entry {
    fn new(epoch: i16) -> Self {
        Self {
            epoch,
            coordinator_epoch: NO_COORDINATOR,
            last_ms: 0,
            transaction: None,
            window: Window::default(),
        }
    }

    pub(crate) fn last_sequence(&self) -> i32 {
        let last = self.window.as_slice().last();
        last.map_or(NO_SEQUENCE, |it| it.last_sequence)
    }

    fn find(&self, first: i32, last: i32) -> Option<&Past> {
        let mut window = self.window.as_slice().iter();
        window.find(|it| it.last_sequence == last && sequence_after(first, it.offsets - 1) == last)
    }

    fn at(&mut self, epoch: i16, now_ms: i64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.window = Window::default();
        }
        self.last_ms = now_ms;
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    entries: HashMap<ProducerId, Entry>,
}

impl Producers {
    pub(crate) fn restore(entries: HashMap<ProducerId, Entry>) -> Self {
        Self { entries }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (ProducerId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    pub(crate) fn get(&self, id: ProducerId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// Returns the earlier batch if this one is a duplicate.
    pub(crate) fn judge(
        &self,
        producer: &Sequenced,
        batch: &Batch,
    ) -> Result<Option<Past>, Refusal> {
        let &Sequenced {
            id,
            epoch,
            sequence,
        } = producer;
        let Some(entry) = self.entries.get(&id) else {
            return Ok(None);
        };
        let last = sequence_after(sequence, batch.offsets - 1);
        let past = entry.find(sequence, last);
        if let Some(past) = past.filter(|_| entry.epoch == epoch) {
            return Ok(Some(*past));
        }
        check_epoch(entry, id, epoch)?;
        let last = match entry.epoch == epoch {
            true => entry.last_sequence(),
            false => NO_SEQUENCE,
        };
        // The sequence after "none" is 0.
        if sequence != sequence_after(last, 1) {
            return Err(Refusal::OutOfOrder { id, sequence, last });
        }
        if entry.transaction.is_some() && !batch.is_transactional {
            return Err(Refusal::Outside { id });
        }
        Ok(None)
    }

    pub(crate) fn judge_marker(&self, marker: &Marker) -> Result<(), Refusal> {
        let Some(entry) = self.entries.get(&marker.id) else {
            return Ok(());
        };
        check_epoch(entry, marker.id, marker.epoch)?;
        if marker.coordinator_epoch < entry.coordinator_epoch {
            return Err(Refusal::Coordinator {
                epoch: marker.coordinator_epoch,
                current: entry.coordinator_epoch,
            });
        }
        Ok(())
    }

    /// Applies a batch. Returns the producer if a transaction begins with it.
    pub(crate) fn appended(
        &mut self,
        place: BatchPosition,
        producer: &Sequenced,
        batch: &Batch,
    ) -> Option<ProducerId> {
        let entry = self.entries.entry(producer.id);
        let entry = entry.or_insert_with(|| Entry::new(producer.epoch));
        entry.at(producer.epoch, place.now_ms);
        entry.window.push(Past {
            last_sequence: sequence_after(producer.sequence, batch.offsets - 1),
            offset: place.offset,
            offsets: batch.offsets,
            timestamp: batch.timestamp_max,
        });
        let begins = batch.is_transactional && entry.transaction.is_none();
        begins.then(|| {
            entry.transaction = Some(place.offset);
            producer.id
        })
    }

    /// Applies a marker. Returns the first offset of the transaction that it ends.
    pub(crate) fn marked(&mut self, place: BatchPosition, marker: &Marker) -> Option<u64> {
        let entry = self.entries.entry(marker.id);
        let entry = entry.or_insert_with(|| Entry::new(marker.epoch));
        entry.at(marker.epoch, place.now_ms);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.transaction.take()
    }

    pub(crate) fn expire(&mut self, now_ms: i64, silent_ms: i64) {
        self.entries.retain(|_, entry| {
            entry.transaction.is_some() || now_ms.saturating_sub(entry.last_ms) < silent_ms
        });
    }

    /// Above `max` entries, removes a sixteenth at once, so that it does not search every time.
    pub(crate) fn forget_above(&mut self, max: usize) {
        if self.entries.len() <= max {
            return;
        }
        let silent = self.entries.iter();
        let silent = silent.filter(|(_, entry)| entry.transaction.is_none());
        let mut silent: Vec<_> = silent.map(|(id, entry)| (entry.last_ms, *id)).collect();
        silent.sort_unstable();
        for (_, id) in silent.into_iter().take(max / 16 + 1) {
            self.entries.remove(&id);
        }
    }
}

fn check_epoch(entry: &Entry, id: ProducerId, epoch: i16) -> Result<(), Refusal> {
    let current = entry.epoch;
    if epoch < current {
        return Err(Refusal::Epoch { id, epoch, current });
    }
    Ok(())
}
