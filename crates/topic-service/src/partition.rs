//! A partition: the engine, its stream, and the appended data that is not durable yet.

use std::task::Waker;

use std::sync::Arc;

use journal::{Journal, Record, ShardId, Status, Ticket};
use parking_lot::{Mutex, MutexGuard};
use recordbatch::{Batch as Bytes, MarkerKind, TimestampLimits, TimestampType};
use topics::record::{self, Compacted, Malformed};
use topics::{
    Batch, BatchPosition, Change, Codec, CompactionPolicy, Config, Ending, Limits, Marker,
    Partition, ProducerId, Sequenced, Timestamps, Topic as About,
};

use super::error::OpenError;
use super::error::UnknownPartition;
use super::hints::Hints;
use super::places::{OWN, Places};
use super::tail::{Tail, TailBatch};
use super::watchers::{Watchers, Woken};
use crate::options::Options;
use store::Location;
use topics::Durability as TopicDurability;

/// A partition of an existing topic.
pub(super) struct Slot {
    pub(super) at: Location,
    live: Mutex<Live>,
}

/// The topic settings that partition operations read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) batch_size_max: usize,
    pub(super) timestamps: Timestamps,
    pub(super) timestamp_limits: TimestampLimits,
    pub(super) durability: TopicDurability,
    pub(super) is_compacted: bool,
    pub(super) compaction: CompactionPolicy,
    /// The codec to which batches are recompressed; `None` leaves them as they are.
    pub(super) codec: Option<Codec>,
}

impl Rules {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            batch_size_max: config.batch_size_max(),
            timestamps: config.timestamps(),
            timestamp_limits: TimestampLimits {
                ahead_ms_max: config.timestamp_after_ms_max(),
                behind_ms_max: config.timestamp_before_ms_max(),
            },
            durability: config.durability(),
            is_compacted: config.cleanup().compacts,
            compaction: config.compaction(),
            codec: config.compression(),
        }
    }
}

/// The state of a partition, under its lock.
pub(super) struct Live {
    pub(super) partition: Partition,
    pub(super) rules: Rules,
    pub(super) hints: Hints,
    /// The next record of the partition's own stream.
    pub(super) next_record: u64,
    /// The extent of the compacted records.
    pub(super) compacted: Compacted,
    /// Bytes appended since the newest snapshot, the snapshot's size, and the time it was taken.
    pub(super) unsaved_bytes: u64,
    pub(super) saved_size: u64,
    pub(super) saved_ms: u64,
    /// A write that must be durable before anything appended with or after it is acknowledged: the
    /// topic's catalogue entry, or the first batch after a start.
    beginning: Option<Ticket>,
    /// True until the first append after a restart. That batch stays hidden until it is durable: if
    /// readers saw it and a crash lost it, the next start would reuse its epoch and consumers could
    /// not detect the truncation.
    is_newly_led: bool,
    last_change: Option<Ticket>,
    /// True if the newest snapshot does not contain every change.
    pub(super) is_touched: bool,
    /// Appended data that was not durable when last checked.
    pub(super) tail: Tail,
    watchers: Watchers,
    is_gone: bool,
}

impl Slot {
    /// Creates a partition of a new topic.
    pub(super) fn new(
        journal: &Journal,
        at: Location,
        about: &About,
        options: &Options,
        leading: &Leading,
        creation: Ticket,
    ) -> Self {
        let mut partition = Partition::new(limits(options));
        leading.begin(at.shard, &mut partition);
        let slot = Self::holding(at, about, partition);
        // An earlier creation that was never acknowledged may have left records in the stream: they
        // are trimmed.
        let stream = journal.stream(at.shard, at.stream);
        let mut live = slot.live.lock();
        live.next_record = stream.map_or(0, |it| it.next);
        live.beginning = Some(creation);
        drop(live);
        slot
    }

    fn holding(at: Location, about: &About, partition: Partition) -> Self {
        Self {
            at,
            live: Mutex::new(Live {
                partition,
                rules: Rules::of(&about.config),
                hints: Hints::default(),
                next_record: 0,
                compacted: Compacted::default(),
                unsaved_bytes: 0,
                saved_size: 0,
                saved_ms: 0,
                beginning: None,
                is_newly_led: false,
                last_change: None,
                is_touched: false,
                tail: Tail::default(),
                watchers: Watchers::default(),
                is_gone: false,
            }),
        }
    }

    /// Creates a partition of a stored topic, before its records are read.
    pub(super) fn unread(
        journal: &Journal,
        at: Location,
        about: &About,
        options: &Options,
    ) -> Self {
        let slot = Self::holding(at, about, Partition::new(limits(options)));
        let stream = journal.stream(at.shard, at.stream);
        slot.live.lock().next_record = stream.map_or(0, |it| it.start);
        slot
    }

    /// Restores a snapshot from the state stream: the partition's state, and its next record at
    /// that time.
    pub(super) fn restore(&self, it: &Record, options: &Options) -> Result<(), OpenError> {
        let mut live = self.live.lock();
        match it.tag {
            record::PARTITION => {
                let snapshot = Partition::decode(&it.payload, limits(options))?;
                live.partition = snapshot.partition;
                live.next_record = snapshot.records;
            }
            record::PARTITION_UNDATED => {
                let written_ms = i64::try_from(it.time_ms).unwrap_or(i64::MAX);
                let snapshot = Partition::decode_undated(&it.payload, limits(options), written_ms)?;
                live.partition = snapshot.partition;
                live.next_record = snapshot.records;
            }
            record::COMPACTED => live.compacted = Compacted::decode(&it.payload)?,
            _ => return Err(NOT_OURS.into()),
        }
        Ok(())
    }

    /// Returns the first record of the partition's own stream to replay.
    pub(super) fn next_record(&self) -> u64 {
        self.live.lock().next_record
    }

    /// Replays a record of the partition's own stream.
    pub(super) fn replay(&self, it: &Record) -> Result<(), OpenError> {
        let mut live = self.live.lock();
        live.next_record = it.offset;
        match it.tag {
            record::BATCH => live.take(&it.payload, it.time_ms)?,
            record::CHANGE => {
                live.partition.apply(Change::decode(&it.payload)?);
                live.next_record += 1;
            }
            _ => return Err(NOT_OURS.into()),
        }
        Ok(())
    }

    /// Starts leading the partition. All of its records have been read and are durable.
    pub(super) fn begin(&self, leading: &Leading) {
        let mut live = self.live.lock();
        let end = live.partition.end();
        live.partition.durable(end);
        leading.begin(self.at.shard, &mut live.partition);
        live.is_newly_led = true;
    }

    /// Locks the partition, unless its topic was deleted.
    pub(super) fn lock(&self, journal: &Journal) -> Result<MutexGuard<'_, Live>, UnknownPartition> {
        let mut live = self.live.lock();
        if live.is_gone {
            return Err(UnknownPartition);
        }
        live.settle(journal);
        Ok(live)
    }

    /// Closes the partition because its topic was deleted.
    pub(super) fn close(&self) {
        let mut live = self.live.lock();
        live.is_gone = true;
        let woken = live.watchers.take();
        drop(live);
        woken.wake();
    }

    /// Applies a new topic configuration.
    pub(super) fn configure(&self, config: &Config) {
        let mut live = self.live.lock();
        live.rules = Rules::of(config);
        let woken = live.watchers.take();
        drop(live);
        woken.wake();
    }

    /// Removes a watcher; see [`Live::watch`].
    pub(super) fn unwatch(&self, number: u64) {
        self.live.lock().watchers.remove(number);
    }
}

impl Live {
    /// Applies a stored batch to the engine.
    fn take(&mut self, bytes: &[u8], time_ms: u64) -> Result<(), Malformed> {
        let (batch, _) = Bytes::split(bytes).map_err(|_| NOT_OURS)?;
        let offset = u64::try_from(batch.header().base_offset).map_err(|_| NOT_OURS)?;
        if offset < self.partition.end() {
            return Err(NOT_OURS);
        }
        let epoch = batch.header().leader_epoch;
        self.partition.apply(Change::Leader {
            epoch,
            start: offset,
        });
        match Facts::of(&batch)? {
            Facts::Batch(facts) => self.appended(offset, &facts, time_ms),
            Facts::Marker(marker) => self.marked(offset, &marker, time_ms),
        }
        Ok(())
    }

    /// Applies a batch that was appended as the stream's next record.
    pub(super) fn appended(&mut self, offset: u64, batch: &Batch, now_ms: u64) {
        let place = self.place(offset, batch.size, now_ms);
        self.partition.appended(place, batch);
    }

    /// Applies a transaction marker that was appended as the stream's next record.
    pub(super) fn marked(&mut self, offset: u64, marker: &Marker, now_ms: u64) {
        let place = self.place(offset, marker.size, now_ms);
        self.partition.marked(place, marker);
    }

    fn place(&mut self, offset: u64, size: u32, now_ms: u64) -> BatchPosition {
        let record = self.next_number();
        self.next_record += 1;
        self.unsaved_bytes += u64::from(size);
        BatchPosition {
            offset,
            record,
            now_ms: i64::try_from(now_ms).unwrap_or(i64::MAX),
        }
    }

    /// Returns the leader epoch of the next batch.
    pub(super) fn epoch(&self) -> i32 {
        self.partition.leader_epoch().unwrap_or_default()
    }

    /// Returns the number of the next record.
    pub(super) fn next_number(&self) -> u64 {
        OWN + self.next_record
    }

    /// Returns the locations of the partition's records.
    pub(super) fn places(&self, slot: &Slot) -> Places {
        Places {
            at: slot.at,
            compacted: self.compacted,
        }
    }

    /// Notes that the newest record, which begins at `offset`, is durable with `ticket`. Returns
    /// the watchers to wake, if readers may see the record already.
    pub(super) fn wait_for(&mut self, ticket: Ticket, offset: u64, parts: &[&[u8]]) -> Woken {
        if std::mem::take(&mut self.is_newly_led) {
            self.beginning = Some(ticket);
        }
        let end = self.partition.end();
        self.tail.wait_for(end, ticket);
        if self.is_shown_at_once() || self.tail.is_keeping() {
            self.tail.keep(TailBatch {
                offset,
                end,
                record: OWN + self.next_record - 1,
                bytes: parts.concat().into(),
            });
        }
        self.reveal();
        match self.partition.high_watermark() {
            shown if shown == end => self.watchers.take(),
            _ => Woken::default(),
        }
    }

    /// Returns whether readers see records that are in memory and not durable.
    fn is_shown_at_once(&self) -> bool {
        self.rules.durability == TopicDurability::Memory
    }

    /// Shows the records in memory to readers, if that is allowed and no earlier record is missing.
    fn reveal(&mut self) {
        let is_there = self.beginning.is_none();
        if is_there && self.is_shown_at_once() && self.tail.is_whole(self.partition.durable_end()) {
            self.partition.show(self.partition.end());
        }
    }

    /// Registers the waker for new data, if readers see data before it is durable; returns the
    /// number of the registration.
    pub(super) fn watch(&mut self, waker: &Waker) -> Option<u64> {
        let is_all_shown = self.partition.high_watermark() == self.partition.end();
        (self.is_shown_at_once() && is_all_shown).then(|| self.watchers.add(waker))
    }

    /// Applies a change that was appended as the stream's next record.
    pub(super) fn changed(&mut self, change: Change, ticket: Ticket) -> Woken {
        self.partition.apply(change);
        self.next_record += 1;
        self.last_change = Some(ticket);
        self.is_touched = true;
        self.watchers.take()
    }

    /// Returns the ticket that must be durable before the last change is acknowledged.
    pub(super) fn change_ticket(&self) -> Option<Ticket> {
        self.last_change
    }

    /// Updates the tail with the data that has become durable.
    fn settle(&mut self, journal: &Journal) {
        let is_durable = |ticket| journal.status(ticket) == Status::Durable;
        self.beginning = self.beginning.filter(|it| !is_durable(*it));
        if self.beginning.is_some() {
            return;
        }
        if let Some(end) = self.tail.settle(journal) {
            self.partition.durable(end);
        }
        self.reveal();
    }

    /// Returns the tickets that must be durable before anything before offset `end` is
    /// acknowledged: of the data, and of the write it depends on. `None` where readers see the data
    /// at once and no durability is required.
    pub(super) fn tickets(&self, end: u64) -> [Option<Ticket>; 2] {
        if self.is_shown_at_once() && end <= self.partition.high_watermark() {
            return [None, None];
        }
        [self.beginning, self.tail.ticket_of(end)]
    }

    /// Returns the ticket of the oldest data that is not durable.
    pub(super) fn oldest_ticket(&self) -> Option<Ticket> {
        self.beginning.or(self.tail.oldest())
    }
}

const NOT_OURS: Malformed = Malformed {
    what: "record of a partition of a topic",
};

/// The facts about a stored batch that the engine needs.
pub(super) enum Facts {
    Batch(Batch),
    Marker(Marker),
}

impl Facts {
    pub(super) fn of(batch: &Bytes<'_>) -> Result<Self, Malformed> {
        let header = batch.header();
        let size = u32::try_from(batch.bytes().len()).map_err(|_| NOT_OURS)?;
        if !header.attributes.is_control() {
            return facts(batch).ok_or(NOT_OURS).map(Self::Batch);
        }
        let marker = recordbatch::Marker::decode(batch).map_err(|_| NOT_OURS)?;
        Ok(Self::Marker(Marker {
            id: ProducerId(marker.producer_id),
            epoch: marker.producer_epoch,
            ending: match marker.kind {
                MarkerKind::Abort => Ending::Abort,
                MarkerKind::Commit => Ending::Commit,
            },
            coordinator_epoch: marker.coordinator_epoch,
            size,
            timestamp: header.max_timestamp,
        }))
    }
}

/// Returns the facts of a batch of records; `None` for any other batch.
pub(super) fn facts(batch: &Bytes<'_>) -> Option<Batch> {
    let header = batch.header();
    Some(Batch {
        offsets: u32::try_from(i64::from(header.last_offset_delta) + 1).ok()?,
        size: u32::try_from(batch.bytes().len()).ok()?,
        timestamp_max: header.max_timestamp,
        timestamp_base: match header.attributes.timestamp_type() {
            // The producer's timestamp is ignored for append-time topics.
            TimestampType::Append => header.max_timestamp,
            TimestampType::Create => header.base_timestamp,
        },
        producer: header.producer().map(|it| Sequenced {
            id: ProducerId(it.id),
            epoch: it.epoch,
            sequence: it.sequence,
        }),
        is_transactional: header.attributes.is_transactional(),
    })
}

fn limits(options: &Options) -> Limits {
    Limits {
        producers_max: options.producers_max,
        ..Limits::default()
    }
}

/// The leader epochs of this node's partitions, by shard.
///
/// A node alone leads every partition from its start on, in an epoch of that start: the number of
/// the journal's life, which rises at each start and needs no record. In a cluster the epoch is the
/// term of the shard, which is higher than all lives before. The batches store the epoch in which
/// they were written.
#[derive(Clone, Debug)]
pub(super) struct Leading {
    epochs: Arc<[i32]>,
}

impl Leading {
    /// Returns the epochs of a journal. The first epoch is 0, as in Kafka.
    pub(super) fn of(journal: &Journal) -> Self {
        let epoch = |shard| {
            let epoch = journal.leader_epoch(ShardId(shard)).saturating_sub(1);
            // The number of lives and terms cannot reach the limit of `i32`.
            i32::try_from(epoch).unwrap_or(i32::MAX)
        };
        Self {
            epochs: (0..journal.shard_count()).map(epoch).collect(),
        }
    }

    fn begin(&self, shard: ShardId, partition: &mut Partition) {
        let start = partition.end();
        let epoch = self.epochs[usize::from(shard.0)];
        partition.apply(Change::Leader { epoch, start });
    }
}
