//! The background work that is due.

use journal::{AppendError, Status, Ticket};
use store::{Location, Store};
use topics::record::{COMPACTED, Compacted, PARTITION, TOPIC};
use topics::{Config, Key, Partition, Retention};

use crate::compacting::Dirty;
use crate::partition::{Live, Slot};
use crate::places::{OWN, compacted_of, streams_of};
use crate::service::Topics;
use crate::state::{END, State};

/// Interval between two checks of the partitions, in milliseconds.
const LOOK_MS: u64 = 1_000;

/// Interval between two checks for expired items, in milliseconds.
const EXPIRE_MS: u64 = 60_000;

/// Interval between two checks for expired offsets and groups without any, in milliseconds: the
/// default of Kafka's `offsets.retention.check.interval.ms`. A group whose last offsets a client
/// deleted can still be described and deleted until then.
const EXPIRE_GROUPS_MS: u64 = 600_000;

/// Maximum bytes of a partition to replay at a start, besides those written within the last second.
/// It is lower with many partitions: all together replay at most as much as is read in a second.
const UNSAVED_SIZE_MAX: u64 = 1 << 20;
const UNSAVED_ALL_MAX: u64 = 256 << 20;

/// Lower limit of the bytes to replay per partition, however many partitions there are.
const UNSAVED_SIZE_MIN: u64 = 64 << 10;

/// Maximum age of changes without a snapshot, in milliseconds.
const UNSAVED_MS_MAX: u64 = 60_000;

/// Records per snapshot: two that are stored and three that trim older data.
const WRITTEN: usize = 5;

/// Minimum number of superseded records in the catalogue for it to be rewritten.
const DEAD_RECORDS_MIN: usize = 1_000;

impl Topics {
    /// Runs the background work that is due; returns whether more is due soon.
    pub fn sweep(&self) -> bool {
        let (now_ms, steady_ms) = (self.now_ms(), self.steady_ms());
        let is_doomed = self.state.empty_doomed(now_ms);
        let is_group = self.tend_groups();
        let is_transaction = self.tend_transactions();
        let is_waited_for = self.state.unpacked.let_go(self.state.platform.now_ns());
        let mut looks = self.state.looks.lock();
        if steady_ms >= looks.expiry_ms {
            looks.expiry_ms = steady_ms + EXPIRE_MS;
            self.expire_transactions();
            self.state.shorten_catalogue(now_ms);
        }
        if steady_ms >= looks.groups_ms {
            looks.groups_ms = steady_ms + EXPIRE_GROUPS_MS;
            self.expire_groups();
        }
        if steady_ms >= looks.partitions_ms {
            looks.partitions_ms = steady_ms + LOOK_MS;
            let is_incomplete = self.complete_topics();
            looks.is_any = self.tend_partitions() || is_incomplete;
        }
        is_doomed || is_group || is_transaction || is_waited_for || looks.is_any
    }

    /// Applies retention and snapshots to all partitions; returns whether a partition has changes
    /// to save.
    fn tend_partitions(&self) -> bool {
        let mut is_any = false;
        let mut dirtiest: Option<Dirty> = None;
        let now_ns = self.state.platform.now_ns();
        let (wall_ms, expiry_ms) = (self.time_ms(), self.expiry_ms());
        let topics = self.list();
        let count = topics.iter().map(|topic| topic.slots.len() as u64).sum();
        let unsaved_max = unsaved_max(count);
        for topic in topics {
            let config = &topic.about().config;
            for slot in &topic.slots {
                // Work that fails now is repeated by a later sweep.
                let Ok(mut live) = slot.lock(&self.state.journal) else {
                    continue;
                };
                live.partition.notice_time(wall_ms);
                self.retain(slot, &mut live, config, expiry_ms);
                self.save(slot, &mut live, unsaved_max);
                is_any |= live.is_touched || live.unsaved_bytes > 0;
                if let Some(dirty) = Dirty::of(&topic, slot, &live, expiry_ms)
                    && !self.compaction_failures().is_paused(slot.at, now_ns)
                {
                    dirtiest = Some(dirty.or_dirtier(dirtiest));
                }
            }
        }
        self.tend_compaction(dirtiest) || is_any
    }

    /// Deletes records that exceed the retention time or size.
    fn retain(&self, slot: &Slot, live: &mut Live, config: &Config, now_ms: i64) {
        if !config.cleanup().deletes {
            return;
        }
        let of = |key| config.saying(key, &self.state.options.defaults);
        let retention = Retention {
            ms: of(Key::RetentionMs).retention_ms(),
            fresh_ms: self.state.options.retention_check_interval_ms,
            bytes: of(Key::RetentionBytes).retention_bytes(),
        };
        if let Some(change) = live.partition.decide_retention(retention, now_ms) {
            // Records that cannot be deleted now are deleted by a later sweep.
            let _ = self.change_partition(slot, live, change);
        }
    }

    /// Takes a snapshot of a partition if it is worth it, and trims its stream before the oldest
    /// retained record.
    fn save(&self, slot: &Slot, live: &mut Live, unsaved_max: u64) {
        let now_ms = self.now_ms();
        let since_ms = now_ms.saturating_sub(live.saved_ms);
        let is_much = live.unsaved_bytes >= unsaved_max.max(16 * live.saved_size);
        let is_old = live.unsaved_bytes > 0 && since_ms >= UNSAVED_MS_MAX;
        if !(is_much || is_old || live.is_touched) {
            return;
        }
        let silent_ms = self.state.options.producer_silent_ms;
        let mut partition = live.partition.clone();
        partition.expire(self.expiry_ms(), silent_ms);
        // A failed snapshot is repeated later; until then a start replays more records.
        let compacted = live.compacted;
        if self
            .write_snapshot(slot, live, &partition, compacted)
            .is_ok()
        {
            live.partition = partition;
        }
    }

    /// Writes a snapshot of a partition and the extent of its compacted records, under one guard:
    /// all of it or nothing.
    pub(crate) fn write_snapshot(
        &self,
        slot: &Slot,
        live: &mut Live,
        partition: &Partition,
        compacted: Compacted,
    ) -> Result<(), AppendError> {
        let Location { shard, stream } = slot.at;
        let now_ms = self.now_ms();
        let (mut place, mut bytes) = (Vec::new(), Vec::new());
        compacted.encode(&mut place);
        partition.encode(live.next_record, &mut bytes);
        let mut guard = self.state.journal.lock(shard, now_ms);
        if live.is_touched {
            // The snapshot trims deleted records, which frees space.
            guard = guard.for_room();
        }
        guard.reserve(place.len() + bytes.len(), WRITTEN)?;
        let first = guard.append(Store::companion(stream), None, COMPACTED, &place)?;
        // Blocks of a shard become durable in order, so the data that the snapshot describes is
        // durable before it.
        guard.append(Store::companion(stream), None, PARTITION, &bytes)?;
        guard.trim(Store::companion(stream), first.offset)?;
        let log_start = partition.seek(partition.log_start()).unwrap_or_default();
        let own = log_start.checked_sub(OWN).unwrap_or(compacted.rest);
        let kept = log_start.clamp(compacted.first, compacted.end);
        guard.trim(compacted_of(stream), kept)?;
        guard.trim(stream, own.min(live.next_record))?;
        live.saved_size = bytes.len() as u64;
        live.saved_ms = now_ms;
        live.unsaved_bytes = 0;
        live.is_touched = false;
        Ok(())
    }
}

impl State {
    /// Trims streams of deleted topics whose deletion is durable.
    fn empty_doomed(&self, now_ms: u64) -> bool {
        let mut doomed = self.doomed.lock();
        let is_durable = |ticket: &Ticket| self.journal.status(*ticket) == Status::Durable;
        let due: Vec<_> = doomed
            .extract_if(.., |(ticket, _)| is_durable(ticket))
            .collect();
        let is_waiting = !doomed.is_empty();
        drop(doomed);
        for (_, places) in due {
            self.empty_now(&places, now_ms);
        }
        is_waiting
    }

    /// Empties a partition of a deleted topic again, unless its deletion is not durable yet: then it
    /// is emptied later.
    pub(crate) fn empty_gone(&self, at: Location, now_ms: u64) {
        let is_doomed = |places: &Vec<Location>| places.contains(&at);
        if !self
            .doomed
            .lock()
            .iter()
            .any(|(_, places)| is_doomed(places))
        {
            self.empty_now(&[at], now_ms);
        }
    }

    /// Trims streams. A stream that cannot be trimmed now is trimmed after the next start.
    pub(crate) fn empty_now(&self, places: &[Location], now_ms: u64) {
        for at in places {
            for stream in streams_of(at.stream) {
                if self.empty(Location { stream, ..*at }, now_ms).is_err() {
                    return;
                }
            }
        }
    }

    fn empty(&self, at: Location, now_ms: u64) -> Result<(), AppendError> {
        let Location { shard, stream } = at;
        let state = self.journal.stream(shard, stream);
        if state.is_some_and(|it| it.start < it.next) {
            self.journal.lock(shard, now_ms).trim(stream, END)?;
        }
        Ok(())
    }

    /// Rewrites the catalogue if most of its records are superseded. The newest record of each
    /// topic counts, so a crash midway is harmless.
    fn shorten_catalogue(&self, now_ms: u64) {
        let mut writing = self.writing.lock();
        let topics: Vec<_> = self.known.read().catalogue.iter().cloned().collect();
        if writing.records < 2 * topics.len() + DEAD_RECORDS_MIN {
            return;
        }
        let Location { shard, stream } = writing.at;
        let start = self.journal.stream(shard, stream).map_or(0, |it| it.next);
        for topic in &topics {
            let mut bytes = Vec::new();
            topic.encode(&mut bytes);
            if self.enter(&mut writing, TOPIC, &bytes, now_ms).is_err() {
                return;
            }
        }
        if self.journal.lock(shard, now_ms).trim(stream, start).is_ok() {
            writing.records = topics.len();
        }
    }
}

/// Returns the maximum bytes to replay per partition, given the number of partitions.
fn unsaved_max(partitions: u64) -> u64 {
    let share = UNSAVED_ALL_MAX / partitions.max(1);
    share.clamp(UNSAVED_SIZE_MIN, UNSAVED_SIZE_MAX)
}
