//! Writes messages, each with its event and the records that belong to it, under one guard.
//!
//! Invariant: *there is no message without its event, no end of a draft without its message, and no
//! read mark of an agent without its answer.*

use std::cell::RefCell;

use conversations::record::{self, DraftClose, EventRef, EventTag, Links, MessageView};
use conversations::{NewMessage, Original, Status, Update};
use journal::{Guard, Ticket};
use store::{AppendSize, Kind, Location};

use super::agent_work::mark_size;
use super::events::event_partition;
use super::slot::Room;
use super::state::EVENT_SIZE;
use super::{ConversationError, Conversations};

/// The target of appends: the journal, or a round of appends that notifies the journal's writer
/// later.
pub(crate) trait Writer {
    /// Locks a shard.
    fn lock(&self, shard: journal::ShardId, now_ms: u64) -> Guard<'_>;
}

impl Writer for journal::Journal {
    fn lock(&self, shard: journal::ShardId, now_ms: u64) -> Guard<'_> {
        Self::lock(self, shard, now_ms)
    }
}

/// Size of the end of a draft, in bytes.
const ENDING_SIZE: usize = 17;

/// Encoded records, stored contiguously.
#[derive(Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Maximum memory that a thread's scratch retains, in bytes.
const SCRATCH_MAX: usize = 1 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The end of a draft, written with its message.
#[derive(Clone, Copy)]
pub(super) struct DraftEnd {
    /// The draft's number.
    pub(super) number: u64,
    pub(super) status: Status,
    /// True if the author was asked to stop.
    pub(super) is_wanted: bool,
}

/// Records that are written with messages, under their guard.
#[derive(Default)]
pub(super) struct ExtraRecords {
    pub(super) ending: Option<DraftEnd>,
    /// The change of the answering agent's read mark.
    pub(super) mark: Option<Update>,
}

/// The conversation that records are appended to.
pub(super) struct AppendTarget<'a, W> {
    pub(super) writer: &'a W,
    /// `org/namespace/x`.
    pub(super) name: &'a str,
    /// The wall clock, in milliseconds since 1970-01-01 UTC.
    pub(super) now_ms: u64,
}

/// The facts of a written message that the engine needs.
pub(super) struct AppendedMessage<'b> {
    pub(super) id: &'b str,
    pub(super) role: &'b str,
    pub(super) tokens: u32,
}

impl Conversations {
    /// Locks the shard of the conversation for an append of `size`. Creates the conversation and the
    /// event partition under the same guard if they do not exist.
    pub(super) fn lock_room<'g, W: Writer>(
        &self,
        room: &mut Room,
        target: AppendTarget<'g, W>,
        size: AppendSize,
    ) -> Result<(Guard<'g>, Location), ConversationError> {
        let AppendTarget {
            writer,
            name,
            now_ms,
        } = target;
        if let (Some(location), Some(_)) = (room.location, room.events) {
            return Ok((writer.lock(location.shard, now_ms), location));
        }
        if room.location.is_none() {
            self.store.check_names(Kind::Conversation, name)?;
        }
        let shard = self.store.shard_of(name);
        let events = event_partition(name, shard);
        let names = [(Kind::Events, &*events), (Kind::Conversation, name)];
        let lock = |shard| writer.lock(shard, now_ms);
        let locked = self.store.lock_or_create(shard, names, size, lock);
        let (guard, [events, location]) =
            locked.map_err(|error| ConversationError::from(self.store.append_error(error)))?;
        room.events = Some(events.stream);
        room.location = Some(location);
        Ok((guard, location))
    }

    /// Writes messages and their events under one guard, and applies them to the engine.
    pub(super) fn write_all<'b>(
        &self,
        target: AppendTarget<'_, impl Writer>,
        room: &mut Room,
        said: impl Iterator<Item = AppendedMessage<'b>>,
        scratch: &mut Scratch,
        ending: Option<DraftEnd>,
    ) -> Result<Ticket, ConversationError> {
        let extra = ExtraRecords { ending, mark: None };
        self.write_with(target, room, said, scratch, extra)
    }

    /// Like [`Conversations::write_all`], with accompanying records.
    pub(super) fn write_with<'b>(
        &self,
        target: AppendTarget<'_, impl Writer>,
        room: &mut Room,
        said: impl Iterator<Item = AppendedMessage<'b>>,
        scratch: &mut Scratch,
        extra: ExtraRecords,
    ) -> Result<Ticket, ConversationError> {
        let refused = |error| ConversationError::from(self.store.append_error(error));
        let count = scratch.ends.len();
        let (mark_size, mark_count) = mark_size(extra.mark.as_ref());
        let (ending_size, ending_count) = match extra.ending {
            // The end of the draft, and a trim of the log.
            Some(_) => (ENDING_SIZE, 2),
            None => (0, 0),
        };
        // A plain append uses all the room that it reserves: room that is left is given back, which
        // writes a cache line that all writers share once more.
        let size = AppendSize {
            bytes: scratch.bytes.len() + count * EVENT_SIZE + ending_size + mark_size,
            count: 2 * count + ending_count + mark_count,
        };
        let (mut guard, location) = self.lock_room(room, target, size)?;
        guard.reserve(size.bytes, size.count).map_err(refused)?;
        let Location { shard, stream } = location;
        let events = room.events.unwrap_or(stream);
        let mut ticket = None;
        let mut begin = 0;
        for (said, end) in said.zip(&scratch.ends) {
            let record = &mut scratch.bytes[begin..*end];
            let offset = room.engine.offset(room.engine.head() + 1);
            let event = EventRef {
                conversation: stream.0,
                offset,
            };
            let tag = EventTag::Message as u8;
            let event = guard.append(events, None, tag, &event.encode());
            let links = room.engine.links(event.map_err(refused)?.offset);
            record::set_links(record, links);
            let appended = guard.append(stream, Some(offset), record::MESSAGE, record);
            ticket = Some(appended.map_err(refused)?.ticket);
            room.engine.appended(said.id, said.role, said.tokens);
            begin = *end;
        }
        debug_assert!(
            guard.reserved() == 0 || ending_count + mark_count > 0,
            "{} bytes are reserved and not used",
            guard.reserved()
        );
        if let Some(DraftEnd { number, status, .. }) = extra.ending {
            let close = DraftClose {
                draft: number,
                status,
                seq: room.engine.head(),
            };
            let closed = self.rooms.log_close(&mut guard, shard, &close);
            closed.map_err(refused)?;
        }
        if let Some(update) = extra.mark {
            let written = self.write_mark(&mut guard, location, events, &update);
            ticket = written.map_err(refused)?.or(ticket);
            room.engine.changed(update);
        }
        if count > 0 {
            room.said_ms = guard.now_ms();
        }
        let ticket = ticket.unwrap_or_else(|| guard.last_ticket(stream));
        room.ticket = Some(ticket);
        self.touch(room);
        Ok(ticket)
    }
}

/// Lends the thread's scratch, empty.
pub(super) fn with_scratch<R>(then: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.bytes.clear();
        scratch.ends.clear();
        let result = then(scratch);
        scratch.bytes.shrink_to(SCRATCH_MAX);
        result
    })
}

impl Scratch {
    /// Encodes another message.
    pub(super) fn push(&mut self, message: &NewMessage<'_>, id: &str, original: Original) {
        message.encode_original(id, original, Links::default(), &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Encodes a copy of a message that was appended at `time_ms`; the copy keeps its original
    /// time.
    pub(super) fn push_copy(&mut self, view: &MessageView<'_>, time_ms: u64) {
        let copy = MessageView {
            original_ms: view.original_ms.or(Some(time_ms)),
            ..*view
        };
        copy.encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.bytes[begin..*end])
    }
}
