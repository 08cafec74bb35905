//! Drafts: answers that are streamed, from the opening to the message that they become.
//!
//! The content of a draft is in memory with its conversation and, a little later, in the shard's
//! log of drafts. The message, the draft's end in the log and the event are written under one
//! guard, so a draft is either open or a message, never both or neither.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use conversations::draft::Draft;
use conversations::record::{DRAFT_OPEN, DraftOpen};
use conversations::{NewMessage, Status};
use model::Name;
use platform::Counter;
use store::{AppendSize, Reach};

use super::append::{Appended, DecidedOutcome, Failure};
use super::history_lookup::{Attempt, MissingHistory, Records};
use super::open_draft::{AssembledContent, OpenDraft};
use super::service::check_name;
use super::slot::{Room, Slot};
use super::write::{AppendTarget, DraftEnd};
use super::{ConversationError, Conversations, Pending};

/// A draft to be opened.
#[derive(Clone, Copy, Debug)]
pub struct NewDraft<'a> {
    /// The id of the message that the draft becomes.
    pub id: &'a str,
    /// The author's role in the conversation.
    pub role: &'a str,
    /// The author's name; may be empty.
    pub from: &'a str,
    /// Opaque metadata.
    pub metadata: &'a [u8],
}

/// The end of a draft.
#[derive(Clone, Copy, Debug)]
pub struct DraftResult<'a> {
    /// The final status.
    pub status: Status,
    /// The cost in model tokens, if known.
    pub tokens: Option<u32>,
    /// The assembled content.
    pub assembled: &'a AssembledContent,
}

/// The author's handle of a draft. Dropping it before the draft is finished turns the content into
/// an interrupted message.
pub struct DraftWriter {
    conversations: Conversations,
    slot: Arc<Slot>,
    number: u64,
    id: Arc<str>,
    is_over: bool,
}

impl Conversations {
    /// Opens a draft, and creates the conversation if it does not exist; acknowledged when durable.
    /// It may read from the disk: do not call it on a thread that serves connections.
    pub fn draft_open(
        &self,
        name: &Name,
        new: NewDraft<'_>,
    ) -> Result<Pending<DraftWriter>, ConversationError> {
        check_name(name)?;
        if self.rooms.assembler.is_none() {
            return Err(ConversationError::NoAssembler);
        }
        let limits = &self.options().limits;
        let checked = limits.check(std::slice::from_ref(&new.as_message()));
        checked?;
        let pending = self.with_known(name.base(), |records| self.try_open(name, new, records))?;
        self.platform.need_sweep();
        Ok(pending)
    }

    fn try_open(
        &self,
        name: &Name,
        new: NewDraft<'_>,
        records: &mut Records,
    ) -> Result<Attempt<Pending<DraftWriter>>, ConversationError> {
        let done = self.with_room_at_hand(name.base(), |slot, room| {
            let opened = self.open_draft(name, room, new, records);
            let ticket = room.ticket;
            let outcome = match opened {
                Err(Failure::Missing(missing)) => return Ok(Attempt::Needs(missing)),
                Err(Failure::AtOnce(refusal)) => return Err(refusal),
                Err(Failure::Resting(refusal)) => Err(refusal),
                Ok(number) => {
                    self.rooms.draft_in(slot);
                    Ok(DraftWriter {
                        conversations: self.clone(),
                        slot: slot.clone(),
                        number,
                        id: new.id.into(),
                        is_over: false,
                    })
                }
            };
            let pending = Pending::new(&self.store.journal, ticket, outcome);
            Ok(Attempt::Done(pending))
        })?;
        done.unwrap_or(Ok(Attempt::Needs(MissingHistory::Room)))
    }

    /// Asks the author of a draft, given by its message id, to stop. The content so far is kept.
    pub fn draft_stop(&self, name: &Name, id: &str) -> Result<(), ConversationError> {
        self.with_existing(name, |_, room, _| {
            let open = room.drafts.iter_mut().find(|open| *open.id == *id);
            let Some(open) = open else {
                return Err(ConversationError::NoDraft { id: id.to_owned() });
            };
            if open.draft.stop() {
                open.is_stopped.store(true, Ordering::Relaxed);
                open.author.take().into_iter().for_each(Waker::wake);
                room.wake_watchers();
            }
            Ok(())
        })
    }
}

impl<'a> NewDraft<'a> {
    fn as_message(&self) -> NewMessage<'a> {
        NewMessage {
            id: Some(self.id),
            role: self.role,
            from: self.from,
            tokens: None,
            facts: &[],
            parts: b"",
            metadata: self.metadata,
        }
    }
}

impl DraftWriter {
    /// Returns the draft's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the id of the message that the draft becomes.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Appends the next chunk, one line, and returns its index. Watchers see it at once; it is on
    /// disk a little later.
    pub fn push(&mut self, chunk: &[u8]) -> Result<u32, ConversationError> {
        let mut room = self.slot.room().ok_or(ConversationError::DraftOver)?;
        let open = room
            .open_draft(self.number)
            .ok_or(ConversationError::DraftOver)?;
        let index = open.draft.push(chunk)?;
        room.wake_watchers();
        Ok(index)
    }

    /// Like [`DraftWriter::push`], for the final chunk: watchers receive it with the end of the
    /// draft.
    pub fn push_last(&mut self, chunk: &[u8]) -> Result<u32, ConversationError> {
        let index = self.push(chunk)?;
        if let Some(mut room) = self.slot.room()
            && let Some(open) = room.open_draft(self.number)
        {
            // A draft has one final chunk.
            let _ = open.last.set(Bytes::copy_from_slice(chunk));
        }
        Ok(index)
    }

    /// Ready when the author must stop: on request, or because the conversation was erased.
    pub fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(mut room) = self.slot.room() else {
            return Poll::Ready(());
        };
        match room.open_draft(self.number) {
            Some(open) if !open.draft.is_stopped() => {
                open.author = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Turns the draft into a message; acknowledged when durable. After a refusal the draft is
    /// still open and can be finished again.
    pub fn finish(
        &mut self,
        finished: DraftResult<'_>,
    ) -> Result<Pending<Appended>, ConversationError> {
        let conversations = self.conversations.clone();
        let mut room = self.slot.room().ok_or(ConversationError::DraftOver)?;
        let name = &self.slot.name;
        let appended = conversations.close_draft(name, &mut room, self.number, finished)?;
        self.is_over = true;
        let decided = DecidedOutcome::new(room.ticket, appended);
        Ok(decided.into_pending(&conversations.store))
    }
}

impl DraftWriter {
    /// Ends the draft without a message, because it has no content; its id can be used again.
    pub fn discard(mut self) -> Result<(), ConversationError> {
        let conversations = self.conversations.clone();
        let mut room = self.slot.room().ok_or(ConversationError::DraftOver)?;
        conversations.discard_draft(&mut room, self.number)?;
        drop(room);
        self.is_over = true;
        Ok(())
    }
}

impl Drop for DraftWriter {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let Some(mut room) = self.slot.room()
            && let Some(open) = room.open_draft(self.number)
        {
            open.is_lost = true;
            self.conversations.close_lost(&self.slot.name, &mut room);
        }
    }
}

impl std::fmt::Debug for DraftWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DraftWriter({} of {})", self.number, self.slot.name)
    }
}

impl Room {
    pub(super) fn open_draft(&mut self, number: u64) -> Option<&mut OpenDraft> {
        self.drafts.iter_mut().find(|open| open.number == number)
    }

    /// Wakes all watchers of the conversation.
    pub(super) fn wake_watchers(&mut self) {
        std::mem::take(&mut self.watching)
            .into_values()
            .for_each(Waker::wake);
    }

    /// Ends all drafts, because the conversation was erased.
    pub(super) fn end_drafts(&mut self) {
        for open in self.drafts.drain(..) {
            self.engine.draft_closed(&open.id);
            open.author.into_iter().for_each(Waker::wake);
        }
        self.wake_watchers();
    }
}

impl Conversations {
    /// Decides on a draft, writes its opening and returns its number.
    fn open_draft(
        &self,
        name: &Name,
        room: &mut Room,
        new: NewDraft<'_>,
        records: &mut Records,
    ) -> Result<u64, Failure> {
        self.check_open(room, new.id, records)?;
        let now_ms = self.platform.unix_ms();
        let mut open = DraftOpen {
            conversation: 0,
            opened_ms: now_ms,
            id: new.id,
            role: new.role,
            from: new.from,
            metadata: new.metadata,
        };
        let mut bytes = Vec::new();
        open.encode(&mut bytes);
        let target = AppendTarget {
            writer: &*self.store.journal,
            name: name.base(),
            now_ms,
        };
        let size = AppendSize {
            bytes: bytes.len(),
            count: 1,
        };
        let (guard, location) = self.lock_room(room, target, size)?;
        // The number has a fixed size.
        open.conversation = location.stream.0;
        bytes.clear();
        open.encode(&mut bytes);
        let appended = self.log_opening(guard, DRAFT_OPEN, &bytes);
        let appended =
            appended.map_err(|error| ConversationError::from(self.store.append_error(error)))?;
        room.ticket = Some(appended.ticket);
        room.engine.draft_opened(new.id);
        room.drafts.push(OpenDraft {
            number: appended.offset,
            id: new.id.into(),
            opened_ms: now_ms,
            role: new.role.to_owned(),
            from: new.from.to_owned(),
            metadata: new.metadata.to_owned(),
            draft: Draft::new(self.rooms.options.limits.draft_bytes_max),
            opening: Some(appended.ticket),
            author: None,
            is_stopped: Arc::default(),
            last: Arc::default(),
            is_lost: false,
        });
        room.wake_watchers();
        self.platform.counters.count(Counter::Drafts);
        Ok(appended.offset)
    }

    fn check_open(&self, room: &mut Room, id: &str, records: &mut Records) -> Result<(), Failure> {
        let limits = &self.rooms.options.limits;
        let found = self.message_of(Reach::Memory, room, records, |engine, stored| {
            engine.decide_open(id, limits, stored)
        })?;
        match found {
            None => Ok(()),
            Some(seq) => {
                let retracted = &room.engine.state().retracted;
                let reused = match retracted.contains(seq) {
                    true => conversations::Refusal::IdRetracted { index: 0, seq },
                    false => conversations::Refusal::IdReused { index: 0, seq },
                };
                Err(Failure::Resting(reused.into()))
            }
        }
    }

    /// Writes the message that a draft becomes, and the end of the draft.
    pub(super) fn close_draft(
        &self,
        name: &str,
        room: &mut Room,
        number: u64,
        finished: DraftResult<'_>,
    ) -> Result<Appended, ConversationError> {
        let DraftResult {
            status,
            tokens,
            assembled,
        } = finished;
        let place = room.drafts.iter().position(|open| open.number == number);
        let open = room
            .drafts
            .swap_remove(place.ok_or(ConversationError::DraftOver)?);
        let message = NewMessage {
            id: Some(&open.id),
            role: &open.role,
            from: &open.from,
            tokens,
            facts: &assembled.facts,
            parts: &assembled.parts,
            metadata: assembled.metadata.as_deref().unwrap_or(&open.metadata),
        };
        let ending = DraftEnd {
            number,
            status,
            is_wanted: open.draft.is_stopped(),
        };
        let appended = self.append_draft(name, room, &message, ending);
        match appended {
            Ok(appended) => {
                room.engine.draft_closed(&open.id);
                room.wake_watchers();
                Ok(appended)
            }
            Err(refusal) => {
                room.drafts.push(open);
                Err(refusal)
            }
        }
    }

    fn discard_draft(&self, room: &mut Room, number: u64) -> Result<(), ConversationError> {
        let place = room.drafts.iter().position(|open| open.number == number);
        let (Some(place), Some(location)) = (place, room.location) else {
            return Err(ConversationError::DraftOver);
        };
        self.log_end(location.shard, number)?;
        let open = room.drafts.swap_remove(place);
        room.engine.draft_closed(&open.id);
        room.wake_watchers();
        Ok(())
    }
}
