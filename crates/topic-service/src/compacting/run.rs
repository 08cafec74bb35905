//! The steps of a compaction.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use journal::record::RECORD_HEADER_SIZE;
use journal::{AppendError, Status, Ticket};
use recordbatch::Batch;
use store::Reach;
use topics::compaction::Survivor;
use topics::record::{BATCH, Compacted};

use super::{AT_ONCE, CHUNK, Compaction, Dirty, READ};
use crate::compacting::batch::{self, Gathered, Memory, gather_keys, judge};
use crate::counts::Count;
use crate::error::Storage;
use crate::hints::Hints;
use crate::partition::Slot;
use crate::places::{OWN, Places, compacted_of};
use crate::reader::{Next, Stored, Walked};
use crate::service::Topics;

/// The reason why a compaction stops.
enum Halt {
    /// The journal accepts no appends now; retried later.
    Later,
    /// The compaction failed and is abandoned.
    Failed(Storage),
    /// Records were deleted meanwhile, or the compacted ones were dropped because another node led;
    /// the compaction starts over.
    Outdated,
    /// The topic was deleted.
    Gone,
}

impl From<Storage> for Halt {
    fn from(storage: Storage) -> Self {
        match storage {
            Storage::Busy | Storage::DiskFull => Self::Later,
            other => Self::Failed(other),
        }
    }
}

impl Topics {
    /// Starts compacting a partition, or continues the current compaction; returns whether one is
    /// in progress.
    pub(crate) fn tend_compaction(&self, dirty: Option<Dirty>) -> bool {
        let state = &self.state;
        // The lock is held for the whole turn: skip instead of waiting for it.
        if state.is_compacting.swap(true, Ordering::AcqRel) {
            return true;
        }
        if dirty.is_none() && state.compaction.lock().is_none() {
            state.is_compacting.store(false, Ordering::Release);
            return false;
        }
        let topics = self.clone();
        let work = move || {
            topics.compact(dirty);
            topics.state.is_compacting.store(false, Ordering::Release);
        };
        if self.state.platform.offload_work(Box::new(work)).is_err() {
            state.is_compacting.store(false, Ordering::Release);
        }
        true
    }

    /// Runs one turn of the compaction.
    fn compact(&self, dirty: Option<Dirty>) {
        let mut under_way = self.state.compaction.lock();
        let begun = match under_way.take() {
            Some(compaction) => Some(compaction),
            None => dirty.and_then(|dirty| {
                let slot = dirty.slot.clone();
                let begun = self.begin_compaction(dirty);
                begun.unwrap_or_else(|halt| {
                    self.halt_compaction(&slot, halt);
                    None
                })
            }),
        };
        let Some(mut compaction) = begun else {
            return;
        };
        match self.go_on_compacting(&mut compaction) {
            Ok(true) => *under_way = Some(compaction),
            Ok(false) => self.compaction_failures().forget(compaction.slot.at),
            Err(Halt::Later) => *under_way = Some(compaction),
            Err(halt) => self.halt_compaction(&compaction.slot, halt),
        }
    }

    /// Abandons a compaction: pauses its partition, and removes the records that it wrote if no
    /// earlier compacted records precede them.
    fn halt_compaction(&self, slot: &Slot, halt: Halt) {
        match halt {
            Halt::Later => {}
            Halt::Gone => {
                self.compaction_failures().forget(slot.at);
                self.state.empty_gone(slot.at, self.now_ms());
            }
            Halt::Outdated => self.remove_leftovers(slot),
            Halt::Failed(storage) => {
                self.state.counts.add(Count::CompactionFailures, 1);
                let now_ns = self.state.platform.now_ns();
                let reason = storage.to_string();
                self.compaction_failures().add(slot.at, now_ns, reason);
                self.remove_leftovers(slot);
            }
        }
    }

    /// Trims the compacted stream of a partition that has no compacted records: leftovers of a
    /// compaction that did not finish.
    fn remove_leftovers(&self, slot: &Slot) {
        let is_empty = match slot.lock(&self.state.journal) {
            Ok(live) => live.compacted.first == live.compacted.end,
            Err(_) => false,
        };
        if !is_empty {
            return;
        }
        let (shard, stream) = (slot.at.shard, compacted_of(slot.at.stream));
        let Some(state) = self.state.journal.stream(shard, stream) else {
            return;
        };
        if state.start < state.next {
            let mut guard = self.state.journal.lock(shard, self.now_ms()).for_room();
            // If the trim fails, the next compaction repeats it.
            let _ = guard.trim(stream, state.next);
        }
    }

    /// Gathers the keys of the new records; `None` if there is nothing left to compact.
    fn begin_compaction(&self, dirty: Dirty) -> Result<Option<Compaction>, Halt> {
        let Dirty { topic, slot, .. } = dirty;
        let bytes_max = self.state.options.compaction_size_max;
        let (mut gather, left, range, cleaned, from, first, places, behind) = {
            let live = slot.lock(&self.state.journal).map_err(|_| Halt::Gone)?;
            let partition = &live.partition;
            let decided = partition.decide_compaction(&live.rules.compaction, self.expiry_ms());
            let Some((range, _)) = decided else {
                return Ok(None);
            };
            let is_whole = range.end == partition.end();
            let behind = is_whole.then(|| live.next_number());
            let cleaned = partition.cleaned().max(range.start);
            let (Ok(from), Ok(first)) = (partition.seek(cleaned), partition.seek(range.start))
            else {
                return Ok(None);
            };
            let gather = partition.gather(bytes_max);
            let (left, places) = (partition.leave(), live.places(&slot));
            (gather, left, range, cleaned, from, first, places, behind)
        };
        self.remove_leftovers(&slot);
        let (mut until, mut memory, mut unreadable) = (range.end, Memory::AsNeeded, 0);
        let walked = self.walk(Reach::Disk, places, from, READ, |stored: Stored| {
            if stored.offset() >= until {
                return Next::Enough;
            }
            if stored.end() <= cleaned {
                return Next::More;
            }
            match gather_keys(&mut gather, &stored, memory) {
                Gathered::Whole => {}
                Gathered::Unreadable => unreadable += 1,
                Gathered::Full => {
                    until = stored.offset();
                    return Next::Enough;
                }
            }
            memory = Memory::Limited;
            Next::More
        })?;
        if !matches!(walked, Walked::Done) {
            return Err(Halt::Outdated);
        }
        if unreadable > 0 {
            self.state.counts.add(Count::UnreadableBatches, unreadable);
            let reason = format!("{unreadable} batches cannot be read and stay as they are");
            self.compaction_failures().warn(&topic.about().name, reason);
        }
        let keep_ms = topic.about().config.delete_retention_ms();
        Ok(Some(Compaction {
            slot,
            places,
            sweep: gather.sweep(self.expiry_ms(), keep_ms),
            log_start: range.start,
            until,
            from: first,
            left,
            first: None,
            end: 0,
            written: None,
            unwritten: VecDeque::new(),
            behind,
            rest: None,
        }))
    }

    /// Writes the judged batches, judges more of them, and finishes after the last one; returns
    /// whether work remains.
    fn go_on_compacting(&self, compaction: &mut Compaction) -> Result<bool, Halt> {
        self.write_left(compaction)?;
        if compaction.rest.is_none() {
            self.judge_some(compaction)?;
            self.write_left(compaction)?;
        }
        // Readers see durable records only, and would take undurable ones for the end of the
        // partition.
        let status = |ticket| self.state.journal.status(ticket);
        let is_pending = match compaction.written.map(status) {
            Some(Status::Cut | Status::Moved) => return Err(Halt::Outdated),
            Some(Status::Pending) => true,
            // After a failure, the next append reports it.
            Some(Status::Durable | Status::Failed) | None => false,
        };
        match compaction.rest {
            Some(rest) if !is_pending => {
                self.finish_compaction(compaction, rest)?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Judges some batches.
    fn judge_some(&self, compaction: &mut Compaction) -> Result<(), Halt> {
        let mut seen = 0;
        let Compaction {
            sweep,
            log_start,
            until,
            from,
            unwritten,
            rest,
            ..
        } = compaction;
        let walked = self.walk(
            Reach::Disk,
            compaction.places,
            *from,
            READ,
            |stored: Stored| {
                if stored.offset() >= *until {
                    *rest = Some(stored.record);
                    return Next::Enough;
                }
                *from = stored.record + 1;
                if stored.end() <= *log_start {
                    return Next::More;
                }
                seen += stored.bytes.len();
                match judge(sweep, &stored) {
                    batch::Compacted::Nothing => {}
                    batch::Compacted::Unchanged => {
                        unwritten.push_back((stored.offset(), stored.bytes.clone()));
                    }
                    batch::Compacted::Rewritten(bytes) => {
                        unwritten.push_back((stored.offset(), bytes.into()));
                    }
                }
                match seen >= AT_ONCE {
                    true => Next::Enough,
                    false => Next::More,
                }
            },
        )?;
        match (walked, *rest) {
            (Walked::Done, Some(_)) => Ok(()),
            (Walked::Done, None) if seen >= AT_ONCE => Ok(()),
            (Walked::Done, None) if compaction.behind.is_some() => {
                compaction.rest = compaction.behind;
                Ok(())
            }
            _ => Err(Halt::Outdated),
        }
    }

    /// Writes the surviving batches. After an error, the remaining ones are written the next time.
    fn write_left(&self, compaction: &mut Compaction) -> Result<(), Halt> {
        let journal = &self.state.journal;
        let at = compaction.places.at;
        let chunk_size_max = CHUNK.min(journal.record_size_max());
        while !compaction.unwritten.is_empty() {
            // A deleted topic's streams were emptied, or will be.
            drop(compaction.slot.lock(journal).map_err(|_| Halt::Gone)?);
            let (count, size) = chunk(&compaction.unwritten, chunk_size_max);
            let mut guard = journal.lock(at.shard, self.now_ms());
            let reserved = guard.reserve(size, count);
            reserved.map_err(|error| Storage::append(journal, error))?;
            for _ in 0..count {
                let Some((offset, bytes)) = compaction.unwritten.front() else {
                    break;
                };
                let (batch, _) = Batch::split(bytes).map_err(Storage::unreadable)?;
                let appended = guard.append(compacted_of(at.stream), None, BATCH, bytes);
                let appended = appended.map_err(|error| Storage::append(journal, error))?;
                let is_same_reign = |it: Ticket| it.reign == appended.ticket.reign;
                if !compaction.written.is_none_or(is_same_reign) {
                    return Err(Halt::Outdated);
                }
                let record = appended.offset;
                compaction.first.get_or_insert(record);
                compaction.end = record + 1;
                compaction.written = Some(appended.ticket);
                compaction.left.push(&Survivor {
                    record,
                    offset: *offset,
                    size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                    timestamp_max: batch.header().max_timestamp,
                });
                compaction.unwritten.pop_front();
            }
        }
        Ok(())
    }

    /// Switches the partition over to the compacted records.
    fn finish_compaction(&self, compaction: &mut Compaction, rest: u64) -> Result<(), Halt> {
        let slot = &compaction.slot;
        let mut live = slot.lock(&self.state.journal).map_err(|_| Halt::Gone)?;
        let mut partition = live.partition.clone();
        partition.compacted(compaction.until, rest, compaction.left.clone());
        let Places { at, .. } = compaction.places;
        let stream = self.state.journal.stream(at.shard, compacted_of(at.stream));
        let next = stream.map_or(0, |it| it.next);
        let compacted = Compacted {
            first: compaction.first.unwrap_or(next),
            end: compaction.first.map_or(next, |_| compaction.end),
            rest: rest.saturating_sub(OWN),
        };
        let written = self.write_snapshot(slot, &mut live, &partition, compacted);
        written.map_err(|error: AppendError| Storage::append(&self.state.journal, error))?;
        live.partition = partition;
        live.compacted = compacted;
        live.hints = Hints::default();
        Ok(())
    }
}

/// Returns the count and bytes of the batches to write under one guard: at least one batch.
fn chunk(unwritten: &VecDeque<(u64, Bytes)>, size_max: usize) -> (usize, usize) {
    let (mut count, mut size) = (0, 0);
    for (_, bytes) in unwritten {
        let next = size + bytes.len();
        if count > 0 && next + (count + 1) * RECORD_HEADER_SIZE > size_max {
            break;
        }
        (count, size) = (count + 1, next);
    }
    (count, size)
}
