//! Conversation events as read-only topics, one per namespace.
//!
//! `org.namespace.conversations` has one partition per shard of the journal; the offsets of a
//! partition are those of the shard's events ([`Conversations::feed`]). There
//! is no second copy: batches are built from events when they are read. An event that was deleted
//! keeps its offset and has no record, as after compaction.
//!
//! The encoding of an event is the listener's: see [`Tell`].

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, Waker};

use ::topics::{Config, Find, NAME_LENGTH_MAX, OutOfRange, Topic as About, TopicId};
use bytes::Bytes;
use conversation_service::Conversations;
use conversation_service::feed::{
    Batch as FeedBatch, BatchLimit as FeedLimit, Partition as FeedPartition,
    Partitions as FeedPartitions, Reach as Extent, Row,
};
use journal::{Follow, Following, Health, ShardId, StreamId};
use parking_lot::{Mutex, RwLock};
use platform::Pending;
use recordbatch::{Builder, NO_TIMESTAMP, Template};
use store::Reach;

use super::error::{FetchError, Storage, UnknownPartition};
use super::fetch::{Ask, Fetched};
use super::offsets::{Located, PartitionView};
use super::state::Topic;
use super::{TopicRef, Topics};

/// Only durable events are shown, so no event can be replaced after a crash and one epoch is
/// enough.
const LEADER_EPOCH: i32 = 0;

/// The suffix of such a topic's name.
const SUFFIX: &str = ".conversations";

/// Maximum events of one batch, and maximum bytes of the messages that they refer to.
const ROWS_MAX: usize = 1_000;
const BYTES_MAX: usize = 1 << 20;

/// INVALID_TOPIC_EXCEPTION: the topic is read-only, and its name is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the topic ORG.NAMESPACE.conversations has the events of conversations and can only be read"
)]
pub struct ReadOnly;

/// Encodes events as records.
pub trait Tell: Send + Sync {
    /// Appends the record of an event of `conversation` (`org/namespace/x`) to `out`.
    fn tell(&self, conversation: &str, row: &Row, out: &mut Vec<u8>);
}

/// The event topics of all namespaces.
pub(super) struct EventTopics {
    /// The encoder of events; without it there are no event topics.
    tell: Option<Arc<dyn Tell>>,
    found: Mutex<AssignedTopics>,
}

impl EventTopics {
    pub(super) fn new(tell: Option<Arc<dyn Tell>>) -> Self {
        Self {
            tell,
            found: Mutex::default(),
        }
    }
}

#[derive(Default)]
struct AssignedTopics {
    partitions: FeedPartitions,
    /// The number of event partitions that are already assigned to topics.
    entered: usize,
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: HashMap<TopicId, Arc<Topic>>,
}

/// The event partitions of one topic.
pub(super) struct Events {
    /// `org/namespace`
    namespace: String,
    /// Indexed by shard; `None` for a shard without events.
    partitions: RwLock<Vec<Option<FeedPartition>>>,
}

/// Returns whether a name is reserved for an event topic.
pub(super) fn is_reserved(name: &str) -> bool {
    name.strip_suffix(SUFFIX).is_some_and(|it| it.contains('.'))
}

/// Returns the topic name of a namespace; characters that a topic name may not contain become `_`.
fn topic_name(namespace: &str) -> String {
    let namespace = namespace.replace('/', ".").replace(':', "_");
    format!("{namespace}{SUFFIX}")
}

impl Topics {
    /// Refuses a write or an administrative change to an event topic.
    pub(super) fn check_writable(&self, name: &str) -> Result<(), ReadOnly> {
        match is_reserved(name) && self.state.events.tell.is_some() {
            true => Err(ReadOnly),
            false => Ok(()),
        }
    }

    /// Returns the conversations whose events the topics have.
    fn conversations(&self) -> Option<&Conversations> {
        Some(&self.inner.stored.as_ref()?.conversations)
    }

    /// Returns an event topic, if the reference is to one.
    pub(super) fn find_events(&self, topic: TopicRef<'_>) -> Option<Arc<Topic>> {
        if let TopicRef::Name(name) = topic
            && !is_reserved(name)
        {
            return None;
        }
        self.with_events(|known| match topic {
            TopicRef::Name(name) => known.by_name.get(name).cloned(),
            TopicRef::Id(id) => known.by_id.get(&id).cloned(),
        })
        .flatten()
    }

    /// Returns the event topics of all namespaces, by name.
    pub(super) fn list_events(&self) -> Vec<Arc<Topic>> {
        let list = self.with_events(|known| known.by_name.values().cloned().collect());
        list.unwrap_or_default()
    }

    fn with_events<T>(&self, look: impl FnOnce(&AssignedTopics) -> T) -> Option<T> {
        let events = &self.state.events;
        events.tell.as_ref()?;
        let mut known = events.found.lock();
        let conversations = self.conversations()?;
        conversations.find_partitions(&mut known.partitions);
        let shards = u32::from(self.state.journal.shard_count());
        let journal = conversations.journal_id();
        known.enter(journal, shards);
        Some(look(&known))
    }

    fn extent(&self, partition: Option<&FeedPartition>) -> Extent {
        match (self.conversations(), partition) {
            (Some(conversations), Some(partition)) => conversations.reach(partition),
            _ => Extent { start: 0, end: 0 },
        }
    }

    /// Returns the start and end of a partition.
    pub(super) fn view_events(
        &self,
        events: &Events,
        partition: u32,
    ) -> Result<PartitionView, UnknownPartition> {
        let Extent { start, end } = self.extent(events.partition(partition)?.as_ref());
        Ok(PartitionView {
            log_start: start,
            high_watermark: end,
            last_stable: end,
            end,
            size: 0,
            leader_epoch: LEADER_EPOCH,
        })
    }

    /// Returns a batch of the events from an offset on; `None` if they are out of reach.
    pub(super) fn gather_events(
        &self,
        reach: Reach,
        events: &Events,
        ask: &Ask,
        room: usize,
        before: usize,
    ) -> Result<Option<Fetched>, FetchError> {
        let partition = events.partition(ask.partition)?;
        let Extent { start, end } = self.extent(partition.as_ref());
        if !(start..=end).contains(&ask.offset) {
            return Err(OutOfRange {
                offset: ask.offset,
                log_start: start,
                end,
            }
            .into());
        }
        let mut fetched = Fetched {
            batches: Vec::new(),
            high_watermark: end,
            last_stable: end,
            log_start: start,
            aborted: Vec::new(),
        };
        let Some(partition) = partition.filter(|_| ask.offset < end && (room > 0 || before == 0))
        else {
            return Ok(Some(fetched));
        };
        // The messages that events refer to may be on disk.
        if matches!(reach, Reach::Memory) {
            return Ok(None);
        }
        let limit = FeedLimit {
            rows: ROWS_MAX,
            bytes: room.clamp(1, BYTES_MAX),
        };
        let unreadable = |reason| FetchError::from(Storage::Unreadable { reason });
        let Some(conversations) = self.conversations() else {
            return Ok(Some(fetched));
        };
        let fed = conversations.feed(&partition, ask.offset, limit);
        let fed = fed.map_err(|refusal| unreadable(refusal.to_string()))?;
        if fed.next > ask.offset
            && let Some(tell) = &self.state.events.tell
        {
            fetched.batches.push(batch(&**tell, ask.offset, fed));
        }
        Ok(Some(fetched))
    }

    /// Registers the waker for the next event. Returns whether there was none since `fetched`, and
    /// the registration.
    pub(super) fn follow_events(
        &self,
        events: &Events,
        ask: &Ask,
        fetched: &Fetched,
        waker: &Waker,
    ) -> (bool, Option<Following>) {
        let Ok(Some(partition)) = events.partition(ask.partition) else {
            return (true, None);
        };
        let Extent { end, .. } = self.extent(Some(&partition));
        if end != fetched.high_watermark {
            return (false, None);
        }
        let journal = &self.state.journal;
        let (Ok(shard), stream) = (u16::try_from(ask.partition), StreamId(partition.number)) else {
            return (true, None);
        };
        match journal.follow(ShardId(shard), stream, end, waker) {
            Follow::Waiting(following) => (true, Some(following)),
            Follow::Ready => (matches!(journal.health(), Health::Failed { .. }), None),
            // Too many waiters: behaves as if nothing happens until the fetch times out.
            Follow::Refused => (true, None),
        }
    }

    /// Resolves an offset; by time, to the first event that is not older.
    pub(super) fn locate_events(
        &self,
        events: &Events,
        partition: u32,
        what: Find,
    ) -> Pending<Result<Option<Located>, FetchError>> {
        let partition = match events.partition(partition) {
            Ok(partition) => partition,
            Err(unknown) => return Pending::now(Err(unknown.into())),
        };
        let Extent { start, end } = self.extent(partition.as_ref());
        match (what, partition) {
            (Find::Earliest, _) => Pending::now(Ok(Some(located(start, NO_TIMESTAMP)))),
            (Find::Latest, _) => Pending::now(Ok(Some(located(end, NO_TIMESTAMP)))),
            (Find::MaxTimestamp | Find::Time(_), Some(partition)) if start < end => {
                let topics = self.clone();
                let look = move || topics.locate_time(&partition, start..end, what);
                let later = match self.inner.platform.offload_value(look) {
                    Ok(later) => later,
                    Err(busy) => return Pending::now(Err(Storage::from(busy).into())),
                };
                Pending::steps(move |waker| match later.take(waker) {
                    Some(located) => Poll::Ready(Ok(Ok(located))),
                    None => Poll::Pending,
                })
            }
            (Find::MaxTimestamp | Find::Time(_), _) => Pending::now(Ok(None)),
        }
    }

    /// Returns the last event, or the first that is not older than a time: timestamps in a shard
    /// never decrease.
    fn locate_time(
        &self,
        partition: &FeedPartition,
        offsets: Range<u64>,
        what: Find,
    ) -> Option<Located> {
        let conversations = self.conversations()?;
        let time_of = |offset| {
            let time_ms = conversations.happened_ms(partition, offset)?;
            i64::try_from(time_ms).ok()
        };
        let (mut low, mut high) = (offsets.start, offsets.end);
        match what {
            Find::Time(time) => {
                while low < high {
                    let middle = low + (high - low) / 2;
                    match time_of(middle).is_some_and(|it| it < time) {
                        true => low = middle + 1,
                        false => high = middle,
                    }
                }
            }
            Find::Earliest | Find::Latest | Find::MaxTimestamp => low = high - 1,
        }
        let found = Some(low).filter(|low| *low < offsets.end)?;
        Some(located(found, time_of(found)?))
    }
}

fn located(offset: u64, timestamp: i64) -> Located {
    Located {
        offset,
        timestamp,
        leader_epoch: LEADER_EPOCH,
    }
}

impl AssignedTopics {
    /// Assigns newly found event partitions to their topics.
    fn enter(&mut self, journal: u64, shards: u32) {
        let found = self.partitions.found.get(self.entered..);
        for partition in found.unwrap_or_default().to_vec() {
            self.entered += 1;
            let Some((namespace, shard)) = partition.name.rsplit_once('/') else {
                continue;
            };
            let Ok(shard) = shard.parse::<usize>() else {
                continue;
            };
            let name = topic_name(namespace);
            // If two namespaces map to the same topic name, the older one has it.
            let topic = match self.by_name.get(&name) {
                Some(topic) => topic.clone(),
                None if name.len() > NAME_LENGTH_MAX => continue,
                None => self.make(journal, shards, &name, namespace, partition.number),
            };
            let Some(events) = topic.events.as_ref().filter(|it| it.namespace == namespace) else {
                continue;
            };
            if let Some(place) = events.partitions.write().get_mut(shard) {
                *place = Some(partition.clone());
            }
        }
    }

    /// Creates a topic. Its id derives from the journal's id and its first partition: unique, and
    /// the same after a restart.
    fn make(
        &mut self,
        journal: u64,
        shards: u32,
        name: &str,
        namespace: &str,
        number: u64,
    ) -> Arc<Topic> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&journal.to_be_bytes());
        id[8..].copy_from_slice(&number.to_be_bytes());
        let about = About {
            id: TopicId(id),
            name: name.to_owned(),
            partitions: shards,
            created_ms: 0,
            config: Config::default(),
        };
        let events = Events {
            namespace: namespace.to_owned(),
            partitions: RwLock::new(vec![None; shards as usize]),
        };
        let topic = Arc::new(Topic::of_events(about, events));
        self.by_name.insert(name.to_owned(), topic.clone());
        self.by_id.insert(TopicId(id), topic.clone());
        topic
    }
}

impl Events {
    /// Returns a partition; `None` inside if it has no events.
    fn partition(&self, number: u32) -> Result<Option<FeedPartition>, UnknownPartition> {
        let partitions = self.partitions.read();
        let place = usize::try_from(number).ok();
        let place = place.and_then(|place| partitions.get(place));
        place.cloned().ok_or(UnknownPartition)
    }
}

/// Builds a batch of events that covers all offsets from `from` to the end of `fed`.
fn batch(tell: &dyn Tell, from: u64, fed: FeedBatch) -> Bytes {
    let mut rows: Vec<_> = fed.rows.iter().collect();
    rows.sort_unstable_by_key(|row| row.event);
    let (mut builder, mut value, mut at) = (Builder::new(), Vec::new(), from);
    for row in rows {
        let conversation = fed.names.get(&row.conversation);
        let conversation = conversation.map_or("", String::as_str);
        value.clear();
        tell.tell(conversation, row, &mut value);
        builder.skip((row.event - at) as i32);
        let time_ms = i64::try_from(row.at_ms).unwrap_or(i64::MAX);
        builder.push(time_ms, Some(conversation.as_bytes()), Some(&value), &[]);
        at = row.event + 1;
    }
    builder.skip((fed.next - at) as i32);
    let template = Template {
        base_offset: i64::try_from(from).unwrap_or(i64::MAX),
        leader_epoch: LEADER_EPOCH,
        ..Template::default()
    };
    let mut bytes = Vec::with_capacity(builder.size());
    builder.finish(&template, &mut bytes);
    bytes.into()
}
