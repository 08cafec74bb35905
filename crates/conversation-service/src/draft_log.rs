//! The log of drafts: one stream per shard with the content of open drafts.
//!
//! The log is trimmed before the oldest open draft. Content of erased conversations must leave the
//! disk: the log is erased before the oldest draft that is open, once every draft that was open at
//! the time of the erase has ended. A draft that stays open for long is copied to the end of the
//! log.

use std::sync::Arc;

use conversations::Status;
use conversations::draft::{AbandonedDraft, Recovery};
use conversations::record::{DRAFT_CARRIED, DRAFT_CHUNKS, DRAFT_CLOSE, DRAFT_ERASE};
use conversations::record::{DraftCarried, DraftClose};
use journal::{AppendError, Appended, Guard, ShardId, StreamId, Ticket};
use store::{Kind, Location};

use super::open_draft::OpenDraft;
use super::shard_log::STREAM;
use super::slot::Rooms;
use super::slot::{Room, Slot};
use super::{ConversationError, Conversations};

/// Time that a draft which delays an erase may take to end by itself, in nanoseconds: most do. The
/// journal allows hours for an erase.
const CARRY_AFTER_NS: u64 = 60_000_000_000;

/// Bytes of the header of a record of chunks.
const CHUNKS_HEAD_SIZE: usize = 12;

/// A draft that was open when the node stopped.
pub(super) struct LostDraft {
    pub(super) shard: ShardId,
    pub(super) conversation: StreamId,
    pub(super) lost: AbandonedDraft,
}

impl Rooms {
    /// Writes the end of a draft under a guard, and trims the log.
    pub(super) fn log_close(
        &self,
        guard: &mut Guard<'_>,
        shard: ShardId,
        close: &DraftClose,
    ) -> Result<(), AppendError> {
        guard.append(STREAM, None, DRAFT_CLOSE, &close.encode())?;
        let Some(log) = self.logs.get(usize::from(shard.0)) else {
            return Ok(());
        };
        let mut log = log.lock();
        log.open.closed(close.draft);
        log.cut(guard)
    }

    /// Marks the log for erasure under a guard, because it holds content of an erased conversation.
    pub(super) fn log_erase(
        &self,
        guard: &mut Guard<'_>,
        shard: ShardId,
    ) -> Result<(), AppendError> {
        let Some(log) = self.logs.get(usize::from(shard.0)) else {
            return Ok(());
        };
        let mut log = log.lock();
        if log.open.is_empty() {
            guard.erase(STREAM)?;
            return Ok(());
        }
        // The mark preserves the request across a restart.
        let marked = guard.append(STREAM, None, DRAFT_ERASE, b"")?;
        log.open.erase(marked.offset);
        Ok(())
    }

    /// Returns whether a draft must be copied to the end of the log now.
    fn is_to_carry(&self, shard: ShardId, draft: u64, now_ns: u64) -> bool {
        let Some(log) = self.logs.get(usize::from(shard.0)) else {
            return false;
        };
        let mut log = log.lock();
        if !log.open.is_in_the_way(draft) {
            return false;
        }
        let since_ns = *log.erasing_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(since_ns) >= CARRY_AFTER_NS
    }

    /// Notes that a conversation has an open draft.
    pub(super) fn draft_in(&self, slot: &Arc<Slot>) {
        self.drafting.lock().insert(slot.name.clone(), slot.clone());
    }
}

impl Conversations {
    /// Writes the opening of a draft; the record's offset is the draft's number.
    pub(super) fn log_opening(
        &self,
        mut guard: Guard<'_>,
        tag: u8,
        bytes: &[u8],
    ) -> Result<Appended, AppendError> {
        let appended = guard.append(STREAM, None, tag, bytes)?;
        if let Some(log) = self.rooms.logs.get(usize::from(guard.shard().0)) {
            let mut log = log.lock();
            log.open.opened(appended.offset);
        }
        Ok(appended)
    }

    /// Writes new chunks of drafts. Chunks that do not fit now are written the next time.
    fn log_chunks(&self, room: &mut Room, now_ms: u64) {
        let Some(location) = room.location else {
            return;
        };
        let mut bytes = Vec::new();
        for open in &mut room.drafts {
            let Some(chunks) = open.draft.unlogged(open.number) else {
                continue;
            };
            bytes.clear();
            chunks.encode(&mut bytes);
            let next = open.draft.len();
            let mut guard = self.store.journal.lock(location.shard, now_ms);
            if let Ok(appended) = guard.append(STREAM, None, DRAFT_CHUNKS, &bytes) {
                open.draft.logged(next);
                room.ticket = Some(appended.ticket);
            }
        }
    }

    /// Copies drafts that delay an erase to the end of the log. Drafts that do not fit now are
    /// copied the next time.
    fn carry_drafts(&self, room: &mut Room) {
        let Some(location) = room.location else {
            return;
        };
        let now_ns = self.platform.now_ns();
        for index in 0..room.drafts.len() {
            let number = room.drafts[index].number;
            if self.rooms.is_to_carry(location.shard, number, now_ns)
                && let Ok(ticket) = self.carry(location, &mut room.drafts[index])
            {
                room.ticket = Some(ticket);
            }
        }
    }

    fn carry(&self, location: Location, open: &mut OpenDraft) -> Result<Ticket, AppendError> {
        let (mut opening, mut chunks) = (Vec::new(), Vec::new());
        DraftCarried {
            draft: open.number,
            open: open.record(location),
        }
        .encode(&mut opening);
        open.draft.all(open.number).encode(&mut chunks);
        let now_ms = self.platform.unix_ms();
        let mut guard = self.store.journal.lock(location.shard, now_ms);
        guard.reserve(opening.len() + chunks.len(), 3)?;
        let carried = guard.append(STREAM, None, DRAFT_CARRIED, &opening)?;
        let mut ticket = carried.ticket;
        if chunks.len() > CHUNKS_HEAD_SIZE {
            ticket = guard.append(STREAM, None, DRAFT_CHUNKS, &chunks)?.ticket;
        }
        open.draft.logged(open.draft.len());
        if let Some(log) = self.rooms.logs.get(usize::from(location.shard.0)) {
            let mut log = log.lock();
            log.open.carried(open.number, carried.offset);
            log.cut(&mut guard)?;
        }
        Ok(ticket)
    }

    /// Writes the end of a draft that becomes no message.
    pub(super) fn log_end(&self, shard: ShardId, draft: u64) -> Result<(), ConversationError> {
        let close = DraftClose {
            draft,
            status: Status::Interrupted,
            seq: 0,
        };
        let mut guard = self.store.journal.lock(shard, self.platform.unix_ms());
        let closed = self.rooms.log_close(&mut guard, shard, &close);
        closed.map_err(|error| ConversationError::from(self.store.append_error(error)))
    }

    /// Sweeps open drafts: writes new chunks to the log, and ends drafts whose authors are gone.
    /// Returns whether any draft is open.
    pub(crate) fn sweep_drafts(&self) -> bool {
        let slots: Vec<_> = self.rooms.drafting.lock().values().cloned().collect();
        let now_ms = self.platform.unix_ms();
        for slot in slots {
            let Some(mut room) = slot.room() else {
                self.rooms.drafting.lock().remove(&slot.name);
                continue;
            };
            self.log_chunks(&mut room, now_ms);
            self.carry_drafts(&mut room);
            self.close_lost(&slot.name, &mut room);
            if room.drafts.is_empty() {
                self.rooms.drafting.lock().remove(&slot.name);
            }
        }
        !self.rooms.drafting.lock().is_empty()
    }

    /// Returns the drafts that are open in the logs, oldest first.
    pub(super) fn lost_drafts(&self) -> Result<Vec<LostDraft>, ConversationError> {
        let mut all = Vec::new();
        for number in 0..self.store.journal.shard_count() {
            let shard = ShardId(number);
            let mut recovery = Recovery::new(self.rooms.options.limits.draft_bytes_max);
            self.read_log(shard, &mut recovery)?;
            let log = self.rooms.logs.get(usize::from(number));
            if let (Some(log), Some(erased)) = (log, recovery.erased()) {
                log.lock().open.erase(erased);
            }
            for lost in recovery.finish() {
                if let Some(log) = log {
                    log.lock().open.carried(lost.number, lost.begin);
                }
                all.push(LostDraft {
                    shard,
                    conversation: StreamId(lost.conversation),
                    lost,
                });
            }
        }
        Ok(all)
    }

    fn read_log(&self, shard: ShardId, recovery: &mut Recovery) -> Result<(), ConversationError> {
        let log = Location {
            shard,
            stream: STREAM,
        };
        self.store.each_record(log, |record| {
            Ok(recovery.record(record.offset, record.tag, &record.payload)?)
        })
    }

    /// Returns the name of a conversation.
    pub(super) fn conversation_name(&self, stream: StreamId) -> Option<String> {
        match self.store.named(stream)? {
            (Kind::Conversation, name, _) => Some(name),
            _ => None,
        }
    }
}
