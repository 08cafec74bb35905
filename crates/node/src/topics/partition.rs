//! One partition: the engine, its stream, and what of it is not durable yet.

use std::task::Waker;

use ::topics::record::{self, Compacted, Malformed};
use ::topics::{
    Batch, Change, Codec, CompactionPolicy, Config, Ending, Limits, Marker, Partition, Place,
    ProducerId, Sequenced, Timestamps, Topic as About,
};
use bytes::Bytes as Shared;
use journal::{Journal, Record, Status, Ticket};
use parking_lot::{Mutex, MutexGuard};
use recordbatch::{Batch as Bytes, MarkerKind, TimestampLimits, TimestampType};

use super::error::UnknownPartition;
use super::hints::Hints;
use super::places::{OWN, Places};
use super::state::OpenError;
use super::tail::{Kept, Tail};
use super::watchers::{Watchers, Woken};
use super::{Options, TopicDurability};
use crate::store::Location;

/// A partition, for as long as its topic is there.
pub(super) struct Slot {
    pub(super) at: Location,
    live: Mutex<Live>,
}

/// What is decided by.
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

/// The partition while it is held.
pub(super) struct Live {
    pub(super) partition: Partition,
    pub(super) rules: Rules,
    pub(super) hints: Hints,
    /// The next record of the partition's own stream.
    pub(super) next_record: u64,
    /// What was compacted.
    pub(super) compacted: Compacted,
    /// Bytes behind the newest snapshot, how large that is, and when it was taken.
    pub(super) unsaved_bytes: u64,
    pub(super) saved_size: u64,
    pub(super) saved_ms: u64,
    /// Before this is durable nothing that comes with it or behind it is told: the topic's entry in the
    /// catalogue, or the first batch after a start.
    beginning: Option<Ticket>,
    /// Nothing was appended since the start. What is shown before it is durable may be gone after the
    /// next one, which only what became durable gives another epoch: so the first batch is not.
    is_newly_led: bool,
    last_change: Option<Ticket>,
    /// Something has changed that is not in the newest snapshot.
    pub(super) is_touched: bool,
    /// What was appended and is not durable, as far as anybody has looked.
    pub(super) tail: Tail,
    watchers: Watchers,
    is_gone: bool,
}

impl Slot {
    /// Of a topic that was just made.
    pub(super) fn new(
        journal: &Journal,
        at: Location,
        about: &About,
        options: &Options,
        leading: Leading,
        creation: Ticket,
    ) -> Self {
        let mut partition = Partition::new(limits(options));
        leading.begin(&mut partition);
        let slot = Self::holding(at, about, partition);
        // What a making that was never told has left in it was cut off.
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

    /// Of a topic that is kept, before anything of it was read.
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

    /// Takes a record of its state: how it stood, and which record was the next then.
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

    /// From which record on its own stream is to be replayed.
    pub(super) fn next_record(&self) -> u64 {
        self.live.lock().next_record
    }

    /// Takes a record of its own stream.
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

    /// Everything of it was read, and all of that is durable: it is led from here on.
    pub(super) fn begin(&self, leading: Leading) {
        let mut live = self.live.lock();
        let end = live.partition.end();
        live.partition.durable(end);
        leading.begin(&mut live.partition);
        live.is_newly_led = true;
    }

    /// Locks it, unless the topic is gone.
    pub(super) fn lock(&self, journal: &Journal) -> Result<MutexGuard<'_, Live>, UnknownPartition> {
        let mut live = self.live.lock();
        if live.is_gone {
            return Err(UnknownPartition);
        }
        live.settle(journal);
        Ok(live)
    }

    /// The topic is gone.
    pub(super) fn close(&self) {
        let mut live = self.live.lock();
        live.is_gone = true;
        let woken = live.watchers.take();
        drop(live);
        woken.wake();
    }

    /// The topic is configured like this from now on.
    pub(super) fn configure(&self, config: &Config) {
        let mut live = self.live.lock();
        live.rules = Rules::of(config);
        let woken = live.watchers.take();
        drop(live);
        woken.wake();
    }

    /// Somebody does not wait any more; see [`Live::watch`].
    pub(super) fn unwatch(&self, number: u64) {
        self.live.lock().watchers.remove(number);
    }
}

impl Live {
    /// Takes a batch that is in the stream.
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

    /// A batch is the stream's next record.
    pub(super) fn appended(&mut self, offset: u64, batch: &Batch, now_ms: u64) {
        let place = self.place(offset, batch.size, now_ms);
        self.partition.appended(place, batch);
    }

    /// A marker is the stream's next record.
    pub(super) fn marked(&mut self, offset: u64, marker: &Marker, now_ms: u64) {
        let place = self.place(offset, marker.size, now_ms);
        self.partition.marked(place, marker);
    }

    fn place(&mut self, offset: u64, size: u32, now_ms: u64) -> Place {
        let record = self.next_number();
        self.next_record += 1;
        self.unsaved_bytes += u64::from(size);
        Place {
            offset,
            record,
            now_ms: i64::try_from(now_ms).unwrap_or(i64::MAX),
        }
    }

    /// In which epoch the next batch is written.
    pub(super) fn epoch(&self) -> i32 {
        self.partition.leader_epoch().unwrap_or_default()
    }

    /// What the next record is called.
    pub(super) fn next_number(&self) -> u64 {
        OWN + self.next_record
    }

    /// Where its records are.
    pub(super) fn places(&self, slot: &Slot) -> Places {
        Places {
            at: slot.at,
            compacted: self.compacted,
        }
    }

    /// The newest record, which begins at that offset, is durable when that is. Whoever waits for
    /// something new is to be woken if readers may see it already.
    pub(super) fn wait_for(&mut self, ticket: Ticket, offset: u64, bytes: &[u8]) -> Woken {
        if std::mem::take(&mut self.is_newly_led) {
            self.beginning = Some(ticket);
        }
        let end = self.partition.end();
        self.tail.wait_for(end, ticket);
        if self.is_shown_at_once() || self.tail.is_keeping() {
            self.tail.keep(Kept {
                offset,
                end,
                record: OWN + self.next_record - 1,
                bytes: Shared::copy_from_slice(bytes),
            });
        }
        self.reveal();
        match self.partition.high_watermark() {
            shown if shown == end => self.watchers.take(),
            _ => Woken::default(),
        }
    }

    /// Whether readers see what is in memory.
    fn is_shown_at_once(&self) -> bool {
        self.rules.durability == TopicDurability::Memory
    }

    /// Lets readers see what is in memory, if they may and nothing is missing before it.
    fn reveal(&mut self) {
        let is_there = self.beginning.is_none();
        if is_there && self.is_shown_at_once() && self.tail.is_whole(self.partition.durable_end()) {
            self.partition.show(self.partition.end());
        }
    }

    /// Has the waker woken when there is something new, if that is not to wait for the disk; what
    /// that is called.
    pub(super) fn watch(&mut self, waker: &Waker) -> Option<u64> {
        let is_all_shown = self.partition.high_watermark() == self.partition.end();
        (self.is_shown_at_once() && is_all_shown).then(|| self.watchers.add(waker))
    }

    /// A change is the stream's next record.
    pub(super) fn changed(&mut self, change: Change, ticket: Ticket) -> Woken {
        self.partition.apply(change);
        self.next_record += 1;
        self.last_change = Some(ticket);
        self.is_touched = true;
        self.watchers.take()
    }

    /// What must be durable before what the last change made may be told.
    pub(super) fn change_ticket(&self) -> Option<Ticket> {
        self.last_change
    }

    /// Takes note of what has become durable.
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

    /// What must be durable before anything up to that offset may be told; and what that rests on.
    /// Nothing, where readers see it already and nobody asks for more.
    pub(super) fn tickets(&self, end: u64) -> [Option<Ticket>; 2] {
        if self.is_shown_at_once() && end <= self.partition.high_watermark() {
            return [None, None];
        }
        [self.beginning, self.tail.ticket_of(end)]
    }

    /// The oldest thing that is not durable, if anything is.
    pub(super) fn oldest_ticket(&self) -> Option<Ticket> {
        self.beginning.or(self.tail.oldest())
    }
}

const NOT_OURS: Malformed = Malformed {
    what: "record of a partition of a topic",
};

/// What the engine is told of a batch that is stored.
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

/// Facts of a batch of records; `None` if they are none.
pub(super) fn facts(batch: &Bytes<'_>) -> Option<Batch> {
    let header = batch.header();
    Some(Batch {
        offsets: u32::try_from(i64::from(header.last_offset_delta) + 1).ok()?,
        size: u32::try_from(batch.bytes().len()).ok()?,
        timestamp_max: header.max_timestamp,
        timestamp_base: match header.attributes.timestamp_type() {
            // What the producer said does not count then.
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

/// As whom the node leads its partitions.
///
/// Alone it leads all of them from its start on, in an epoch of that start: the life of the journal,
/// which rises with each start and needs no record. Who wrote what stands in the batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leading {
    epoch: i32,
}

impl Leading {
    /// In this life of the journal. The first one's epoch is 0, as Kafka's is.
    pub(super) fn of(journal: &Journal) -> Self {
        let lives = journal.life().saturating_sub(1);
        // There are not as many segments as that.
        let epoch = i32::try_from(lives).unwrap_or(i32::MAX);
        Self { epoch }
    }

    fn begin(self, partition: &mut Partition) {
        let start = partition.end();
        let epoch = self.epoch;
        partition.apply(Change::Leader { epoch, start });
    }
}
