//! Reads messages, page by page. Only durable messages are returned.

use conversations::Retracted;
use conversations::record::MessageView;
use journal::{ReadError, ReadLimit, Record};
use model::Name;
use store::{Location, Reach};

use super::slot::Room;
use super::view::check_alive;
use super::{ConversationError, Conversations};

/// Maximum number of messages of a page.
const MESSAGES_MAX: usize = 4_096;

/// Maximum bytes of a page; the first message is returned even if it is larger.
const BYTES_MAX: usize = 8 << 20;

/// Messages per read when reading towards older ones.
const BACKWARD_COUNT: u64 = 32;

/// The position of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The oldest messages after this number.
    After(u64),
    /// The newest messages before this number.
    Before(u64),
    /// The newest messages.
    Last,
}

/// A request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The position.
    pub side: Side,
    /// Maximum number of messages.
    pub limit: usize,
    /// Maximum bytes; the first message is returned even if it is larger.
    pub bytes: usize,
}

impl Page {
    pub(super) fn limit(&self) -> ReadLimit {
        ReadLimit {
            records: self.limit.clamp(1, MESSAGES_MAX),
            bytes: self.bytes.min(BYTES_MAX),
        }
    }
}

/// A page of messages.
#[derive(Clone, Debug)]
pub struct PageRead {
    /// The number of the newest message or retraction.
    pub head_seq: u64,
    /// The number of the oldest available message; one more than `head_seq` if there is none.
    pub start_seq: u64,
    /// Offset of the conversation's first message.
    base: u64,
    records: Vec<Record>,
}

/// A message of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The message's number.
    pub seq: u64,
    /// The time of the append, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The decoded message.
    pub view: MessageView<'a>,
}

impl PageRead {
    /// Creates a page of a conversation whose oldest available message is `start_seq`.
    pub(super) fn new(place: &MessageLocation, start_seq: u64, records: Vec<Record>) -> Self {
        Self {
            head_seq: place.head,
            start_seq: place.retracted.next_live(start_seq),
            base: place.base,
            records,
        }
    }

    /// Returns the number of the last message of the page.
    pub fn last_seq(&self) -> Option<u64> {
        Some(seq_at(self.base, self.records.last()?.offset))
    }

    /// Returns the messages, in order; a damaged one is an error at its position.
    pub fn messages(
        &self,
    ) -> impl ExactSizeIterator<Item = Result<Message<'_>, ConversationError>> + '_ {
        self.records.iter().map(|record| {
            Ok(Message {
                seq: seq_at(self.base, record.offset),
                at_ms: record.time_ms,
                view: MessageView::decode(&record.payload)?,
            })
        })
    }
}

/// The location of a conversation's messages, as of one moment.
#[derive(Clone, Debug)]
pub(super) struct MessageLocation {
    pub(super) location: Location,
    /// Offset of the conversation's first message, trimmed or not.
    pub(super) base: u64,
    /// The last message that a clear erased; 0 for none.
    pub(super) cleared: u64,
    /// The newest durable message or retraction; 0 for none.
    pub(super) head: u64,
    /// The numbers that durable retractions left without a message.
    pub(super) retracted: Retracted,
}

/// Returns the number of the message at an offset, where message 1 is at offset `base`.
fn seq_at(base: u64, offset: u64) -> u64 {
    (offset + 1).saturating_sub(base)
}

impl MessageLocation {
    pub(super) fn offset(&self, seq: u64) -> u64 {
        (seq + self.base).saturating_sub(1)
    }

    pub(super) fn seq(&self, offset: u64) -> u64 {
        seq_at(self.base, offset)
    }

    /// Returns how many numbers from `seq` on, which was not retracted, have a message.
    pub(super) fn live_count(&self, seq: u64) -> u64 {
        let last = self.retracted.live_until(seq).min(self.head);
        (last + 1).saturating_sub(seq)
    }
}

impl Conversations {
    /// Reads a page of messages, and trimmed ones from the archive. It may wait for the disk and
    /// the archive: do not call it on a thread that serves connections.
    pub fn read(&self, name: &Name, page: Page) -> Result<PageRead, ConversationError> {
        let place = self.place(name)?;
        let start_seq = self.readable_start(&place);
        let limit = page.limit();
        let records = match page.side {
            Side::After(seq) => {
                let first = seq.max(place.cleared).saturating_add(1);
                let first = place.retracted.next_live(first);
                if first < start_seq {
                    return Err(ConversationError::Trimmed { start_seq });
                }
                self.live_messages(&place, first, limit)?
            }
            Side::Before(seq) => {
                let end = seq.min(place.head + 1);
                if end < start_seq {
                    return Err(ConversationError::Trimmed { start_seq });
                }
                self.backwards(&place, start_seq, end, limit)?
            }
            Side::Last => self.backwards(&place, start_seq, place.head + 1, limit)?,
        };
        Ok(PageRead::new(&place, start_seq, records))
    }

    /// Returns the location of a visible conversation's messages.
    pub(super) fn place(&self, name: &Name) -> Result<MessageLocation, ConversationError> {
        self.with_existing(name, |_, room, location| {
            check_alive(room)?;
            Ok(self.message_location(room, location))
        })
    }

    /// Returns the location of a conversation's messages, with what is durable now.
    pub(super) fn message_location(&self, room: &mut Room, location: Location) -> MessageLocation {
        let Location { shard, stream } = location;
        let base = room.engine.state().base;
        let state = self.store.journal.stream(shard, stream);
        let head = state.map_or(0, |it| it.next_durable.saturating_sub(base));
        MessageLocation {
            location,
            base,
            cleared: room.engine.state().cleared_seq(),
            head,
            retracted: room.engine.retracted_at(head),
        }
    }

    /// Reads the newest messages before `end` and from `start` on, up to the page's limit.
    fn backwards(
        &self,
        place: &MessageLocation,
        start: u64,
        end: u64,
        limit: ReadLimit,
    ) -> Result<Vec<Record>, ConversationError> {
        let (limit, bytes_max) = (limit.records, limit.bytes);
        let mut first = end;
        let (mut pieces, mut count, mut bytes) = (Vec::new(), 0, 0);
        let mut step = BACKWARD_COUNT;
        while count < limit && bytes < bytes_max {
            // The messages between two ranges of retracted ones are read together.
            let last = place.retracted.newest_live(first.saturating_sub(1));
            if last < start.max(1) {
                break;
            }
            first = last + 1;
            let available = first - place.retracted.live_from(last).max(start);
            let wanted = step.min((limit - count) as u64).min(available);
            let piece = ReadLimit {
                records: wanted as usize,
                bytes: BYTES_MAX,
            };
            let records = self.messages_anywhere(place, first - wanted, piece)?;
            if (records.len() as u64) < wanted {
                // The messages are large: read fewer at a time.
                step = (wanted / 2).max(1);
                if wanted == 1 {
                    break;
                }
                continue;
            }
            first -= wanted;
            count += records.len();
            bytes += records.iter().map(|it| it.payload.len()).sum::<usize>();
            pieces.push(records);
        }
        let mut records: Vec<Record> = pieces.into_iter().rev().flatten().collect();
        let mut surplus = 0;
        for record in &records {
            if bytes <= bytes_max || surplus + 1 >= records.len() {
                break;
            }
            bytes -= record.payload.len();
            surplus += 1;
        }
        records.drain(..surplus);
        Ok(records)
    }
}

impl Conversations {
    /// Returns the first stored message.
    pub(super) fn start(&self, place: &MessageLocation) -> u64 {
        let Location { shard, stream } = place.location;
        let state = self.store.journal.stream(shard, stream);
        state.map_or(1, |it| place.seq(it.start).max(1))
    }

    /// Reads durable messages from a number on.
    pub(super) fn messages(
        &self,
        place: &MessageLocation,
        seq: u64,
        limit: ReadLimit,
    ) -> Result<Vec<Record>, ConversationError> {
        let records = self.messages_within(Reach::Disk, place, seq, limit)?;
        Ok(records.unwrap_or_default())
    }

    /// Like [`Conversations::messages`]; `None` if the messages are out of reach.
    pub(super) fn messages_within(
        &self,
        reach: Reach,
        place: &MessageLocation,
        seq: u64,
        limit: ReadLimit,
    ) -> Result<Option<Vec<Record>>, ConversationError> {
        match self
            .store
            .read_within(reach, place.location, place.offset(seq), limit)
        {
            Ok(read) => Ok(read.map(|read| read.records)),
            Err(ReadError::Trimmed { start }) => Err(ConversationError::Trimmed {
                start_seq: place.seq(start),
            }),
            Err(error) => Err(error.into()),
        }
    }
}
