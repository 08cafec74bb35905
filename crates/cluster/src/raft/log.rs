//! A shard's log, as the parts of the adapter share it: blocks as entries and back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use journal::block::BlockKind;
use journal::segment::ShardEnd;
use journal::{
    DecidedBlock, Index, Journal, LastVote, MEMBERS_STREAM, ReadLimit, Reign, ShardId, Stage,
    Status, Ticket,
};
use openraft::EntryPayload;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::flushes::Flushes;
use super::members::{decode_membership, encode_membership};
use super::types::{LogId, Membership, StoredMembership, Vote, log_id};
use super::votes::decode_vote;
use super::{Block, Entry};

/// Bytes that are read at once to find memberships.
const READ_SIZE: usize = 4 << 20;

/// The log of one shard.
pub(crate) struct ShardLog {
    pub(crate) journal: Arc<Journal>,
    pub(crate) shard: ShardId,
    /// Notified when entries were appended or voided.
    pub(crate) appended: Notify,
    /// Number of refused proposals.
    pub(crate) refused: AtomicU64,
    pub(super) flushes: Arc<Flushes>,
    /// Returns the milliseconds since 1970.
    now_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Held while the log changes, and while a reign begins.
    order: Mutex<Order>,
}

/// The part of the log that its lock guards.
struct Order {
    /// The last entry that openraft was told to be purged.
    purged: Option<LogId>,
    /// The last reign that was begun, and its term.
    begun: Option<(Reign, u64)>,
}

/// A log that cannot be used: its shard must not take part.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The last vote of the shard is lost.
    #[error("the last vote of shard {} is lost, so it must not vote", shard.0)]
    VoteLost {
        /// The shard.
        shard: ShardId,
    },
    /// The newest membership cannot be read.
    #[error("the members of shard {} cannot be read: {error}", shard.0)]
    Members {
        /// The shard.
        shard: ShardId,
        /// The error.
        error: io::Error,
    },
}

impl ShardLog {
    /// Opens the log of a shard. `now_ms` returns the milliseconds since 1970.
    pub(crate) fn open(
        journal: Arc<Journal>,
        shard: ShardId,
        now_ms: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Arc<ShardLog>, LogError> {
        if journal.last_vote(shard) == LastVote::Lost {
            return Err(LogError::VoteLost { shard });
        }
        let purged = log_id_of(journal.last_filed(shard));
        let last = log_id_of(journal.last_taken(shard)).max(purged);
        let order = Mutex::new(Order {
            purged,
            begun: None,
        });
        Ok(Arc::new(ShardLog {
            flushes: Flushes::new(journal.clone(), shard, last),
            journal,
            shard,
            appended: Notify::new(),
            refused: AtomicU64::new(0),
            now_ms: Box::new(now_ms),
            order,
        }))
    }

    /// Appends entries. Returns the last one; `None` if there are none.
    pub(super) fn append(
        &self,
        entries: impl IntoIterator<Item = Entry>,
    ) -> io::Result<Option<LogId>> {
        let _order = self.order.lock();
        let mut last = None;
        for entry in entries {
            let log_id = entry.log_id;
            let block = self.block_of(entry)?;
            let appended = self.journal.append_decided(self.shard, &block);
            appended.map_err(invalid)?;
            last = Some(log_id);
        }
        Ok(last)
    }

    /// Voids all entries after `last`.
    pub(super) fn truncate_after(&self, last: Option<LogId>) -> io::Result<()> {
        let _order = self.order.lock();
        let first = Index(last.map_or(0, |last| last.index + 1) + 1);
        self.flushes.cut(first);
        self.journal.cut(self.shard, first).map_err(invalid)
    }

    /// Purges the entries up to `last`: the journal may file their blocks.
    pub(super) fn purge(&self, last: LogId) -> io::Result<()> {
        let mut order = self.order.lock();
        let end = log_id_of(self.journal.last_taken(self.shard));
        if end.is_none_or(|end| end.index < last.index) {
            let message = format!("cannot purge up to {last}: the log ends before it");
            return Err(io::Error::other(message));
        }
        order.purged = order.purged.max(Some(last));
        self.journal.purge(self.shard, Index(last.index + 1));
        Ok(())
    }

    /// Returns the vote and the last entry that are on disk. The entry may be void by now, which the
    /// vote then shows: another leader's term is in it before that.
    pub(crate) fn on_disk(&self) -> (Option<Vote>, Option<LogId>) {
        let vote = match self.journal.last_vote(self.shard) {
            LastVote::Known(vote) => decode_vote(&vote).ok(),
            LastVote::Never | LastVote::Lost => None,
        };
        (vote, self.flushes.flushed())
    }

    /// Returns whether everything that openraft was told to be purged is filed, and nothing else.
    pub(crate) fn has_filed_purged(&self) -> bool {
        let order = self.order.lock();
        log_id_of(self.journal.last_filed(self.shard)) == order.purged
    }

    /// Returns the last purged entry and the last entry.
    pub(super) fn ends(&self) -> (Option<LogId>, Option<LogId>) {
        let purged = self.order.lock().purged;
        let last = log_id_of(self.journal.last_taken(self.shard));
        (purged, last.max(purged))
    }

    /// Reads the entries with indexes from `start` up to `end`, which is exclusive: as many as have
    /// `bytes_max` bytes, but at least one. Purged entries, and those that do not exist, are left
    /// out; a filed entry that is not purged is an error.
    pub(super) fn read(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let purged = self.order.lock().purged;
        let first = purged.map_or(0, |purged| purged.index + 1).max(start);
        if first >= end {
            return Ok(Vec::new());
        }
        let indexes = Index(first + 1)..Index(end.saturating_add(1));
        let blocks = self.journal.read_blocks(self.shard, indexes, bytes_max);
        let blocks = blocks.map_err(io::Error::other)?;
        blocks.into_iter().map(entry_of).collect()
    }

    /// Returns the last filed entry, and the newest membership up to it.
    pub(super) fn filed(&self) -> Result<(Option<LogId>, StoredMembership), LogError> {
        let filed = log_id_of(self.journal.last_filed(self.shard));
        let shard = self.shard;
        let members = self.filed_members();
        let members = members.map_err(|error| LogError::Members { shard, error })?;
        Ok((filed, members))
    }

    fn filed_members(&self) -> io::Result<StoredMembership> {
        let stream = self.journal.stream(self.shard, MEMBERS_STREAM);
        let Some(newest) = stream.and_then(|stream| stream.next_durable.checked_sub(1)) else {
            return Ok(StoredMembership::default());
        };
        let limit = ReadLimit {
            records: 1,
            bytes: usize::MAX,
        };
        let read = self.journal.read(self.shard, MEMBERS_STREAM, newest, limit);
        let read = read.map_err(io::Error::other)?;
        let record = read.records.into_iter().next();
        let record = record.ok_or_else(|| io::Error::other("the newest record is missing"))?;
        let (log_id, membership) = decode_membership(record.payload)?;
        Ok(StoredMembership::new(Some(log_id), membership))
    }

    /// Returns the newest membership of the log, committed or not.
    pub(crate) fn newest_membership(&self) -> Result<Membership, LogError> {
        let shard = self.shard;
        let failed = |error| LogError::Members { shard, error };
        let (filed, mut newest) = self.filed()?;
        let stream = self.journal.stream(shard, MEMBERS_STREAM);
        if stream.is_none_or(|stream| stream.next == stream.next_durable) {
            return Ok(newest.membership().clone());
        }
        let mut next = filed.map_or(0, |filed| filed.index + 1);
        loop {
            let entries = self.read(next, u64::MAX, READ_SIZE).map_err(failed)?;
            let Some(last) = entries.last() else {
                return Ok(newest.membership().clone());
            };
            next = last.log_id.index + 1;
            for entry in entries {
                if let EntryPayload::Membership(membership) = entry.payload {
                    newest = StoredMembership::new(Some(entry.log_id), membership);
                }
            }
        }
    }

    /// Begins the reign of a term, unless one was begun in it, or another leader has appended since.
    /// All entries of the log up to the blank one of the term must be applied.
    pub(crate) fn begin_reign(&self, term: u64) -> Option<Reign> {
        let mut order = self.order.lock();
        let is_next = order.begun.is_none_or(|(_, begun)| begun < term);
        if !is_next || self.journal.last_taken(self.shard).term != term {
            return None;
        }
        let reign = self.journal.begin_proposed_reign(self.shard, term);
        order.begun = Some((reign, term));
        Some(reign)
    }

    /// Ends a reign of which no block is proposed any more and all blocks are committed, so that the
    /// next can begin in the same term: it sees all of them. Returns false if there are others.
    pub(crate) fn end_drained(&self, reign: Reign) -> bool {
        let mut order = self.order.lock();
        if !self.is_current(reign) {
            return true;
        }
        let last = self.journal.last_taken(self.shard).index;
        let committed = self.journal.last(self.shard, Stage::Committed);
        if !self.journal.has_no_untaken(self.shard) || committed != last {
            return false;
        }
        self.journal.end_reign(self.shard);
        order.begun = None;
        drop(order);
        self.appended.notify_one();
        true
    }

    /// Returns whether a reign has not ended.
    pub(crate) fn is_current(&self, reign: Reign) -> bool {
        let beyond = Ticket {
            shard: self.shard,
            reign,
            index: Index(u64::MAX),
        };
        self.journal.status(beyond) == Status::Pending
    }

    fn block_of(&self, entry: Entry) -> io::Result<DecidedBlock> {
        let term = entry.log_id.leader_id.term;
        let index = Index(entry.log_id.index + 1);
        let time_ms = entry.time_ms.unwrap_or_else(|| (self.now_ms)());
        Ok(match entry.payload {
            EntryPayload::Blank => DecidedBlock::blank(term, index, time_ms),
            EntryPayload::Normal(Block { time_ms, body }) => DecidedBlock {
                kind: BlockKind::Records,
                term,
                index,
                time_ms,
                body,
            },
            EntryPayload::Membership(membership) => {
                let mut bytes = Vec::new();
                encode_membership(entry.log_id, &membership, &mut bytes);
                if bytes.len() > journal::MEMBERS_SIZE_MAX {
                    return Err(io::Error::other("the members take too many bytes"));
                }
                let stream = self.journal.stream(self.shard, MEMBERS_STREAM);
                let offset = stream.map_or(0, |stream| stream.next);
                DecidedBlock::members(term, index, time_ms, offset, &bytes)
            }
        })
    }
}

/// Returns the log id of a block; `None` before the first one.
pub(super) fn log_id_of(end: ShardEnd) -> Option<LogId> {
    let index = end.index.0.checked_sub(1)?;
    Some(log_id(end.term, index))
}

fn entry_of(block: DecidedBlock) -> io::Result<Entry> {
    let log_id = log_id(block.term, block.index.0.saturating_sub(1));
    let time_ms = block.time_ms;
    let payload = match block.kind {
        BlockKind::Records => EntryPayload::Normal(Block {
            time_ms,
            body: block.body,
        }),
        BlockKind::Blank => EntryPayload::Blank,
        _ => {
            let members = block.as_members();
            let members = members.ok_or_else(|| invalid("a block that is no entry"))?;
            EntryPayload::Membership(decode_membership(members)?.1)
        }
    };
    Ok(Entry {
        log_id,
        time_ms: Some(time_ms),
        payload,
    })
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
