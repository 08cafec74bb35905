//! Appending record batches.

use std::sync::Arc;
use std::task::{Poll, Waker};

use journal::{Round, ShardId};
use platform::Durable;
use recordbatch::{Batch, PatchedBatch, Survey, validate};
use topics::{Claim, Decision, Denied, Participant, ProducerId, record};

use super::counts::Appends;
use super::error::ReadOnly;
use super::error::{ProduceError, Storage};
use super::keys;
use super::partition::{Live, Slot, facts};
use super::prepare::PreparedBatch;
use super::watchers::Woken;
use crate::service::Topics;
use crate::topic::{Topic, TopicRef};
use topics::Timestamps;

/// Appends the batches that arrived in one read and share one sync. Drop it after the last append:
/// until then the appended data may not become durable.
#[derive(Debug)]
pub struct Producing {
    topics: Topics,
    round: Round,
    appends: Appends,
    /// The topic that was used last.
    last: Option<FoundTopic>,
}

/// A topic that a [`Producing`] has looked up.
#[derive(Debug)]
pub struct FoundTopic {
    topic: Arc<Topic>,
    /// The number of changes of the topics when it was looked up.
    changes: u64,
}

impl FoundTopic {
    /// Returns the topic.
    pub fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }
}

/// The parts of a [`Producing`], while one batch is appended.
struct Placing<'p> {
    topics: &'p Topics,
    round: &'p Round,
    appends: &'p mut Appends,
}

/// The result of an append.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The offset of the first record.
    pub offset: u64,
    /// The append time that its records were stamped with, in milliseconds since 1970-01-01 UTC;
    /// `None` if the producer's timestamps stay.
    pub append_time_ms: Option<i64>,
    /// The first offset of the partition.
    pub log_start: u64,
    /// True if the batch was appended before; the offset is that of the first append.
    pub is_duplicate: bool,
    /// The durability that the acknowledgement waits for. Ignore it for `acks=0`.
    pub durable: Durable,
}

impl Topics {
    /// Ready when no shard is paused, as it is while the members of a cluster change; until then registers
    /// the waker. Changes of topics and users are refused with [`Storage::Busy`] meanwhile.
    pub fn poll_resumed(&self, waker: &Waker) -> Poll<()> {
        let journal = &self.state.journal;
        let mut shards = (0..journal.shard_count()).map(ShardId);
        match shards.any(|shard| journal.notify_resumed(shard, waker)) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }

    /// Ready when there may be room for a batch that was refused with [`Storage::Busy`]; until then
    /// registers the waker.
    pub fn poll_room(&self, waker: &Waker) -> Poll<()> {
        let journal = &self.state.journal;
        let shards = (0..journal.shard_count()).map(ShardId);
        // Any of them may be the one without room.
        match shards
            .filter(|shard| journal.notify_room(*shard, waker))
            .count()
        {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// Starts a round of appends.
    pub fn producing(&self) -> Producing {
        Producing {
            topics: self.clone(),
            round: self.state.journal.round(),
            appends: Appends::default(),
            last: None,
        }
    }
}

impl Producing {
    /// Returns whether it appends to these topics.
    pub fn is_of(&self, topics: &Topics) -> bool {
        Arc::ptr_eq(&self.topics.state, &topics.state)
    }

    /// Returns the topics that it appends to.
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Returns an existing topic, like [`Topics::find`]. The topic that was used last
    /// ([`Producing::keep`]) is not looked up again unless a topic has changed since.
    pub fn find(&mut self, topic: TopicRef<'_>) -> Option<FoundTopic> {
        let changes = self.topics.state.known.changes();
        let is_it = |last: &FoundTopic| last.changes == changes && last.topic.is(topic);
        if let Some(last) = self.last.take().filter(is_it) {
            return Some(last);
        }
        let topic = self.topics.find(topic)?;
        Some(FoundTopic { topic, changes })
    }

    /// Keeps a topic for the next batch to it.
    pub fn keep(&mut self, found: FoundTopic) {
        self.last = Some(found);
    }

    /// Appends one record batch as received. A transactional batch needs its transactional claim
    /// and is refused without it.
    pub fn append(
        &mut self,
        topic: &Topic,
        partition: u32,
        bytes: &[u8],
        transactional_id: Option<&str>,
    ) -> Result<Placed, ProduceError> {
        self.append_surveyed(topic, partition, bytes, None, transactional_id)
    }

    /// Like [`Producing::append`], for a prepared batch ([`Topics::prepare`]).
    pub fn append_prepared(
        &mut self,
        topic: &Topic,
        partition: u32,
        batch: &PreparedBatch,
        transactional_id: Option<&str>,
    ) -> Result<Placed, ProduceError> {
        let PreparedBatch { bytes, survey, .. } = batch;
        self.append_surveyed(topic, partition, bytes, *survey, transactional_id)
    }

    /// Appends a batch whose records were checked before, or are checked now.
    fn append_surveyed(
        &mut self,
        topic: &Topic,
        partition: u32,
        bytes: &[u8],
        survey: Option<Survey>,
        transactional_id: Option<&str>,
    ) -> Result<Placed, ProduceError> {
        let topics = &self.topics;
        let mut placing = Placing {
            topics,
            round: &self.round,
            appends: &mut self.appends,
        };
        if topic.events.is_some() {
            return Err(ReadOnly.into());
        }
        let slot = topic.slot(partition)?;
        let (batch, rest) = Batch::split(bytes)?;
        if !rest.is_empty() {
            return Err(ProduceError::NotOne);
        }
        let rules = topic.rules();
        validate(
            &batch,
            recordbatch::Rules {
                batch_size_max: rules.batch_size_max,
            },
        )?;
        let header = batch.header();
        let survey = match survey {
            Some(survey) => Some(survey),
            None if rules.is_compacted => Some(keys::check(&batch)?),
            None => recordbatch::survey(&batch).transpose()?,
        };
        if rules.timestamps == Timestamps::Create {
            let survey = survey.unwrap_or_else(|| Survey::of_header(header));
            survey.check(rules.timestamp_limits, topics.time_ms())?;
        }
        let timestamp_max = survey.map(|it| it.timestamp_max);
        let Some(producer) = header
            .producer()
            .filter(|_| header.attributes.is_transactional())
        else {
            return placing.place(slot, &batch, timestamp_max);
        };
        let claim = Claim {
            name: transactional_id.ok_or(Denied::NoName)?,
            producer: ProducerId(producer.id),
            epoch: producer.epoch,
        };
        let participant = Participant::Partition {
            topic: topic.about().id,
            index: partition,
        };
        // Locked until the batch is appended, so that the transaction cannot end meanwhile.
        let coordinating = topics.state.transactions.lock();
        coordinating.verify(&claim, &participant)?;
        placing.place(slot, &batch, timestamp_max)
    }
}

impl Drop for Producing {
    fn drop(&mut self) {
        self.topics.counts().add_appends(&self.appends);
    }
}

impl Placing<'_> {
    /// Decides and appends under the partition's lock. The maximum timestamp is that of the records
    /// if they were read, else that of the batch header.
    fn place(
        &mut self,
        slot: &Slot,
        batch: &Batch<'_>,
        timestamp_max: Option<i64>,
    ) -> Result<Placed, ProduceError> {
        let state = &self.topics.state;
        let mut facts = facts(batch).ok_or(ProduceError::NotOne)?;
        facts.timestamp_max = timestamp_max.unwrap_or(facts.timestamp_max);
        let mut live = slot.lock(&state.journal)?;
        let mut woken = Woken::default();
        let (offset, end, stamp, is_duplicate) = match live.partition.decide(&facts)? {
            Decision::Duplicate {
                offset,
                end,
                timestamp,
            } => (offset, end, timestamp, true),
            Decision::Append { offset } => {
                let now_ms = self.topics.now_ms();
                let stamp = i64::try_from(now_ms).unwrap_or(i64::MAX);
                if live.rules.timestamps == Timestamps::Append {
                    (facts.timestamp_max, facts.timestamp_base) = (stamp, stamp);
                }
                let placed = stamped(&live, batch, offset, facts.timestamp_max);
                let mut guard = self.round.lock(slot.at.shard, now_ms);
                let parts = placed.parts();
                let appended = guard.append_parts(slot.at.stream, None, record::BATCH, &parts);
                let appended = appended.map_err(|it| Storage::append(&state.journal, it))?;
                live.appended(offset, &facts, now_ms);
                drop(guard);
                self.appends.add(batch.header().count, placed.size());
                woken = live.wait_for(appended.ticket, offset, &parts);
                (offset, live.partition.end(), stamp, false)
            }
        };
        let placed = Placed {
            offset,
            append_time_ms: (live.rules.timestamps == Timestamps::Append).then_some(stamp),
            log_start: live.partition.log_start(),
            is_duplicate,
            durable: Durable::new(&state.journal, live.tickets(end)),
        };
        drop(live);
        woken.wake();
        Ok(placed)
    }
}

/// Returns the batch with the fields that the broker assigns.
fn stamped<'a>(
    live: &Live,
    batch: &Batch<'a>,
    offset: u64,
    timestamp_max: i64,
) -> PatchedBatch<'a> {
    let mut placed = PatchedBatch::new(batch);
    // The offset always fits: a log never holds 2^63 records.
    placed.place(i64::try_from(offset).unwrap_or(i64::MAX), live.epoch());
    if live.rules.timestamps == Timestamps::Append {
        placed.append_time(timestamp_max);
    } else if timestamp_max != batch.header().max_timestamp {
        placed.set_max_timestamp(timestamp_max);
    }
    placed
}
