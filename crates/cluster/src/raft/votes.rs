//! Votes in the journal.

use std::io;

use journal::{Journal, ShardId, Status};

use super::types::Vote;
use crate::wait::decided;

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
fn encode_vote(vote: &Vote) -> io::Result<journal::Vote> {
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
