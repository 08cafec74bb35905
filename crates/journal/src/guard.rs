//! Deciding and appending under a shard's lock.

use parking_lot::MutexGuard;

use crate::block::BLOCK_HEADER_SIZE;
use crate::durable::Ticket;
use crate::record::{RECORD_HEADER_SIZE, RecordKind};
use crate::shard::{Shard, State};
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::{Index, ShardId, StreamId};

/// Holds a shard. Everything that is appended, trimmed and erased under one guard becomes durable
/// at once or not at all. Nobody else appends to the shard meanwhile: it is held for decisions,
/// not for waiting.
#[derive(Debug)]
pub struct Guard<'a> {
    shared: &'a Shared,
    state: MutexGuard<'a, State>,
    /// Dropped behind the lock, so that the line's thread does not run into it.
    bell: Bell<'a>,
    now_ms: u64,
    /// What is appended is taken though the disk is full.
    is_for_room: bool,
}

/// Tells the line's thread, at the end, of what was written.
#[derive(Debug)]
struct Bell<'a> {
    shared: &'a Shared,
    shard: ShardId,
    /// When it is told.
    told: Told,
    written: usize,
    /// Bytes that are counted as queued and not written yet.
    reserved: usize,
}

/// When the line's thread learns of what was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// When the guard is dropped.
    AtOnce,
    /// When the round ends that it belongs to.
    WithRound,
}

/// An append that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The record's offset.
    pub offset: u64,
    /// Durable when this is; nothing may be told before.
    pub ticket: Ticket,
}

/// An append, trim or erase that was not taken; it changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The record, or what one guard appends in all, is too large.
    #[error("{size} bytes are more than the {limit} that fit")]
    TooLarge {
        /// Bytes it would have.
        size: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// The stream's next offset is another than was expected.
    #[error("the next offset is {next}")]
    Conflict {
        /// The next offset.
        next: u64,
        /// What must be durable before the answer may be told: it may rest on records that are
        /// not yet.
        ticket: Ticket,
    },
    /// Too much waits for the disk.
    #[error("too much waits for the disk")]
    Full,
    /// The disk has no room for filing; trims, erases and what leads to them are taken.
    #[error("the disk is full")]
    DiskFull,
    /// A write or a sync has failed and the journal takes nothing any more.
    #[error("the journal has failed")]
    Failed,
}

impl<'a> Guard<'a> {
    pub(crate) fn new(shared: &'a Shared, shard: &'a Shard, now_ms: u64) -> Guard<'a> {
        Guard::telling(Told::AtOnce, shared, shard, now_ms)
    }

    /// Belongs to a round, at whose end the line is woken.
    pub(crate) fn in_round(shared: &'a Shared, shard: &'a Shard, now_ms: u64) -> Guard<'a> {
        Guard::telling(Told::WithRound, shared, shard, now_ms)
    }

    fn telling(told: Told, shared: &'a Shared, shard: &'a Shard, now_ms: u64) -> Guard<'a> {
        Guard {
            shared,
            state: shard.state.lock(),
            bell: Bell {
                shared,
                shard: shard.id,
                told,
                written: 0,
                reserved: 0,
            },
            now_ms,
            is_for_room: false,
        }
    }

    /// What is appended leads to trims, or is as little as they are and ends something: it is taken
    /// though the disk is full, as they are.
    pub fn for_room(mut self) -> Self {
        self.is_for_room = true;
        self
    }

    /// When it was locked, in milliseconds since 1970-01-01 UTC.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The stream's next offset, whether durable or not; 0 if nothing was ever appended.
    pub fn next(&self, stream: StreamId) -> u64 {
        let stream = self.state.streams.get(&stream);
        stream.map_or(0, |stream| stream.next)
    }

    /// What must be durable before the stream's next offset, or anything that was decided by it,
    /// may be told.
    pub fn last_ticket(&self, stream: StreamId) -> Ticket {
        let stream = self.state.streams.get(&stream);
        self.ticket(stream.map_or(Index(0), |stream| stream.last_index()))
    }

    /// Sees to it that `bytes` of payload in `count` records will be taken under this
    /// guard, so that a decision of several records is appended whole or not at all. It is asked
    /// before the first of them. An error has changed nothing.
    pub fn reserve(&mut self, bytes: usize, count: usize) -> Result<(), AppendError> {
        let size = count * RECORD_HEADER_SIZE + bytes;
        let limit = match count {
            1 => self.shared.limits.record + RECORD_HEADER_SIZE,
            _ => self.shared.limits.block - BLOCK_HEADER_SIZE,
        };
        if size > limit {
            return Err(AppendError::TooLarge { size, limit });
        }
        if self.is_refused() {
            return Err(AppendError::DiskFull);
        }
        self.make_room(size)?;
        self.bell.reserved += size;
        Ok(())
    }

    /// Appends a record, if the stream's next offset is as expected.
    pub fn append(
        &mut self,
        stream: StreamId,
        expected: Option<u64>,
        tag: u8,
        payload: &[u8],
    ) -> Result<Appended, AppendError> {
        let next = self.next(stream);
        if expected.is_some_and(|expected| expected != next) {
            let ticket = self.last_ticket(stream);
            return Err(AppendError::Conflict { next, ticket });
        }
        if payload.len() > self.shared.limits.record {
            return Err(AppendError::TooLarge {
                size: payload.len(),
                limit: self.shared.limits.record,
            });
        }
        if self.bell.reserved == 0 && self.is_refused() {
            return Err(AppendError::DiskFull);
        }
        self.take_room(RECORD_HEADER_SIZE + payload.len())?;
        self.state.append(stream, next, tag, payload, self.now_ms);
        Ok(Appended {
            offset: next,
            ticket: self.written_ticket(),
        })
    }

    /// The stream starts at `start` from the moment its ticket is durable, or where it ends if
    /// that is less. A start that it has already, or a stream that is not there, changes nothing.
    pub fn trim(&mut self, stream: StreamId, start: u64) -> Result<Ticket, AppendError> {
        let start = start.min(self.next(stream));
        self.mark(RecordKind::Trim, stream, start)
    }

    /// Trims all of the stream, and sees to it that its bytes leave the disk.
    pub fn erase(&mut self, stream: StreamId) -> Result<Ticket, AppendError> {
        self.erase_before(stream, u64::MAX)
    }

    /// Trims the stream before `start`, or where it ends if that is less, and sees to it that the
    /// bytes of everything before it leave the disk, of what was trimmed earlier too.
    pub fn erase_before(&mut self, stream: StreamId, start: u64) -> Result<Ticket, AppendError> {
        let start = start.min(self.next(stream));
        self.mark(RecordKind::Erase, stream, start)
    }

    fn mark(
        &mut self,
        kind: RecordKind,
        stream: StreamId,
        start: u64,
    ) -> Result<Ticket, AppendError> {
        if start == 0 {
            return Ok(self.ticket(Index(0)));
        }
        self.take_room(RECORD_HEADER_SIZE)?;
        self.state.mark(kind, stream, start, self.now_ms);
        Ok(self.written_ticket())
    }

    /// Whether there is no room on the disk for what is appended.
    fn is_refused(&self) -> bool {
        !self.is_for_room && self.shared.health.is_disk_full()
    }

    /// What is appended next has `size` bytes in its block: reserved ones, or there is room.
    fn take_room(&mut self, size: usize) -> Result<(), AppendError> {
        match self.bell.reserved.checked_sub(size) {
            Some(rest) => self.bell.reserved = rest,
            None => self.make_room(size)?,
        }
        self.bell.written += size;
        Ok(())
    }

    /// Counts `size` bytes as queued, in a block that has room for them.
    fn make_room(&mut self, size: usize) -> Result<(), AppendError> {
        if self.shared.health.is_failed() {
            return Err(AppendError::Failed);
        }
        let queued_bytes = &self.shared.queued_bytes;
        if queued_bytes.load(Ordering::Relaxed) + size as u64 > self.shared.limits.queue {
            return Err(AppendError::Full);
        }
        let limit = self.shared.limits.block;
        let used = self.state.building_size().max(BLOCK_HEADER_SIZE) + self.bell.reserved;
        let is_first = self.bell.written + self.bell.reserved == 0;
        if is_first && (used + size > limit || self.state.is_due_to_close()) {
            self.state.close_block();
        } else if used + size > limit {
            let size = used + size;
            return Err(AppendError::TooLarge { size, limit });
        }
        queued_bytes.fetch_add(size as u64, Ordering::Relaxed);
        Ok(())
    }

    fn written_ticket(&self) -> Ticket {
        self.ticket(self.state.building_index())
    }

    fn ticket(&self, index: Index) -> Ticket {
        Ticket {
            shard: self.bell.shard,
            index,
        }
    }
}

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        if self.reserved > 0 {
            let queued_bytes = &self.shared.queued_bytes;
            queued_bytes.fetch_sub(self.reserved as u64, Ordering::Relaxed);
        }
        match self.told {
            _ if self.written == 0 => {}
            Told::AtOnce => self.shared.doorbell.ring(self.shard),
            Told::WithRound => self.shared.doorbell.note(self.shard),
        }
    }
}
