//! Guards: decide and append under a shard's lock.

use parking_lot::MutexGuard;

use crate::block::BLOCK_HEADER_SIZE;
use crate::record::{self, RECORD_HEADER_SIZE, RecordKind};
use crate::shard::{Shard, State};
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::ticket::Ticket;
use crate::{Index, Reign, ShardId, StreamId};

/// The lock of a shard. Everything that is appended, trimmed and erased under one guard becomes
/// durable together or not at all. It excludes all other writers of the shard, so hold it to
/// decide, never to wait.
#[derive(Debug)]
pub struct Guard<'a> {
    shared: &'a Shared,
    state: MutexGuard<'a, State>,
    /// Declared after the lock, so that it is dropped later and the woken line finds the lock free.
    bell: Bell<'a>,
    now_ms: u64,
    /// The only reign in which the guard appends; `None` for any.
    reign: Option<Reign>,
    /// Appends are accepted even if the disk is full.
    is_for_room: bool,
}

/// Wakes the line's thread, or the task that proposes blocks, when the guard is dropped, if anything
/// was appended.
#[derive(Debug)]
struct Bell<'a> {
    shared: &'a Shared,
    shard: ShardId,
    /// Time of the wake-up.
    wake: Wake,
    /// The block is proposed to a consensus before the line gets it.
    is_proposed: bool,
    written: usize,
    /// Bytes that are counted as queued and not appended yet.
    reserved: usize,
}

/// The moment of a guard's wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    /// The drop of the guard.
    OnDrop,
    /// The end of the guard's round.
    AtRoundEnd,
}

/// An accepted append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The record's offset.
    pub offset: u64,
    /// Ticket of the record's block. Do not acknowledge the append before it is durable.
    pub ticket: Ticket,
}

/// A refused append, trim or erase. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The record, or everything that the guard appends, is too large.
    #[error("{size} bytes are too large (limit {limit} bytes)")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The stream's next offset is not the expected one.
    #[error("the next offset is {next}")]
    Conflict {
        /// The next offset.
        next: u64,
        /// Must be durable before the conflict may be reported: `next` may depend on records that
        /// are not durable yet.
        ticket: Ticket,
    },
    /// This node does not lead the shard.
    #[error("another node leads the shard")]
    Moved,
    /// The write queue is full, too many bytes of the shard are not committed, or the shard is
    /// paused.
    #[error("too many bytes wait for the disk")]
    Full,
    /// The disk has no space for filing. Trims, erases and appends that free space are accepted.
    #[error("the disk is full")]
    DiskFull,
    /// A write or a sync has failed; the journal accepts nothing any more.
    #[error("the journal has failed")]
    Failed,
}

impl<'a> Guard<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        shard: &'a Shard,
        reign: Option<Reign>,
        now_ms: u64,
    ) -> Guard<'a> {
        Guard::with_wake(Wake::OnDrop, shared, shard, reign, now_ms)
    }

    /// Locks a shard for a round. The line is woken when the round ends.
    pub(crate) fn in_round(
        shared: &'a Shared,
        shard: &'a Shard,
        reign: Option<Reign>,
        now_ms: u64,
    ) -> Guard<'a> {
        Guard::with_wake(Wake::AtRoundEnd, shared, shard, reign, now_ms)
    }

    fn with_wake(
        wake: Wake,
        shared: &'a Shared,
        shard: &'a Shard,
        reign: Option<Reign>,
        now_ms: u64,
    ) -> Guard<'a> {
        let state = shard.state.lock();
        Guard {
            shared,
            bell: Bell {
                shared,
                shard: shard.id,
                wake,
                is_proposed: state.is_proposed(),
                written: 0,
                reserved: 0,
            },
            state,
            now_ms,
            reign,
            is_for_room: false,
        }
    }

    /// Accepts appends although the disk is full, as trims are. For appends that lead to trims, or
    /// that are small and end something.
    pub fn for_room(mut self) -> Self {
        self.is_for_room = true;
        self
    }

    /// Returns the locked shard.
    pub fn shard(&self) -> ShardId {
        self.bell.shard
    }

    /// Returns the time at which the shard was locked, in milliseconds since 1970-01-01 UTC.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Returns the stream's next offset, durable or not; 0 if nothing was ever appended.
    pub fn next(&self, stream: StreamId) -> u64 {
        let stream = self.state.streams.get(&stream);
        stream.map_or(0, |stream| stream.next)
    }

    /// Returns the ticket that must be durable before the stream's next offset, or a decision that
    /// is based on it, may be reported.
    pub fn last_ticket(&self, stream: StreamId) -> Ticket {
        let stream = self.state.streams.get(&stream);
        self.ticket(stream.map_or(Index(0), |stream| stream.last_index()))
    }

    /// Reserves room for `bytes` of payload in `count` records under this guard, so that a decision
    /// of several records is appended whole or not at all. Call it before the first append. Room that
    /// is reserved already counts. An error has changed nothing.
    pub fn reserve(&mut self, bytes: usize, count: usize) -> Result<(), AppendError> {
        self.check_reign()?;
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
        let missing = size.saturating_sub(self.bell.reserved);
        if missing > 0 {
            self.make_room(missing)?;
            self.bell.reserved += missing;
        }
        Ok(())
    }

    /// Returns the room that is reserved and not used, in bytes. The drop of the guard gives it back.
    pub fn reserved(&self) -> usize {
        self.bell.reserved
    }

    /// Appends a record if the stream's next offset is `expected` (any, if `None`).
    pub fn append(
        &mut self,
        stream: StreamId,
        expected: Option<u64>,
        tag: u8,
        payload: &[u8],
    ) -> Result<Appended, AppendError> {
        self.append_parts(stream, expected, tag, &[payload])
    }

    /// Like [`Guard::append`], for a payload in parts, which are copied one after the other.
    pub fn append_parts(
        &mut self,
        stream: StreamId,
        expected: Option<u64>,
        tag: u8,
        payload: &[&[u8]],
    ) -> Result<Appended, AppendError> {
        self.check_reign()?;
        if let Some(expected) = expected {
            let next = self.next(stream);
            if expected != next {
                let ticket = self.last_ticket(stream);
                return Err(AppendError::Conflict { next, ticket });
            }
        }
        let size = record::size_of_parts(payload);
        if size > self.shared.limits.record {
            return Err(AppendError::TooLarge {
                size,
                limit: self.shared.limits.record,
            });
        }
        if self.bell.reserved == 0 && self.is_refused() {
            return Err(AppendError::DiskFull);
        }
        self.take_room(RECORD_HEADER_SIZE + size)?;
        let offset = self.state.append(stream, tag, payload, self.now_ms);
        Ok(Appended {
            offset,
            ticket: self.written_ticket(),
        })
    }

    /// Moves the stream's start to `start`, or to its end if that is less, as soon as the ticket is
    /// durable. A start that the stream has passed already, or an unknown stream, changes nothing.
    pub fn trim(&mut self, stream: StreamId, start: u64) -> Result<Ticket, AppendError> {
        let start = start.min(self.next(stream));
        self.mark(RecordKind::Trim, stream, start)
    }

    /// Trims the whole stream, and removes its bytes from the disk within the erase limit.
    pub fn erase(&mut self, stream: StreamId) -> Result<Ticket, AppendError> {
        self.erase_before(stream, u64::MAX)
    }

    /// Trims the stream before `start`, or its end if that is less, and removes the bytes before it
    /// from the disk, including those of earlier trims.
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
        self.check_reign()?;
        if start == 0 {
            return Ok(self.ticket(Index(0)));
        }
        self.take_room(RECORD_HEADER_SIZE)?;
        self.state.mark(kind, stream, start, self.now_ms);
        Ok(self.written_ticket())
    }

    /// Fails if this node does not lead the shard.
    fn check_reign(&self) -> Result<(), AppendError> {
        match self.state.reign() {
            Some(reign) if self.reign.is_none_or(|it| it == reign) => Ok(()),
            _ => Err(AppendError::Moved),
        }
    }

    /// Returns true if the disk has no space for an append.
    fn is_refused(&self) -> bool {
        !self.is_for_room && self.shared.health.is_disk_full()
    }

    /// Takes `size` bytes for the next record from the reserved ones, or makes room for them.
    fn take_room(&mut self, size: usize) -> Result<(), AppendError> {
        match self.bell.reserved.checked_sub(size) {
            Some(rest) => self.bell.reserved = rest,
            None => self.make_room(size)?,
        }
        self.bell.written += size;
        Ok(())
    }

    /// Counts `size` bytes as queued, in a block with room for them.
    fn make_room(&mut self, size: usize) -> Result<(), AppendError> {
        if self.shared.health.is_failed() {
            return Err(AppendError::Failed);
        }
        if self.state.is_paused() {
            return Err(AppendError::Full);
        }
        if self.state.uncommitted_bytes() + size as u64 > self.shared.limits.uncommitted {
            return Err(AppendError::Full);
        }
        let limit = self.shared.limits.block;
        let used = self.state.building_size().max(BLOCK_HEADER_SIZE) + self.bell.reserved;
        let is_first = self.bell.written + self.bell.reserved == 0;
        let is_closed = is_first && (used + size > limit || self.state.is_due_to_close());
        if !is_closed && used + size > limit {
            let size = used + size;
            return Err(AppendError::TooLarge { size, limit });
        }
        // Counted first and compared afterwards: a load before it would fetch the cache line twice.
        let queued_bytes = &self.shared.queued_bytes;
        let before = queued_bytes.fetch_add(size as u64, Ordering::Relaxed);
        if before + size as u64 > self.shared.limits.queue {
            queued_bytes.fetch_sub(size as u64, Ordering::Relaxed);
            return Err(AppendError::Full);
        }
        if is_closed {
            self.state.close_block();
        }
        Ok(())
    }

    fn written_ticket(&self) -> Ticket {
        self.ticket(self.state.building_index())
    }

    fn ticket(&self, index: Index) -> Ticket {
        Ticket {
            shard: self.bell.shard,
            reign: self.state.reign().unwrap_or_default(),
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
        let (doorbell, proposals) = (&self.shared.doorbell, &self.shared.proposals);
        match (self.wake, self.is_proposed) {
            _ if self.written == 0 => {}
            (Wake::OnDrop, false) => doorbell.ring(self.shard),
            (Wake::AtRoundEnd, false) => doorbell.mark(self.shard),
            (Wake::OnDrop, true) => proposals.ring(self.shard),
            (Wake::AtRoundEnd, true) => proposals.mark(self.shard),
        }
    }
}
