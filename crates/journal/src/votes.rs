//! Votes: what a shard's consensus voted for last.
//!
//! A vote is a block of the line without an index. The newest vote of each shard is repeated in the
//! header of each segment, so that earlier segments can be filed. After damage it may be unknown
//! which vote was the last; a shard without a known vote must not vote.

use std::collections::VecDeque;
use std::task::Waker;

use crate::record::u64_at;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::ticket::Status;

/// Bytes of a vote besides its term at most.
pub const VOTE_SIZE_MAX: usize = 15;

/// Bytes of a vote in a segment's header.
pub(crate) const SLOT_SIZE: usize = 24;

/// Marks a lost vote in place of a size.
const LOST: u8 = 0xFF;

/// A vote: a term, and 1 to [`VOTE_SIZE_MAX`] bytes that only the caller understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    term: u64,
    size: u8,
    bytes: [u8; VOTE_SIZE_MAX],
}

/// The last vote of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastVote {
    /// The shard has never voted.
    #[default]
    Never,
    /// The last vote.
    Known(Vote),
    /// The last vote may have been in a part of the line whose loss was accepted. The shard must not
    /// vote.
    Lost,
}

/// A refused vote. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoteError {
    /// The last vote of the shard is lost.
    #[error("the shard's last vote is lost, so it must not vote")]
    Lost,
    /// The term is lower than that of the last vote.
    #[error("the term {term} is lower than {last}, the term of the last vote")]
    Term {
        /// Term of the vote.
        term: u64,
        /// Term of the last vote.
        last: u64,
    },
    /// The journal has failed.
    #[error("the journal has failed")]
    Failed,
}

impl Vote {
    /// Creates a vote; `None` if there are no bytes or more than [`VOTE_SIZE_MAX`].
    pub fn new(term: u64, vote: &[u8]) -> Option<Vote> {
        let mut bytes = [0; VOTE_SIZE_MAX];
        bytes.get_mut(..vote.len())?.copy_from_slice(vote);
        let size = vote.len() as u8;
        (size > 0).then_some(Vote { term, size, bytes })
    }

    /// Returns the term.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }
}

impl LastVote {
    /// Encodes the vote for a segment's header: term u64, size u8, bytes. All zeros if there is
    /// none.
    pub(crate) fn encode(self, slot: &mut [u8]) {
        slot.fill(0);
        match self {
            LastVote::Never => {}
            LastVote::Lost => slot[8] = LOST,
            LastVote::Known(vote) => {
                slot[0..8].copy_from_slice(&vote.term.to_le_bytes());
                slot[8] = vote.size;
                slot[9..].copy_from_slice(&vote.bytes);
            }
        }
    }

    /// Decodes a vote; `None` if it is malformed.
    pub(crate) fn decode(slot: &[u8]) -> Option<LastVote> {
        match slot[8] {
            0 => slot
                .iter()
                .all(|byte| *byte == 0)
                .then_some(LastVote::Never),
            LOST => Some(LastVote::Lost),
            size => {
                let bytes = slot[9..].get(..usize::from(size))?;
                Vote::new(u64_at(slot, 0), bytes).map(LastVote::Known)
            }
        }
    }
}

/// The votes of a shard, as its lock guards them.
#[derive(Debug, Default)]
pub(crate) struct ShardVotes {
    /// The last vote on disk.
    last: LastVote,
    /// Votes that are not on disk yet, in order.
    pending: VecDeque<Vote>,
    /// Number of votes on disk since the journal was opened.
    written: u64,
}

impl ShardVotes {
    /// Returns the last vote on disk.
    pub(crate) fn last(&self) -> LastVote {
        self.last
    }

    /// Returns the number of votes on disk since the journal was opened.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Sets the last vote on disk, as recovery found it.
    pub(crate) fn restore(&mut self, last: LastVote) {
        self.last = last;
    }

    /// Checks that a vote may follow the ones before it.
    pub(crate) fn check(&self, vote: Vote) -> Result<(), VoteError> {
        let last = match (self.pending.back(), self.last) {
            (Some(pending), _) => pending.term,
            (None, LastVote::Known(last)) => last.term,
            (None, LastVote::Never) => 0,
            (None, LastVote::Lost) => return Err(VoteError::Lost),
        };
        let term = vote.term;
        if term < last {
            return Err(VoteError::Term { term, last });
        }
        Ok(())
    }

    /// Adds a vote that is on its way to the disk, and returns its number.
    pub(crate) fn add(&mut self, vote: Vote) -> u64 {
        self.pending.push_back(vote);
        self.written + self.pending.len() as u64
    }

    /// Records that the oldest pending vote is on disk.
    pub(crate) fn place(&mut self) {
        if let Some(vote) = self.pending.pop_front() {
            self.last = LastVote::Known(vote);
            self.written += 1;
        }
    }
}

/// Tasks that wait for votes of a shard. A waiter registers first and then checks; the line does it
/// the other way around.
#[derive(Debug, Default)]
pub(crate) struct VoteWaiters {
    written: AtomicU64,
    failed: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl VoteWaiters {
    /// Returns whether the vote with this number is on disk.
    pub(crate) fn status(&self, number: u64) -> Status {
        if number <= self.written.load(Ordering::SeqCst) {
            Status::Durable
        } else if self.failed.load(Ordering::SeqCst) {
            Status::Failed
        } else {
            Status::Pending
        }
    }

    /// Wakes `waker` when the vote may be on disk or has failed. Returns the state now; unless that is
    /// pending, the waker is not stored.
    pub(crate) fn notify(&self, number: u64, waker: &Waker) -> Status {
        let mut waiting = self.waiting.lock();
        let status = self.status(number);
        if status == Status::Pending && !waiting.iter().any(|it| it.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        status
    }

    /// Sets the number of votes on disk and wakes the waiters. Those that are still pending wait
    /// again.
    pub(crate) fn advance(&self, written: u64) {
        self.written.store(written, Ordering::SeqCst);
        self.wake_all();
    }

    /// Ends all pending votes as failed and wakes their waiters.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
        let woken = std::mem::take(&mut *self.waiting.lock());
        woken.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vote_has_1_to_15_bytes() {
        assert_eq!(Vote::new(1, b""), None);
        assert_eq!(Vote::new(1, &[7; VOTE_SIZE_MAX + 1]), None);
        let vote = Vote::new(9, &[7; VOTE_SIZE_MAX]).unwrap();
        assert_eq!((vote.term(), vote.bytes()), (9, &[7; VOTE_SIZE_MAX][..]));
    }

    #[test]
    fn votes_of_a_header_are_decoded_unchanged() {
        let short = LastVote::Known(Vote::new(u64::MAX, b"a").unwrap());
        let long = LastVote::Known(Vote::new(0, &[0; VOTE_SIZE_MAX]).unwrap());
        for vote in [LastVote::Never, LastVote::Lost, short, long] {
            let mut slot = [1; SLOT_SIZE];
            vote.encode(&mut slot);
            assert_eq!(LastVote::decode(&slot), Some(vote));
        }
        let mut slot = [0; SLOT_SIZE];
        slot[8] = VOTE_SIZE_MAX as u8 + 1;
        assert_eq!(LastVote::decode(&slot), None);
        slot[8] = 0;
        slot[0] = 1;
        assert_eq!(LastVote::decode(&slot), None);
    }
}
