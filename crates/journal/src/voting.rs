//! Saving the votes of shards.

use std::task::Waker;

use crate::sync::Ordering;
use crate::ticket::Status;
use crate::votes::{LastVote, Vote, VoteError};
use crate::{Journal, ShardId};

/// Identifies a vote that is being saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteTicket {
    shard: ShardId,
    /// Number of the vote since the journal was opened, from 1.
    number: u64,
}

impl Journal {
    /// Returns a shard's last vote on disk.
    pub fn last_vote(&self, shard: ShardId) -> LastVote {
        self.shard(shard).state.lock().votes.last()
    }

    /// Saves a vote of a shard. Do not answer a candidate before the ticket is durable.
    pub fn save_vote(&self, shard: ShardId, vote: Vote) -> Result<VoteTicket, VoteError> {
        if self.shared().health.is_failed() {
            return Err(VoteError::Failed);
        }
        let mut state = self.shard(shard).state.lock();
        state.votes.check(vote)?;
        let number = state.save_vote(vote);
        let queued_bytes = &self.shared().queued_bytes;
        queued_bytes.fetch_add(vote.bytes().len() as u64, Ordering::Relaxed);
        drop(state);
        self.shared().doorbell.ring(shard);
        Ok(VoteTicket { shard, number })
    }

    /// Returns whether a vote is durable.
    pub fn vote_status(&self, ticket: VoteTicket) -> Status {
        let waiters = &self.shard(ticket.shard).vote_waiters;
        waiters.status(ticket.number)
    }

    /// Wakes `waker` when the vote may be durable, or has failed. Returns the state now; unless that
    /// is pending, the waker is not stored.
    pub fn notify_vote(&self, ticket: VoteTicket, waker: &Waker) -> Status {
        let waiters = &self.shard(ticket.shard).vote_waiters;
        waiters.notify(ticket.number, waker)
    }
}
