//! Reads messages, page by page. Only durable messages are returned.

use conversations::State;
use conversations::record::MessageView;
use journal::{ReadError, ReadLimit, Record};
use model::Name;
use store::{Location, Reach};

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
    /// The number of the newest message.
    pub head_seq: u64,
    /// The number of the oldest available message; one more than `head_seq` if there is none.
    pub start_seq: u64,
    /// The number of the first record.
    first_seq: u64,
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
    /// Creates a page that begins with message `first_seq`.
    pub(super) fn new(head_seq: u64, start_seq: u64, first_seq: u64, records: Vec<Record>) -> Self {
        Self {
            head_seq,
            start_seq,
            first_seq,
            records,
        }
    }

    /// Returns the number of the last message of the page.
    pub fn last_seq(&self) -> Option<u64> {
        let count = self.records.len() as u64;
        (count > 0).then(|| self.first_seq + count - 1)
    }

    /// Returns the messages, in order; a damaged one is an error at its position.
    pub fn messages(
        &self,
    ) -> impl ExactSizeIterator<Item = Result<Message<'_>, ConversationError>> + '_ {
        let numbered = self.records.iter().enumerate();
        numbered.map(|(index, record)| {
            Ok(Message {
                seq: self.first_seq + index as u64,
                at_ms: record.time_ms,
                view: MessageView::decode(&record.payload)?,
            })
        })
    }
}

/// The location of a conversation's messages, as of one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageLocation {
    pub(super) location: Location,
    /// Offset of the conversation's first message, trimmed or not.
    pub(super) base: u64,
    /// The last message that a clear erased; 0 for none.
    pub(super) cleared: u64,
}

impl MessageLocation {
    pub(super) fn new(location: Location, state: &State) -> Self {
        Self {
            location,
            base: state.base,
            cleared: state.cleared_seq(),
        }
    }

    pub(super) fn offset(&self, seq: u64) -> u64 {
        (seq + self.base).saturating_sub(1)
    }

    pub(super) fn seq(&self, offset: u64) -> u64 {
        (offset + 1).saturating_sub(self.base)
    }
}

impl Conversations {
    /// Reads a page of messages, and trimmed ones from the archive. It may wait for the disk and
    /// the archive: do not call it on a thread that serves connections.
    pub fn read(&self, name: &Name, page: Page) -> Result<PageRead, ConversationError> {
        let place = self.place(name)?;
        let (start_seq, head_seq) = self.readable_span(place);
        let limit = page.limit();
        let mut read = PageRead::new(head_seq, start_seq, start_seq, Vec::new());
        match page.side {
            Side::After(seq) => {
                let seq = seq.max(place.cleared);
                read.first_seq = seq.saturating_add(1);
                if read.first_seq < start_seq {
                    return Err(ConversationError::Trimmed { start_seq });
                }
                if seq < head_seq {
                    read.records = self.messages_anywhere(place, read.first_seq, limit)?;
                }
            }
            Side::Before(seq) => {
                let end = seq.min(head_seq + 1);
                if end < start_seq {
                    return Err(ConversationError::Trimmed { start_seq });
                }
                self.backwards(place, &mut read, end, limit)?;
            }
            Side::Last => self.backwards(place, &mut read, head_seq + 1, limit)?,
        }
        Ok(read)
    }

    /// Returns the location of a visible conversation's messages.
    pub(super) fn place(&self, name: &Name) -> Result<MessageLocation, ConversationError> {
        self.with_existing(name, |_, room, location| {
            check_alive(room)?;
            Ok(MessageLocation::new(location, room.engine.state()))
        })
    }

    /// Reads the newest messages before `end`, up to the page's limit.
    fn backwards(
        &self,
        place: MessageLocation,
        read: &mut PageRead,
        end: u64,
        limit: ReadLimit,
    ) -> Result<(), ConversationError> {
        let (limit, bytes_max) = (limit.records, limit.bytes);
        let mut first = end.max(read.start_seq);
        let (mut pieces, mut count, mut bytes) = (Vec::new(), 0, 0);
        let mut step = BACKWARD_COUNT;
        while first > read.start_seq && count < limit && bytes < bytes_max {
            let wanted = step.min((limit - count) as u64).min(first - read.start_seq);
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
        read.records = pieces.into_iter().rev().flatten().collect();
        let mut surplus = 0;
        for record in &read.records {
            if bytes <= bytes_max || surplus + 1 >= read.records.len() {
                break;
            }
            bytes -= record.payload.len();
            surplus += 1;
        }
        read.records.drain(..surplus);
        read.first_seq = first + surplus as u64;
        Ok(())
    }
}

impl Conversations {
    /// Returns the first available message and the newest durable one.
    pub(super) fn span(&self, place: MessageLocation) -> (u64, u64) {
        let Location { shard, stream } = place.location;
        match self.store.journal.stream(shard, stream) {
            Some(state) => {
                let head = state.next_durable.saturating_sub(place.base);
                (place.seq(state.start).max(1), head)
            }
            None => (1, 0),
        }
    }

    /// Reads durable messages from a number on.
    pub(super) fn messages(
        &self,
        place: MessageLocation,
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
        place: MessageLocation,
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
