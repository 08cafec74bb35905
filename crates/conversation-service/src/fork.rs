//! Forks: copies of a conversation up to a message, which then develop independently.
//!
//! A fork is copied in pieces and is not visible before it is complete. Repeating the request
//! completes an interrupted fork.

use conversations::record::{self, MessageView, Retraction};
use conversations::{Change, Lifecycle, Origin};
use journal::{ReadLimit, Record};
use model::Name;

use super::service::check_name;
use super::slot::Room;
use super::state::ChangeResult;
use super::view::check_alive;
use super::write::{AppendTarget, AppendedMessage, with_scratch};
use super::{ConversationError, Conversations, Pending};

/// Limit of one read while copying.
const CHUNK: ReadLimit = ReadLimit {
    records: 256,
    bytes: 256 << 10,
};

/// The progress of a copy.
enum CopyProgress {
    /// The number of the next message to copy.
    Next(u64),
    /// The fork was complete already.
    Complete(Box<Pending<ChangeResult>>),
}

impl Conversations {
    /// Makes `new` a copy of the conversation up to a message; acknowledged when all of it is
    /// durable.
    pub fn fork(
        &self,
        name: &Name,
        new: &Name,
        at_seq: u64,
    ) -> Result<Pending<ChangeResult>, ConversationError> {
        check_name(new)?;
        let (place, change) = self.with_existing(name, |_, room, location| {
            check_alive(room)?;
            let place = self.message_location(room, location);
            let state = room.engine.state();
            let origin = Origin {
                conversation: name.base().to_owned(),
                seq: at_seq,
            };
            let change = Change::Copy {
                origin,
                metadata: state.metadata.clone(),
                settings: state.settings.clone(),
            };
            Ok((place, change))
        })?;
        let (start, head) = (self.readable_start(&place), place.head);
        if start > 1 {
            return Err(ConversationError::Trimmed { start_seq: start });
        }
        if at_seq > head {
            return Err(conversations::Refusal::BeyondHead { head }.into());
        }
        let mut next = match self.begin_copy(new, &change)? {
            CopyProgress::Next(next) => next,
            CopyProgress::Complete(pending) => return Ok(*pending),
        };
        while next <= at_seq {
            if let Some(range) = place.retracted.range_of(next) {
                next = self.copy_retracted(new, next, range.last.min(at_seq))?;
                continue;
            }
            let last = place.retracted.live_until(next).min(at_seq);
            let limit = ReadLimit {
                records: CHUNK.records.min((last + 1 - next) as usize),
                ..CHUNK
            };
            let records = self.messages_anywhere(&place, next, limit)?;
            if records.is_empty() {
                let message = format!("message {next} is not there");
                return Err(ConversationError::inconsistent(message));
            }
            next = self.copy(new, next, &records)?;
        }
        // Messages may have been retracted since the copy began, or while another request made a
        // part of it.
        let retracted = self.place(name)?.retracted.up_to(at_seq);
        self.with_room(new.base(), |_, room| {
            self.change_room(new, room, None, &Change::Copied { retracted })
        })?
    }

    fn begin_copy(&self, new: &Name, change: &Change) -> Result<CopyProgress, ConversationError> {
        self.with_room(new.base(), |_, room| {
            let state = room.engine.state();
            let origin = match change {
                Change::Copy { origin, .. } => Some(origin),
                _ => None,
            };
            let is_begun = state.lifecycle == Lifecycle::Copying && state.origin.as_ref() == origin;
            if !is_begun {
                let pending = self.change_room(new, room, None, change)?;
                if room.engine.state().lifecycle != Lifecycle::Copying {
                    return Ok(CopyProgress::Complete(Box::new(pending)));
                }
            }
            Ok(CopyProgress::Next(room.engine.head() + 1))
        })?
    }

    /// Appends copies of records, beginning with message `from`; returns the number of the next
    /// message.
    fn copy(&self, new: &Name, from: u64, records: &[Record]) -> Result<u64, ConversationError> {
        let views = records.iter().map(|it| MessageView::decode(&it.payload));
        let views = views.collect::<Result<Vec<_>, _>>()?;
        self.with_room(new.base(), |_, room| {
            let is_next = room.engine.head() + 1 == from;
            let is_copying = room.engine.state().lifecycle == Lifecycle::Copying;
            if !is_copying {
                return Err(ConversationError::Gone);
            }
            // Another request may be completing the same fork.
            if is_next {
                self.append_copies(new, room, records, &views)?;
            }
            Ok(room.engine.head() + 1)
        })?
    }

    /// Appends records without a message in the places of retracted messages, beginning with `from`
    /// and at most up to `last`; returns the number of the next message.
    fn copy_retracted(&self, new: &Name, from: u64, last: u64) -> Result<u64, ConversationError> {
        let retraction = Retraction {
            first_seq: 0,
            count: 0,
        };
        let mut payload = Vec::new();
        MessageView::of_retraction("", retraction).encode(&mut payload);
        let count = (last + 1 - from).min(CHUNK.records as u64) as usize;
        let record = Record {
            offset: 0,
            time_ms: self.platform.unix_ms(),
            tag: record::MESSAGE,
            payload: payload.into(),
        };
        self.copy(new, from, &vec![record; count])
    }

    fn append_copies(
        &self,
        new: &Name,
        room: &mut Room,
        records: &[Record],
        views: &[MessageView<'_>],
    ) -> Result<(), ConversationError> {
        let now_ms = self.platform.unix_ms();
        with_scratch(|scratch| {
            for (record, view) in records.iter().zip(views) {
                scratch.push_copy(view, record.time_ms);
            }
            let said = views.iter().map(|view| AppendedMessage {
                id: view.id,
                role: view.role,
                tokens: view.tokens,
            });
            let target = AppendTarget {
                writer: &*self.store.journal,
                name: new.base(),
                now_ms,
            };
            self.write_all(target, room, said, scratch, None)?;
            Ok(())
        })
    }
}
