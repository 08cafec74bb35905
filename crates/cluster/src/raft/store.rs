//! Writing a shard's log for openraft.
//!
//! An error here ends the shard's consensus on this node, so it is never used for flow control.

use std::io;
use std::sync::Arc;

use journal::{Journal, ShardId, Status};
use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};

use super::reader::Reader;
use super::types::{LogId, Types, Vote};
use super::{Entry, ShardLog};
use crate::wait::decided;

/// The log of one shard, as openraft writes it.
pub(crate) struct Store(Arc<ShardLog>);

impl Store {
    /// Creates the store of a log.
    pub(crate) fn new(log: Arc<ShardLog>) -> Store {
        Store(log)
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Reader;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let (last_purged_log_id, last_log_id) = self.0.ends();
        Ok(LogState {
            last_purged_log_id,
            last_log_id,
        })
    }

    async fn get_log_reader(&mut self) -> Reader {
        Reader::new(self.0.clone())
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        save_vote(&self.0.journal, self.0.shard, vote).await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        match self.0.append(entries)? {
            Some(last) => {
                self.0.appended.notify_one();
                self.0.flushes.add(last, callback);
            }
            None => callback.io_completed(Ok(())),
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.0.truncate_after(last)?;
        self.0.appended.notify_one();
        Ok(())
    }

    async fn purge(&mut self, last: LogId) -> Result<(), io::Error> {
        self.0.purge(last)
    }
}

/// Saves a vote of a shard, and waits until it is on disk.
pub(crate) async fn save_vote(journal: &Journal, shard: ShardId, vote: &Vote) -> io::Result<()> {
    let saved = journal.save_vote(shard, encode_vote(vote)?);
    let ticket = saved.map_err(io::Error::other)?;
    match decided(|waker| journal.notify_vote(ticket, waker)).await {
        Status::Durable => Ok(()),
        _ => Err(io::Error::other("the write-ahead log has failed")),
    }
}

/// Encodes a vote for the journal: the node u64, little-endian, and the committed flag u8.
pub(super) fn encode_vote(vote: &Vote) -> io::Result<journal::Vote> {
    let mut bytes = [0; 9];
    bytes[..8].copy_from_slice(&vote.leader_id.voted_for.to_le_bytes());
    bytes[8] = vote.committed.into();
    let vote = journal::Vote::new(vote.leader_id.term, &bytes);
    vote.ok_or_else(malformed)
}

/// Decodes a vote.
pub(super) fn decode_vote(vote: &journal::Vote) -> io::Result<Vote> {
    let bytes: [u8; 9] = vote.bytes().try_into().map_err(|_| malformed())?;
    let [node @ .., committed] = bytes;
    let node = u64::from_le_bytes(node);
    match committed {
        0 => Ok(Vote::new(vote.term(), node)),
        1 => Ok(Vote::new_committed(vote.term(), node)),
        _ => Err(malformed()),
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed vote")
}
