//! The beginning and the end of a cluster: the first members of each shard, in the journal of the
//! founder, and the end of their part in the journal of the last member.

use std::collections::BTreeSet;
use std::sync::Arc;

use journal::{DecidedError, Index, Journal, LastVote, MEMBERS_STREAM, ShardId, Status};

use crate::admit::highest_id;
use crate::member::{AddressError, Member};
use crate::raft::{LogError, Membership, ShardLog, Vote, members_block, save_vote};
use crate::wait::decided;

/// A journal that cannot begin a cluster, or leave one.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// All shards have members.
    #[error("the node is a member of a cluster already")]
    AlreadyMember,
    /// A shard has blocks that are not filed: the consensus does not know how they came about.
    #[error("shard {} has blocks that are not filed", shard.0)]
    NotFiled {
        /// The shard.
        shard: ShardId,
    },
    /// An address is too long.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The log of a shard cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There are no members, or their addresses take too much room.
    #[error("{count} members cannot begin a cluster")]
    Members {
        /// Number of members.
        count: usize,
    },
    /// The journal refuses a block.
    #[error(transparent)]
    Journal(#[from] DecidedError),
    /// The journal has failed.
    #[error("the write-ahead log has failed")]
    Failed,
}

/// Returns the id for a node that begins a cluster: one that no member of the journal's earlier
/// clusters had.
pub fn founder_id(journal: &Journal) -> u64 {
    highest_id(journal) + 1
}

/// Writes the first members of a cluster, usually one, into each shard that has none, and waits until
/// they are on disk. Completes what an interrupted call began. The journal must have been opened with
/// [`journal::Commit::ByCaller`], and all of it must be filed. All members write the same blocks,
/// before they start.
///
/// The first term of a shard is the leader epoch that the node alone had, so that no epoch is lower
/// than an earlier one.
pub async fn init(
    journal: &Arc<Journal>,
    members: &[Member],
    time_ms: u64,
) -> Result<(), InitError> {
    members.iter().try_for_each(|it| it.addresses.check())?;
    if members.is_empty() {
        return Err(InitError::Members { count: 0 });
    }
    let mut missing = Vec::new();
    for shard in shards(journal) {
        if !has_members(journal, shard)? {
            missing.push(shard);
        }
    }
    if missing.is_empty() {
        return Err(InitError::AlreadyMember);
    }
    for shard in &missing {
        if journal.last_filed(*shard) != journal.last_taken(*shard) {
            return Err(InitError::NotFiled { shard: *shard });
        }
    }
    let first = members.first().map_or(0, |it| it.id);
    let mut written = Vec::new();
    for shard in missing {
        let term = journal
            .leader_epoch(shard)
            .max(vote_term(journal, shard) + 1);
        // Elections are for higher terms.
        let vote = Vote::new_committed(term, first);
        save_vote(journal, shard, &vote)
            .await
            .map_err(|_| InitError::Failed)?;
        written.push((
            shard,
            append_members(journal, shard, term, members, time_ms)?,
        ));
    }
    wait_until_written(journal, &written).await
}

/// Returns the ids of the members beside `own` that a shard of a journal has. The journal must not be in
/// use by a [`Node`](crate::Node).
pub fn other_members(journal: &Arc<Journal>, own: u64) -> Result<BTreeSet<u64>, LogError> {
    let mut others = BTreeSet::new();
    for shard in shards(journal) {
        let membership = newest_membership(journal, shard)?;
        let ids = membership.nodes().map(|(id, _)| *id);
        others.extend(ids.filter(|id| *id != own));
    }
    Ok(others)
}

/// Ends the part of the last member in its cluster, which must have no [other](other_members): commits
/// the log of each shard, whose only quorum is this node, writes that there are no members any more,
/// and waits until that is on disk. Completes what an interrupted call began. The journal must have
/// been opened with [`journal::Commit::ByCaller`].
pub async fn leave(journal: &Arc<Journal>, time_ms: u64) -> Result<(), InitError> {
    let mut written = Vec::new();
    for shard in shards(journal) {
        if has_members(journal, shard)? {
            let term = journal
                .last_taken(shard)
                .term
                .max(vote_term(journal, shard));
            written.push((shard, append_members(journal, shard, term, &[], time_ms)?));
        }
    }
    wait_until_written(journal, &written).await?;
    for (shard, last) in written {
        journal.commit(shard, last);
    }
    Ok(())
}

/// Appends the members of a shard to its log. Returns the index of the block.
fn append_members(
    journal: &Journal,
    shard: ShardId,
    term: u64,
    members: &[Member],
    time_ms: u64,
) -> Result<Index, InitError> {
    let stream = journal.stream(shard, MEMBERS_STREAM);
    let offset = stream.map_or(0, |stream| stream.next);
    let block = members_block(journal.last_taken(shard), term, members, time_ms, offset);
    let count = members.len();
    let block = block.ok_or(InitError::Members { count })?;
    journal.append_decided(shard, &block)?;
    Ok(block.index)
}

async fn wait_until_written(
    journal: &Journal,
    blocks: &[(ShardId, Index)],
) -> Result<(), InitError> {
    for (shard, index) in blocks {
        let status = decided(|waker| journal.notify_written(*shard, *index, waker));
        if status.await != Status::Durable {
            return Err(InitError::Failed);
        }
    }
    Ok(())
}

/// Returns the term of a shard's last vote; 0 if it has none.
fn vote_term(journal: &Journal, shard: ShardId) -> u64 {
    match journal.last_vote(shard) {
        LastVote::Known(vote) => vote.term(),
        LastVote::Never | LastVote::Lost => 0,
    }
}

/// How many shards of a journal have members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitState {
    /// No shard has members: the journal does not belong to a cluster.
    NotBegun,
    /// Some shards have members: [`init`] or [`leave`] was interrupted.
    Interrupted,
    /// All shards have members.
    Complete,
}

/// Returns how many shards of a journal have members.
pub fn init_state(journal: &Arc<Journal>) -> Result<InitState, LogError> {
    let mut count = 0;
    for shard in shards(journal) {
        count += u16::from(has_members(journal, shard)?);
    }
    Ok(match count {
        0 => InitState::NotBegun,
        _ if count == journal.shard_count() => InitState::Complete,
        _ => InitState::Interrupted,
    })
}

/// Returns the members of the newest membership of shard 0 that is known to be committed or is in
/// the log, by id. The journal must not be in use by a [`Node`](crate::Node).
pub fn members_on_disk(journal: &Arc<Journal>) -> Result<Vec<Member>, LogError> {
    let membership = newest_membership(journal, ShardId(0))?;
    let nodes = membership.nodes().map(|(id, addresses)| Member {
        id: *id,
        addresses: addresses.clone(),
    });
    Ok(nodes.collect())
}

fn shards(journal: &Journal) -> impl Iterator<Item = ShardId> + use<> {
    (0..journal.shard_count()).map(ShardId)
}

/// Returns the newest membership of a shard; it has no members if the shard never had any.
fn newest_membership(journal: &Arc<Journal>, shard: ShardId) -> Result<Membership, LogError> {
    let stream = journal.stream(shard, MEMBERS_STREAM);
    if stream.is_none_or(|stream| stream.next == 0) {
        return Ok(Membership::default());
    }
    ShardLog::open(journal.clone(), shard, || 0)?.newest_membership()
}

/// Returns whether the newest membership of a shard has members.
fn has_members(journal: &Arc<Journal>, shard: ShardId) -> Result<bool, LogError> {
    let membership = newest_membership(journal, shard)?;
    Ok(membership.nodes().next().is_some())
}
