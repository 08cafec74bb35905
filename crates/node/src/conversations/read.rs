//! Reading messages back, page by page. Only what is durable is shown.

use conversations::record::MessageView;
use journal::{ReadError, ReadLimit, Record};
use model::Name;

use super::view::check_alive;
use super::{Conversations, Refusal};
use crate::store::{Location, Reach, Store};

/// Messages of one page, at most.
const MESSAGES_MAX: usize = 4_096;

/// Bytes of one page, at most; one message comes even if it is larger.
const BYTES_MAX: usize = 8 << 20;

/// Messages that are read at once towards the older ones.
const BACKWARD_COUNT: u64 = 32;

/// Which messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The oldest of those behind this number.
    After(u64),
    /// The newest of those before this number.
    Before(u64),
    /// The newest.
    Last,
}

/// A page that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Which messages.
    pub side: Side,
    /// How many, at most.
    pub limit: usize,
    /// Their bytes, at most; one message comes even if it is larger.
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

/// A page.
#[derive(Clone, Debug)]
pub struct PageRead {
    /// The number of the newest message.
    pub head_seq: u64,
    /// The number of the oldest that is kept; one above the newest when none is.
    pub start_seq: u64,
    /// Of the first record.
    first_seq: u64,
    records: Vec<Record>,
}

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its number.
    pub seq: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What it is.
    pub view: MessageView<'a>,
}

impl PageRead {
    /// A page that begins with that message.
    pub(super) fn new(head_seq: u64, start_seq: u64, first_seq: u64, records: Vec<Record>) -> Self {
        Self {
            head_seq,
            start_seq,
            first_seq,
            records,
        }
    }

    /// The same with these messages.
    pub(super) fn with(self, records: Vec<Record>) -> Self {
        Self { records, ..self }
    }

    /// Where it begins.
    pub(super) fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// The number of the last message of the page.
    pub fn last_seq(&self) -> Option<u64> {
        let count = self.records.len() as u64;
        (count > 0).then(|| self.first_seq + count - 1)
    }

    /// The messages, in order. One that is damaged is an error in its place.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Result<Message<'_>, Refusal>> + '_ {
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

/// Where the messages of a conversation are, as it was at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) location: Location,
    /// Of the first message there ever was.
    pub(super) base: u64,
}

impl Place {
    pub(super) fn offset(&self, seq: u64) -> u64 {
        (seq + self.base).saturating_sub(1)
    }

    pub(super) fn seq(&self, offset: u64) -> u64 {
        (offset + 1).saturating_sub(self.base)
    }
}

impl Conversations<'_> {
    /// A page of messages, from the archive too if they were trimmed. It may wait for the disk and
    /// for the archive: not for a thread that serves connections.
    pub fn read(&self, name: &Name, page: Page) -> Result<PageRead, Refusal> {
        let place = self.place(name)?;
        let (start_seq, head_seq) = self.store.readable_span(place);
        let limit = page.limit();
        let mut read = PageRead::new(head_seq, start_seq, start_seq, Vec::new());
        match page.side {
            Side::After(seq) => {
                read.first_seq = seq.saturating_add(1);
                if read.first_seq < start_seq {
                    return Err(Refusal::trimmed(start_seq));
                }
                if seq < head_seq {
                    let store = self.store;
                    read.records = store.messages_anywhere(place, read.first_seq, limit)?;
                }
            }
            Side::Before(seq) => {
                let end = seq.min(head_seq + 1);
                if end < start_seq {
                    return Err(Refusal::trimmed(start_seq));
                }
                self.backwards(place, &mut read, end, limit)?;
            }
            Side::Last => self.backwards(place, &mut read, head_seq + 1, limit)?,
        }
        Ok(read)
    }

    /// Where the messages of a conversation are that is there for everybody.
    pub(super) fn place(&self, name: &Name) -> Result<Place, Refusal> {
        self.with_existing(name, |_, room, location| {
            check_alive(room)?;
            Ok(Place {
                location,
                base: room.engine.state().base,
            })
        })
    }

    /// The newest messages before `end`, as many as there may be.
    fn backwards(
        &self,
        place: Place,
        read: &mut PageRead,
        end: u64,
        limit: ReadLimit,
    ) -> Result<(), Refusal> {
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
            let records = self.store.messages_anywhere(place, first - wanted, piece)?;
            if (records.len() as u64) < wanted {
                // They are large: fewer of them.
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

impl Store {
    /// The first message that is kept and the newest that is durable.
    pub(super) fn span(&self, place: Place) -> (u64, u64) {
        let Location { shard, stream } = place.location;
        let is_made = self.creation(stream).is_none();
        match self.journal.stream(shard, stream).filter(|_| is_made) {
            Some(state) => {
                let head = state.next_durable.saturating_sub(place.base);
                (place.seq(state.start).max(1), head)
            }
            None => (1, 0),
        }
    }

    /// Messages from a number on, as far as they are durable.
    pub(super) fn messages(
        &self,
        place: Place,
        seq: u64,
        limit: ReadLimit,
    ) -> Result<Vec<Record>, Refusal> {
        let records = self.messages_within(Reach::Disk, place, seq, limit)?;
        Ok(records.unwrap_or_default())
    }

    /// The same; `None` if they are not within reach.
    pub(super) fn messages_within(
        &self,
        reach: Reach,
        place: Place,
        seq: u64,
        limit: ReadLimit,
    ) -> Result<Option<Vec<Record>>, Refusal> {
        match self.read_within(reach, place.location, place.offset(seq), limit) {
            Ok(read) => Ok(read.map(|read| read.records)),
            Err(ReadError::Trimmed { start }) => Err(Refusal::trimmed(place.seq(start))),
            Err(error) => Err(error.into()),
        }
    }
}
