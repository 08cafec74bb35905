//! A batch of a partition's events, with the records that they refer to.

use std::collections::{BTreeMap, VecDeque};

use ::journal::{ReadError, ReadLimit, Record, StreamId};
use bytes::Bytes;
use conversations::record::{self, EventRef, EventTag};
use conversations::{Retracted, State};
use store::{Kind, Location, Store};

use super::Partition;
use crate::{ConversationError, Conversations};

/// Limits of a batch; the first row is returned even if it is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimit {
    /// Maximum number of events.
    pub rows: usize,
    /// Maximum bytes of the records they refer to.
    pub bytes: usize,
}

/// Bytes to read ahead of one conversation's messages while other conversations are read too.
const AHEAD: usize = 64 << 10;

/// A batch of events; see the module docs.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The rows in order; several changes of a conversation's state are one row, with the newest
    /// state.
    pub rows: Vec<Row>,
    /// The event after the last one.
    pub next: u64,
    /// The number of events read, including those whose records are gone.
    pub events: u64,
    /// The name of every conversation that has a row: `org/namespace/x`.
    pub names: BTreeMap<u64, String>,
}

/// An event of a conversation.
#[derive(Clone, Debug)]
pub struct Row {
    /// The conversation's number.
    pub conversation: u64,
    /// The offset of the event.
    pub event: u64,
    /// The time of the event, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The kind of event, with its record.
    pub happened: EventContent,
}

/// The kind of an event.
#[derive(Clone, Debug)]
pub enum EventContent {
    /// A message was appended.
    Message {
        /// The message's number.
        seq: u64,
        /// Its record, copied to memory of its own.
        record: Bytes,
    },
    /// The newest messages were retracted: the numbers in this range have no message any more.
    Retracted {
        /// The first retracted message.
        first_seq: u64,
        /// The number of the retraction, after the last retracted message.
        last_seq: u64,
    },
    /// The conversation was created, or its state changed; this is the current state.
    State(Box<State>),
    /// The conversation was erased.
    Erased,
}

impl Conversations {
    /// Returns the events of a partition from `from` on. An empty batch with `next` equal to `from`
    /// means that nothing is available.
    pub fn feed(
        &self,
        partition: &Partition,
        from: u64,
        limit: BatchLimit,
    ) -> Result<Batch, ConversationError> {
        let events = ReadLimit {
            records: limit.rows.max(1),
            bytes: usize::MAX,
        };
        let stream = StreamId(partition.number);
        let journal = &self.store.journal;
        let events = journal.read(partition.shard, stream, from, events)?;
        let mut reader = Reader::new(self, &events.records);
        let mut batch = Batch {
            next: from,
            ..Batch::default()
        };
        if events.records.is_empty() {
            // A range that was accepted as lost is skipped.
            batch.next = events.next_durable.max(from);
        }
        let mut bytes = 0;
        let mut states: BTreeMap<u64, usize> = BTreeMap::new();
        for event in &events.records {
            let Ok(reference) = EventRef::decode(&event.payload) else {
                return Err(malformed(event.offset));
            };
            let number = reference.conversation;
            if let Some((name, happened)) = reader.look(event, &reference)? {
                bytes += happened.size();
                if bytes > limit.bytes && !batch.rows.is_empty() {
                    break;
                }
                let row = Row {
                    conversation: number,
                    event: event.offset,
                    at_ms: event.time_ms,
                    happened,
                };
                batch.names.insert(number, name);
                match (&row.happened, states.get(&number)) {
                    // The newest state replaces an earlier one: no row between depends on it.
                    (EventContent::State(_), Some(at)) => batch.rows[*at] = row,
                    (EventContent::State(_), None) => {
                        states.insert(number, batch.rows.len());
                        batch.rows.push(row);
                    }
                    _ => batch.rows.push(row),
                }
            }
            batch.next = event.offset + 1;
            batch.events += 1;
        }
        Ok(batch)
    }
}

impl EventContent {
    /// Returns the approximate memory size, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Message { record, .. } => record.len(),
            Self::State(state) => {
                let summary = state.summary.as_ref().map_or(0, |it| it.message.len());
                state.metadata.len() + summary + state.cursors.iter().count() * 64
            }
            Self::Retracted { .. } | Self::Erased => 0,
        }
    }
}

/// The numbers of a conversation's messages.
#[derive(Clone, Default)]
struct Numbering {
    /// The number of records in its stream before its first message.
    base: u64,
    /// The numbers without a message.
    retracted: Retracted,
}

/// Reads the records that events refer to, a few messages of each conversation at a time.
struct Reader<'a> {
    conversations: &'a Conversations,
    /// Number of messages of each conversation still to be read.
    wanted: BTreeMap<u64, usize>,
    ahead: BTreeMap<u64, VecDeque<Record>>,
    numberings: BTreeMap<u64, Numbering>,
    /// Bytes in `ahead`.
    held: usize,
}

/// Maximum bytes read ahead, over all conversations.
const HELD_MAX: usize = 4 << 20;

impl<'a> Reader<'a> {
    fn new(conversations: &'a Conversations, events: &[Record]) -> Self {
        let mut wanted = BTreeMap::new();
        for event in events {
            if event.tag == EventTag::Message as u8
                && let Ok(reference) = EventRef::decode(&event.payload)
            {
                *wanted.entry(reference.conversation).or_default() += 1;
            }
        }
        Self {
            conversations,
            wanted,
            ahead: BTreeMap::new(),
            numberings: BTreeMap::new(),
            held: 0,
        }
    }

    /// Returns the record of an event and the conversation's name; `None` if the record is gone.
    fn look(
        &mut self,
        event: &Record,
        to: &EventRef,
    ) -> Result<Option<(String, EventContent)>, ConversationError> {
        let named = self.conversations.store.named(StreamId(to.conversation));
        let Some((Kind::Conversation, name, location)) = named else {
            return Err(malformed(event.offset));
        };
        let happened = match EventTag::from_u8(event.tag) {
            Some(EventTag::Message) => {
                let Some(record) = self.message(location, to.offset)? else {
                    return Ok(None);
                };
                let numbering = self.numbering(location)?;
                let seq = (record.offset + 1).saturating_sub(numbering.base);
                match record::retraction(&record.payload) {
                    // The place of a retracted message in a fork, which never had the message.
                    Some(retraction) if retraction.first_seq == 0 => return Ok(None),
                    Some(retraction) => EventContent::Retracted {
                        first_seq: retraction.first_seq,
                        last_seq: seq,
                    },
                    None if numbering.retracted.contains(seq) => return Ok(None),
                    None => EventContent::Message {
                        seq,
                        record: Bytes::copy_from_slice(&record.payload),
                    },
                }
            }
            Some(EventTag::State) => {
                let engine = self.conversations.read_engine(location)?;
                EventContent::State(Box::new(engine.state().clone()))
            }
            Some(EventTag::Erased) => EventContent::Erased,
            None => return Err(malformed(event.offset)),
        };
        Ok(Some((name, happened)))
    }

    fn numbering(&mut self, at: Location) -> Result<Numbering, ConversationError> {
        if let Some(numbering) = self.numberings.get(&at.stream.0) {
            return Ok(numbering.clone());
        }
        let states = Store::companion(at.stream);
        let numbering = match self.conversations.store.journal.stream(at.shard, states) {
            Some(_) => {
                let engine = self.conversations.read_engine(at)?;
                Numbering {
                    base: engine.state().base,
                    retracted: engine.state().retracted.clone(),
                }
            }
            None => Numbering::default(),
        };
        self.numberings.insert(at.stream.0, numbering.clone());
        Ok(numbering)
    }

    fn message(&mut self, at: Location, offset: u64) -> Result<Option<Record>, ConversationError> {
        let number = at.stream.0;
        let left = self.wanted.entry(number).or_default();
        let count = std::mem::replace(left, left.saturating_sub(1)).max(1);
        let ahead = self.ahead.entry(number).or_default();
        while let Some(record) = ahead.pop_front() {
            self.held -= record.payload.len();
            if record.offset == offset {
                return Ok(Some(record));
            }
        }
        let limit = match self.held < HELD_MAX {
            true => ReadLimit {
                records: count,
                bytes: AHEAD,
            },
            false => ReadLimit {
                records: 1,
                bytes: 1,
            },
        };
        let read = match self
            .conversations
            .store
            .journal
            .read(at.shard, at.stream, offset, limit)
        {
            Err(ReadError::Trimmed { .. }) => return Ok(None),
            read => read?,
        };
        let mut records = VecDeque::from(read.records);
        let found = records.pop_front().filter(|it| it.offset == offset);
        self.held += records.iter().map(|it| it.payload.len()).sum::<usize>();
        *ahead = records;
        Ok(found)
    }
}

fn malformed(offset: u64) -> ConversationError {
    let message = format!("event {offset} of conversations refers to nothing");
    ConversationError::inconsistent(message)
}
