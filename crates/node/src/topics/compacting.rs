//! Compacting partitions, one at a time, away from the threads that serve connections.
//!
//! First the keys of what is new are gathered; then everything from the beginning is judged, a few
//! megabytes at a time, and what is left is written into the stream beside. When all is there it takes
//! the place of what was: under one guard, so that a stop finds the one or the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::topics::compaction::{Facts, Gather, Left, Seen, Survivor, Sweep, Verdict};
use ::topics::record::{BATCH, Compacted};
use ::topics::{Ending, ProducerId};
use journal::{AppendError, ReadLimit};
use recordbatch::codecs::{compress, unpack};
use recordbatch::{Batch, Compression, Header, MarkerKind, Records, retain, seal};

use super::Topics;
use super::error::Storage;
use super::keys::UNPACKED_SIZE_MAX;
use super::partition::{Live, Slot};
use super::places::{OWN, Places, compacted_of};
use super::reader::{Next, Stored, Walked};
use super::state::Topic;
use crate::store::Reach;

/// What is new, of all bytes, when it is worth it (Kafka's `min.cleanable.dirty.ratio`).
const DIRTY: f64 = 0.5;
/// Bytes that are judged before others have their turn.
const AT_ONCE: usize = 8 << 20;
/// Bytes that are written under one guard.
const CHUNK: usize = 256 << 10;
/// Read at a time.
const READ: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// A compaction that is under way.
pub(super) struct Compaction {
    slot: Arc<Slot>,
    places: Places,
    sweep: Sweep,
    log_start: u64,
    until: u64,
    /// The next record to look at.
    from: u64,
    left: Left,
    /// The records that it has written.
    first: Option<u64>,
    end: u64,
}

/// How far a compaction came.
enum Came {
    /// There is more to judge.
    Further,
    /// What comes behind all that was judged.
    ToTheEnd(u64),
}

impl Live {
    /// Whether the partition is to be compacted now.
    pub(super) fn is_dirty(&self) -> bool {
        self.rules.is_compacted && self.partition.decide_compaction(DIRTY).is_some()
    }
}

impl Topics {
    /// Has a partition compacted, or goes on with the one that is under way; whether it is.
    pub(super) fn tend_compaction(&self, dirty: Option<(Arc<Topic>, Arc<Slot>)>) -> bool {
        let state = &self.state;
        // Whoever is at it holds the lock for long.
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
        if self.inner.offload(Box::new(work)).is_err() {
            state.is_compacting.store(false, Ordering::Release);
        }
        true
    }

    /// Goes on for a while. What cannot be done now is begun anew another time.
    fn compact(&self, dirty: Option<(Arc<Topic>, Arc<Slot>)>) {
        let mut under_way = self.state.compaction.lock();
        let compaction = match under_way.take() {
            Some(compaction) => Some(compaction),
            None => dirty.and_then(|(topic, slot)| self.begin_compaction(&topic, slot)),
        };
        let Some(mut compaction) = compaction else {
            return;
        };
        match self.judge_some(&mut compaction) {
            Ok(Came::Further) => *under_way = Some(compaction),
            Ok(Came::ToTheEnd(rest)) => {
                // What was written and does not count is passed over.
                let _ = self.finish_compaction(compaction, rest);
            }
            Err(_) => {}
        }
    }

    /// Gathers the keys of what is new.
    fn begin_compaction(&self, topic: &Topic, slot: Arc<Slot>) -> Option<Compaction> {
        let bytes_max = self.state.options.compaction_size_max;
        let (mut gather, left, range, cleaned, from, first, places) = {
            let live = slot.lock(&self.state.journal).ok()?;
            let partition = &live.partition;
            let range = partition.decide_compaction(DIRTY)?;
            let cleaned = partition.cleaned().max(range.start);
            let from = partition.seek(cleaned).ok()?;
            let first = partition.seek(range.start).ok()?;
            let gather = partition.gather(bytes_max);
            let (left, places) = (partition.leave(), live.places(&slot));
            (gather, left, range, cleaned, from, first, places)
        };
        let mut until = range.end;
        let mut failed = false;
        let walked = self.walk(Reach::Disk, places, from, READ, |stored| {
            if stored.offset() >= until {
                return Next::Enough;
            }
            if stored.end() <= cleaned {
                return Next::More;
            }
            match gather_keys(&mut gather, &stored) {
                Some(true) => Next::More,
                Some(false) => {
                    until = stored.offset();
                    Next::Enough
                }
                None => {
                    failed = true;
                    Next::Enough
                }
            }
        });
        if failed || until <= cleaned || !matches!(walked, Ok(Walked::Done)) {
            return None;
        }
        let keep_ms = topic.about().config.delete_retention_ms();
        Some(Compaction {
            slot,
            places,
            sweep: gather.sweep(self.time_ms(), keep_ms),
            log_start: range.start,
            until,
            from: first,
            left,
            first: None,
            end: 0,
        })
    }

    /// Judges some batches, and writes what is left of them.
    fn judge_some(&self, compaction: &mut Compaction) -> Result<Came, Storage> {
        let mut seen = 0;
        let mut rest = None;
        let mut failed = None;
        let mut left = Vec::new();
        let Compaction {
            sweep,
            log_start,
            until,
            from,
            ..
        } = compaction;
        let walked = self.walk(Reach::Disk, compaction.places, *from, READ, |stored| {
            if stored.offset() >= *until {
                rest = Some(stored.record);
                return Next::Enough;
            }
            *from = stored.record + 1;
            if stored.end() <= *log_start {
                return Next::More;
            }
            seen += stored.bytes.len();
            match judge(sweep, &stored) {
                Ok(bytes) => left.extend(bytes.map(|bytes| (stored.offset(), bytes))),
                Err(error) => failed = Some(error),
            }
            match failed.is_some() || seen >= AT_ONCE {
                true => Next::Enough,
                false => Next::More,
            }
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        self.write_left(compaction, left)?;
        match (walked, rest) {
            (Walked::Done, Some(rest)) => Ok(Came::ToTheEnd(rest)),
            (Walked::Done, None) if seen >= AT_ONCE => Ok(Came::Further),
            _ => Err(Storage::unreadable("what was to be compacted has gone")),
        }
    }

    fn write_left(
        &self,
        compaction: &mut Compaction,
        left: Vec<(u64, Vec<u8>)>,
    ) -> Result<(), Storage> {
        let journal = &self.state.journal;
        let refused = |error: AppendError| Storage::append(journal, error);
        let at = compaction.places.at;
        let mut left = left.into_iter().peekable();
        while left.peek().is_some() {
            let mut size = 0;
            let mut guard = journal.lock(at.shard, self.now_ms());
            while let Some((offset, bytes)) =
                left.next_if(|(_, it)| size == 0 || size + it.len() <= CHUNK)
            {
                size += bytes.len();
                let appended = guard.append(compacted_of(at.stream), None, BATCH, &bytes);
                let record = appended.map_err(refused)?.offset;
                compaction.first.get_or_insert(record);
                compaction.end = record + 1;
                let (batch, _) = Batch::split(&bytes).map_err(Storage::unreadable)?;
                compaction.left.push(&Survivor {
                    record,
                    offset,
                    size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                    timestamp_max: batch.header().max_timestamp,
                });
            }
        }
        Ok(())
    }

    /// What is left takes the place of what was.
    fn finish_compaction(&self, compaction: Compaction, rest: u64) -> Result<(), Storage> {
        let slot = &compaction.slot;
        let mut live = match slot.lock(&self.state.journal) {
            Ok(live) => live,
            // There is nothing to compact any more.
            Err(_) => return Ok(()),
        };
        let mut partition = live.partition.clone();
        partition.compacted(compaction.until, rest, compaction.left);
        let Places { at, .. } = compaction.places;
        let stream = self.state.journal.stream(at.shard, compacted_of(at.stream));
        let next = stream.map_or(0, |it| it.next);
        let compacted = Compacted {
            first: compaction.first.unwrap_or(next),
            end: compaction.first.map_or(next, |_| compaction.end),
            rest: rest.saturating_sub(OWN),
        };
        let written = self.write_snapshot(slot, &mut live, &partition, compacted);
        written.map_err(|error| Storage::append(&self.state.journal, error))?;
        live.partition = partition;
        live.compacted = compacted;
        live.hints = super::hints::Hints::default();
        Ok(())
    }
}

/// Takes the keys of a batch; whether there was room for them. `None` if it is not to be read.
fn gather_keys(gather: &mut Gather, stored: &Stored) -> Option<bool> {
    let seen = seen(stored)?;
    if !gather.wants(&seen) {
        return Some(true);
    }
    let (batch, _) = Batch::split(&stored.bytes).ok()?;
    let payload = unpack(&batch, UNPACKED_SIZE_MAX).ok()?;
    for record in Records::new(&stored.header, &payload) {
        let record = record.ok()?;
        if let Some(key) = record.key
            && gather.key(key, record.offset.unsigned_abs()).is_err()
        {
            return Some(false);
        }
    }
    Some(true)
}

/// What is left of a batch.
fn judge(sweep: &mut Sweep, stored: &Stored) -> Result<Option<Vec<u8>>, Storage> {
    let unreadable = || Storage::unreadable("a batch that is to be compacted makes no sense");
    let seen = seen(stored).ok_or_else(unreadable)?;
    let as_it_is = || Ok(Some(stored.bytes.to_vec()));
    match sweep.judge(&seen) {
        Verdict::Drop => Ok(None),
        Verdict::Keep => as_it_is(),
        Verdict::Stamp { delete_horizon_ms } => thin(stored, delete_horizon_ms, |_| true),
        Verdict::Look { delete_horizon_ms } => thin(stored, delete_horizon_ms, |it| {
            let facts = Facts {
                offset: it.offset.unsigned_abs(),
                key: it.key,
                is_deletion: it.value.is_none(),
            };
            sweep.keeps(&seen, &facts)
        }),
    }
}

/// A batch with those of its records that stay.
fn thin(
    stored: &Stored,
    delete_horizon_ms: i64,
    keep: impl Fn(&recordbatch::Record<'_>) -> bool,
) -> Result<Option<Vec<u8>>, Storage> {
    let (batch, _) = Batch::split(&stored.bytes).map_err(Storage::unreadable)?;
    let payload = unpack(&batch, UNPACKED_SIZE_MAX).map_err(Storage::unreadable)?;
    let mut records = Vec::new();
    let retained = retain(
        &stored.header,
        &payload,
        delete_horizon_ms,
        keep,
        &mut records,
    );
    let retained = retained.map_err(Storage::unreadable)?;
    let header = retained.header;
    if header.count == 0 {
        return Ok(None);
    }
    if retained.dropped == 0 && header.attributes == stored.header.attributes {
        return Ok(Some(stored.bytes.to_vec()));
    }
    let compression = header.attributes.compression().unwrap_or(Compression::None);
    let mut bytes = Vec::new();
    seal(&header, &compress(compression, &records), &mut bytes);
    Ok(Some(bytes))
}

/// What the engine is told of a batch; `None` for a marker that is none.
fn seen(stored: &Stored) -> Option<Seen> {
    let header: &Header = &stored.header;
    let attributes = header.attributes;
    let marker = match attributes.is_control() {
        false => None,
        true => {
            let (batch, _) = Batch::split(&stored.bytes).ok()?;
            Some(match recordbatch::Marker::decode(&batch).ok()?.kind {
                MarkerKind::Abort => Ending::Abort,
                MarkerKind::Commit => Ending::Commit,
            })
        }
    };
    let producer = header.producer().filter(|_| attributes.is_transactional());
    Some(Seen {
        last_offset: header.last_offset().unsigned_abs(),
        transaction: producer.map(|it| ProducerId(it.id)),
        marker,
        delete_horizon_ms: attributes
            .has_delete_horizon()
            .then_some(header.base_timestamp),
    })
}
