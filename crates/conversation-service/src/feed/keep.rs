//! Local retention of archived messages.

use ::journal::{ReadLimit, StreamId};
use conversations::record::MessageView;
use model::Name;
use store::{Kind, Location};

use crate::events::event_partition;
use crate::{ConversationError, Conversations};

/// Limits of the archived messages that stay on the disk; `None` is unlimited. The newest message
/// always stays, because the next one links to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchivedRetention {
    /// Number of messages; up to an eighth more before a trim is worth it.
    pub messages: Option<u64>,
    /// Approximate bytes.
    pub bytes: Option<u64>,
    /// Age, in milliseconds.
    pub age_ms: Option<u64>,
}

impl ArchivedRetention {
    /// Returns whether nothing is ever trimmed.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

impl Conversations {
    /// Trims archived messages of a conversation that exceed the limits, and returns their number.
    /// The archive has the events of each partition before `archived`.
    pub fn trim_archived(
        &self,
        number: u64,
        keep: &ArchivedRetention,
        archived: impl Fn(u64) -> u64,
    ) -> Result<u64, ConversationError> {
        let stream = StreamId(number);
        let Some((Kind::Conversation, name, location)) = self.store.named(stream) else {
            return Ok(0);
        };
        let Some((start, end)) = self.surplus(location, keep)? else {
            return Ok(0);
        };
        let events = event_partition(&name, location.shard);
        let Some(events) = self.store.find(Kind::Events, &events) else {
            return Ok(0);
        };
        let end = self.archived_end(location, start, end, archived(events.stream.0))?;
        if end <= start {
            return Ok(0);
        }
        let name = Name::parse(&name)
            .map_err(|error| ConversationError::inconsistent(error.to_string()))?;
        let now_ms = self.platform.unix_ms();
        self.with_room(name.base(), |_, room| {
            let mut guard = self.store.journal.lock(location.shard, now_ms);
            let trimmed = guard.trim(stream, end);
            let ticket =
                trimmed.map_err(|error| ConversationError::inconsistent(error.to_string()))?;
            drop(guard);
            room.ticket = Some(ticket);
            room.engine.trimmed(room.engine.seq(end));
            Ok(end - start)
        })?
    }

    /// Returns the first stored message, and the first one to retain.
    fn surplus(
        &self,
        at: Location,
        keep: &ArchivedRetention,
    ) -> Result<Option<(u64, u64)>, ConversationError> {
        let journal = &self.store.journal;
        let Some(state) = journal.stream(at.shard, at.stream) else {
            return Ok(None);
        };
        let (start, next) = (state.start, state.next_durable);
        let mut end = start;
        if let Some(messages) = keep.messages {
            let target = next.saturating_sub(messages.max(1));
            if target > start && target - start > messages / 8 {
                end = end.max(target);
            }
        }
        let failed = |error: journal::ReadError| ConversationError::from(error);
        if let Some(bytes) = keep.bytes {
            let target = journal.offset_for_bytes(at.shard, at.stream, bytes);
            end = end.max(target.map_err(|error| failed(error.into()))?);
        }
        if let Some(age_ms) = keep.age_ms {
            let time_ms = self.platform.expiry_ms().saturating_sub(age_ms);
            let target = journal.offset_for_time(at.shard, at.stream, time_ms);
            end = end.max(target.map_err(|error| failed(error.into()))?);
        }
        let end = end.min(next.saturating_sub(1));
        Ok((end > start).then_some((start, end)))
    }

    /// Returns the largest end up to `end` before which every message's event is before `mark`.
    /// Events of a conversation are in the order of its messages.
    fn archived_end(
        &self,
        at: Location,
        start: u64,
        end: u64,
        mark: u64,
    ) -> Result<u64, ConversationError> {
        let is_archived = |offset| Ok::<_, ConversationError>(self.event_of(at, offset)? < mark);
        if is_archived(end - 1)? {
            return Ok(end);
        }
        let (mut low, mut high) = (start, end - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match is_archived(middle)? {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the offset of a message's event.
    fn event_of(&self, at: Location, offset: u64) -> Result<u64, ConversationError> {
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let read = self.store.journal.read(at.shard, at.stream, offset, one)?;
        match read.records.first() {
            Some(record) => Ok(MessageView::decode(&record.payload)?.links.event),
            None => Err(ConversationError::inconsistent(format!(
                "record {offset} is not there"
            ))),
        }
    }
}
