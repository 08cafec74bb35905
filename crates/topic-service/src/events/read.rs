//! Reading event topics.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use journal::{Follow, Following, Health, ShardId, StoredBytes, StreamId};
use platform::Pending;
use recordbatch::{Builder, NO_TIMESTAMP, Template};
use store::Reach;
use topics::{Find, OutOfRange};

use super::{AssignedTopics, BYTES_MAX, LEADER_EPOCH, ROWS_MAX, is_reserved};
use crate::error::{FetchError, ReadOnly, Storage, UnknownPartition};
use crate::event_partitions::{EventFeed, EventLimit, EventPartition, Events};
use crate::fetch::{Ask, Fetched};
use crate::offsets::{Located, PartitionView};
use crate::service::Topics;
use crate::topic::{Topic, TopicRef};

impl Topics {
    /// Refuses a write or an administrative change to an event topic.
    pub(crate) fn check_writable(&self, name: &str) -> Result<(), ReadOnly> {
        match is_reserved(name) && self.state.events.feed.is_some() {
            true => Err(ReadOnly),
            false => Ok(()),
        }
    }

    /// Returns an event topic, if the reference is to one.
    pub(crate) fn find_events(&self, topic: TopicRef<'_>) -> Option<Arc<Topic>> {
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
    pub(crate) fn list_events(&self) -> Vec<Arc<Topic>> {
        let list = self.with_events(|known| known.by_name.values().cloned().collect());
        list.unwrap_or_default()
    }

    fn with_events<T>(&self, look: impl FnOnce(&AssignedTopics) -> T) -> Option<T> {
        let events = &self.state.events;
        let feed = events.feed.as_ref()?;
        let mut known = events.found.lock();
        let found = feed.partitions_after(known.entered);
        let journal = &self.state.journal;
        let shards = u32::from(journal.shard_count());
        known.enter(journal.id(), shards, found, |it| feed.age(it));
        Some(look(&known))
    }

    fn extent(&self, partition: Option<&EventPartition>) -> Range<u64> {
        match (&self.state.events.feed, partition) {
            (Some(feed), Some(partition)) => feed.extent(partition),
            _ => 0..0,
        }
    }

    /// Returns the start and end of a partition.
    pub(crate) fn view_events(
        &self,
        events: &Events,
        partition: u32,
    ) -> Result<PartitionView, UnknownPartition> {
        let Range { start, end } = self.extent(events.partition(partition)?.as_ref());
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
    pub(crate) fn gather_events(
        &self,
        reach: Reach,
        events: &Events,
        ask: &Ask,
        room: usize,
        before: usize,
    ) -> Result<Option<Fetched>, FetchError> {
        let partition = events.partition(ask.partition)?;
        let Range { start, end } = self.extent(partition.as_ref());
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
        let limit = EventLimit {
            rows: ROWS_MAX,
            bytes: room.clamp(1, BYTES_MAX),
        };
        let Some(feed) = &self.state.events.feed else {
            return Ok(Some(fetched));
        };
        let batch = batch(&**feed, &partition, ask.offset, limit);
        let batch = batch.map_err(|reason| Storage::Unreadable { reason })?;
        fetched.batches.extend(batch.map(StoredBytes::from));
        Ok(Some(fetched))
    }

    /// Registers the waker for the next event. Returns whether there was none since `fetched`, and
    /// the registration.
    pub(crate) fn follow_events(
        &self,
        events: &Events,
        ask: &Ask,
        fetched: &Fetched,
        waker: &Waker,
    ) -> (bool, Option<Following>) {
        let Ok(Some(partition)) = events.partition(ask.partition) else {
            return (true, None);
        };
        let end = self.extent(Some(&partition)).end;
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
    pub(crate) fn locate_events(
        &self,
        events: &Events,
        partition: u32,
        what: Find,
    ) -> Pending<Option<Located>, FetchError> {
        let partition = match events.partition(partition) {
            Ok(partition) => partition,
            Err(unknown) => return Pending::known(Err(unknown.into())),
        };
        let Range { start, end } = self.extent(partition.as_ref());
        match (what, partition) {
            (Find::Earliest, _) => Pending::now(Some(located(start, NO_TIMESTAMP))),
            (Find::Latest, _) => Pending::now(Some(located(end, NO_TIMESTAMP))),
            (Find::MaxTimestamp | Find::Time(_), Some(partition)) if start < end => {
                let topics = self.clone();
                let look = move || topics.locate_time(&partition, start..end, what);
                let later = match self.state.platform.offload_value(look) {
                    Ok(later) => later,
                    Err(busy) => return Pending::known(Err(Storage::from(busy).into())),
                };
                Pending::steps(move |waker| match later.take(waker) {
                    Some(located) => Poll::Ready(Ok(located)),
                    None => Poll::Pending,
                })
            }
            (Find::MaxTimestamp | Find::Time(_), _) => Pending::now(None),
        }
    }

    /// Returns the last event, or the first that is not older than a time: timestamps in a shard
    /// never decrease.
    fn locate_time(
        &self,
        partition: &EventPartition,
        offsets: Range<u64>,
        what: Find,
    ) -> Option<Located> {
        let feed = self.state.events.feed.as_ref()?;
        let time_of = |offset| {
            let time_ms = feed.time_ms(partition, offset)?;
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

/// Builds a batch of the events from `from` on; `None` if there are none. It covers the offsets of
/// deleted events, too.
fn batch(
    feed: &dyn EventFeed,
    partition: &EventPartition,
    from: u64,
    limit: EventLimit,
) -> Result<Option<Bytes>, String> {
    let (mut builder, mut at) = (Builder::new(), from);
    let next = feed.read(partition, from, limit, &mut |record| {
        builder.skip((record.offset - at) as i32);
        let time_ms = i64::try_from(record.at_ms).unwrap_or(i64::MAX);
        builder.push(
            time_ms,
            Some(record.key.as_bytes()),
            Some(record.value),
            &[],
        );
        at = record.offset + 1;
    })?;
    if next <= from {
        return Ok(None);
    }
    builder.skip((next - at) as i32);
    let template = Template {
        base_offset: i64::try_from(from).unwrap_or(i64::MAX),
        leader_epoch: LEADER_EPOCH,
        ..Template::default()
    };
    let mut bytes = Vec::with_capacity(builder.size());
    builder.finish(&template, &mut bytes);
    Ok(Some(bytes.into()))
}
