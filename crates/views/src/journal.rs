//! The data source of the views: the journal and the directory.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ::conversations::record::{self, EventRef, EventTag, MessageView, StateChange};
use ::conversations::{Conversation, Lifecycle, State};
use journal::{ReadError, ReadLimit, ShardId, StreamId, Wanted};
use parking_lot::Mutex;
use store::{Kind, Location, NameCursor, Store, namespace_of};

use super::options::Labels;
use super::source::{
    Changed, ConversationFacts, EventItem, EventRange, MessageFacts, Partition, Source,
    StoredMessage, WantedMessages,
};

/// Maximum size of one read.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// Maximum number of labels read per conversation.
const LABELS_MAX: usize = 64;

/// The event partitions found so far, and the position of the search in the directory.
#[derive(Debug, Default)]
pub(super) struct FoundPartitions {
    partitions: Vec<Partition>,
    /// The part of the directory that was searched.
    searched: NameCursor,
}

/// The journal and the directory as a [`Source`].
pub(super) struct Journaled<'a> {
    pub(super) store: &'a Store,
    pub(super) labels: Labels,
    pub(super) found: &'a Mutex<FoundPartitions>,
}

/// The durable state of a conversation.
pub(super) struct VisibleConversation {
    pub(super) name: String,
    pub(super) state: State,
    /// The first retained message and the newest one.
    pub(super) start: u64,
    pub(super) head: u64,
}

impl Journaled<'_> {
    /// Returns the durable state of a visible conversation.
    pub(super) fn visible_conversation(
        &self,
        number: u64,
    ) -> Result<Option<VisibleConversation>, ReadError> {
        let Some((Kind::Conversation, name, location)) = self.store.named(StreamId(number)) else {
            return Ok(None);
        };
        let Some(state) = self.state(location)? else {
            return Ok(None);
        };
        let is_there = matches!(state.lifecycle, Lifecycle::Open | Lifecycle::Archived);
        let (start, head) = self.span(number, state.base);
        Ok(is_there.then_some(VisibleConversation {
            name,
            state,
            start,
            head,
        }))
    }

    /// Returns the state of a conversation with its read marks; `None` if nothing of it is durable.
    fn state(&self, location: Location) -> Result<Option<State>, ReadError> {
        let Location { shard, stream } = location;
        let messages = self.store.journal.stream(shard, stream);
        let states = Location {
            shard,
            stream: Store::companion(stream),
        };
        let mut engine = None;
        self.store.each_record(states, |record| {
            take(&mut engine, record);
            Ok::<_, ReadError>(())
        })?;
        let is_there = engine.is_some() || messages.is_some_and(|it| it.next_durable > 0);
        let state = engine.map(|it| it.state().clone());
        Ok(is_there.then(|| state.unwrap_or_default()))
    }

    /// Returns the ends of the partitions, in their order.
    pub(super) fn ends(&self) -> Vec<u64> {
        let partitions = self.partitions(0);
        partitions.iter().map(|it| self.reach(*it).end).collect()
    }

    fn location(&self, number: u64) -> Option<Location> {
        let (kind, _, location) = self.store.named(StreamId(number))?;
        (kind == Kind::Conversation).then_some(location)
    }

    /// Searches the new part of the directory for partitions.
    fn find(&self, found: &mut FoundPartitions) {
        let FoundPartitions {
            partitions,
            searched,
        } = found;
        self.store.read_names(searched, |kind, _, location| {
            if kind == Kind::Events {
                partitions.push(Partition {
                    stream: location.stream.0,
                    shard: location.shard,
                });
            }
        });
    }
}

/// Applies a record of the stream of state; invalid records are skipped.
fn take(engine: &mut Option<Conversation>, record: &journal::Record) {
    let load = |state| Conversation::load(state, 0, 0, None);
    match record.tag {
        record::SNAPSHOT => {
            if let Ok(snapshot) = State::decode(&record.payload) {
                *engine = Some(load(snapshot));
            }
        }
        record::CHANGE => {
            if let Ok(change) = StateChange::decode(&record.payload) {
                let engine = engine.get_or_insert_with(|| load(State::default()));
                engine.restore_change(&change);
            }
        }
        _ => {}
    }
}

/// Returns the facts of a record of a conversation's messages, if it is a message of the range.
fn facts<'r>(
    record: &'r journal::Record,
    base: u64,
    seqs: &RangeInclusive<u64>,
) -> Option<MessageFacts<'r>> {
    let seq = (record.offset + 1).saturating_sub(base);
    if !seqs.contains(&seq) {
        return None;
    }
    let from = MessageView::decode(&record.payload).ok()?.from;
    let at_ms = record.time_ms;
    Some(MessageFacts { seq, at_ms, from })
}

impl Source for Journaled<'_> {
    fn partitions(&self, known: usize) -> Vec<Partition> {
        let mut found = self.found.lock();
        self.find(&mut found);
        found.partitions.get(known..).unwrap_or_default().to_vec()
    }

    fn reach(&self, partition: Partition) -> EventRange {
        let stream = StreamId(partition.stream);
        let state = self.store.journal.stream(partition.shard, stream);
        state.map_or(EventRange { start: 0, end: 0 }, |it| EventRange {
            start: it.start,
            end: it.next_durable,
        })
    }

    fn events(
        &self,
        partition: Partition,
        from: u64,
        limit: usize,
        found: &mut dyn FnMut(EventItem<'_>),
    ) -> Result<u64, ReadError> {
        let limit = ReadLimit {
            records: limit,
            ..CHUNK
        };
        let stream = StreamId(partition.stream);
        let journal = &self.store.journal;
        let shard = partition.shard;
        // A message follows its event in the same block.
        let mut reported = None;
        let read = journal.read_and_visit(shard, stream, from, limit, |record, at_ms| {
            if record.stream == stream {
                let event = EventRef::decode(record.bytes).ok();
                let is_message = record.tag == EventTag::Message as u8;
                reported = event.filter(|_| is_message);
                return;
            }
            let (number, offset) = (record.stream.0, record.offset);
            if reported.is_some_and(|it| (it.conversation, it.offset) == (number, offset))
                && let Ok(MessageView { from, .. }) = MessageView::decode(record.bytes)
            {
                let message = StoredMessage {
                    offset,
                    at_ms,
                    from,
                };
                found(EventItem::Message { number, message });
            }
        })?;
        let mut next = match read.records.is_empty() {
            // The events up to there were given up as lost.
            true => read.next_durable,
            false => from,
        };
        for record in &read.records {
            if let Ok(EventRef {
                conversation,
                offset,
            }) = EventRef::decode(&record.payload)
            {
                found(EventItem::Event {
                    number: conversation,
                    changed: match EventTag::from_u8(record.tag) {
                        Some(EventTag::Message) => Changed::Messages,
                        _ => Changed::State,
                    },
                    offset,
                });
            }
            next = record.offset + 1;
        }
        Ok(next)
    }

    fn numbers_end(&self) -> u64 {
        self.store.numbers_end()
    }

    fn conversation_facts(&self, number: u64) -> Result<Option<ConversationFacts>, ReadError> {
        let Some(VisibleConversation { name, state, .. }) = self.visible_conversation(number)?
        else {
            return Ok(None);
        };
        let mut labels = Vec::new();
        (self.labels)(&state.metadata, &mut |key, value| {
            if labels.len() < LABELS_MAX {
                labels.push((key.to_owned(), value.to_owned()));
            }
        });
        Ok(Some(ConversationFacts {
            namespace: namespace_of(&name).to_owned(),
            base: state.base,
            created_ms: state.active_ms(),
            ttl_ms: state.settings.ttl_ms,
            is_archived: state.lifecycle == Lifecycle::Archived,
            agent: state.settings.agent,
            labels,
            participants: state.settings.participants,
            cursors: state
                .cursors
                .iter()
                .map(|(who, seq)| (who.to_owned(), seq))
                .collect(),
            retracted: state.retracted,
        }))
    }

    fn span(&self, number: u64, base: u64) -> (u64, u64) {
        let state = self
            .location(number)
            .and_then(|Location { shard, stream }| self.store.journal.stream(shard, stream));
        state.map_or((1, 0), |it| {
            let start = (it.start + 1).saturating_sub(base).max(1);
            (start, it.next_durable.saturating_sub(base))
        })
    }

    fn messages(
        &self,
        number: u64,
        base: u64,
        seqs: RangeInclusive<u64>,
        said: &mut dyn FnMut(MessageFacts<'_>),
    ) -> Result<(), ReadError> {
        let Some(Location { shard, stream }) = self.location(number) else {
            return Ok(());
        };
        let mut seq = *seqs.start();
        while seq <= *seqs.end() {
            let offset = (seq + base).saturating_sub(1);
            let read = match self.store.journal.read(shard, stream, offset, CHUNK) {
                Err(ReadError::Trimmed { start }) => {
                    seq = (start + 1).saturating_sub(base).max(seq + 1);
                    continue;
                }
                read => read?,
            };
            let Some(last) = read.records.last() else {
                return Ok(());
            };
            let found = read.records.iter();
            found
                .filter_map(|record| facts(record, base, &seqs))
                .for_each(&mut *said);
            seq = (last.offset + 2).saturating_sub(base);
        }
        Ok(())
    }

    fn messages_of_many(
        &self,
        wanted: &[WantedMessages],
        said: &mut dyn FnMut(u64, MessageFacts<'_>),
    ) {
        let mut shards: BTreeMap<ShardId, BTreeMap<StreamId, &WantedMessages>> = BTreeMap::new();
        for one in wanted {
            if let Some(Location { shard, stream }) = self.location(one.number) {
                shards.entry(shard).or_default().insert(stream, one);
            }
        }
        for (shard, streams) in shards {
            let first = |(stream, one): (&StreamId, &&WantedMessages)| {
                (*stream, (one.seqs.start() + one.base).saturating_sub(1))
            };
            let mut offsets: Wanted = streams.iter().map(first).collect();
            let journal = &self.store.journal;
            let read = journal.read_many(shard, &mut offsets, |stream, record| {
                if let Some(one) = streams.get(&stream)
                    && let Some(facts) = facts(&record, one.base, &one.seqs)
                {
                    said(one.number, facts);
                }
                Ok::<_, ReadError>(())
            });
            if read.is_ok() {
                continue;
            }
            // One unreadable block must not hide the messages after it, or those of others.
            for (stream, one) in streams {
                let next = offsets.get(&stream).copied().unwrap_or_default();
                let next = (next + 1).saturating_sub(one.base).max(*one.seqs.start());
                let mut said = |facts: MessageFacts<'_>| said(one.number, facts);
                let _ = self.messages(one.number, one.base, next..=*one.seqs.end(), &mut said);
            }
        }
    }
}
