//! The beginning of a cluster: the first members of each shard, in the journal of the founder.

use std::sync::Arc;

use journal::{DecidedError, Journal, MEMBERS_STREAM, ShardId, Status};

use crate::member::{AddressError, Member};
use crate::raft::{LogError, ShardLog, Vote, first_members, save_vote};
use crate::wait::decided;

/// A journal that cannot begin a cluster.
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

/// Writes the first members of a cluster, usually one, into each shard that has none, and waits until
/// they are on disk. Completes what an interrupted call began. The journal must have been opened with
/// [`journal::Commit::ByCaller`], and all of it must be filed. All members write the same blocks,
/// before they start.
///
/// The first term of the cluster is the life of the journal, so that no term is lower than a life of
/// the node before.
pub async fn init(journal: &Journal, members: &[Member], time_ms: u64) -> Result<(), InitError> {
    members.iter().try_for_each(|it| it.addresses.check())?;
    let shards = || (0..journal.shard_count()).map(ShardId);
    let missing: Vec<_> = shards().filter(|it| !has_members(journal, *it)).collect();
    if missing.is_empty() {
        return Err(InitError::AlreadyMember);
    }
    for shard in &missing {
        if journal.last_filed(*shard) != journal.last_taken(*shard) {
            return Err(InitError::NotFiled { shard: *shard });
        }
    }
    let mut written = Vec::new();
    let (term, first) = (journal.life(), members.first().map_or(0, |it| it.id));
    for shard in missing {
        // Elections are for higher terms.
        let vote = Vote::new_committed(term, first);
        save_vote(journal, shard, &vote)
            .await
            .map_err(|_| InitError::Failed)?;
        let block = first_members(journal.last_taken(shard), term, members, time_ms);
        let count = members.len();
        let block = block.ok_or(InitError::Members { count })?;
        journal.append_decided(shard, &block)?;
        written.push((shard, block.index));
    }
    for (shard, index) in written {
        let status = decided(|waker| journal.notify_written(shard, index, waker));
        if status.await != Status::Durable {
            return Err(InitError::Failed);
        }
    }
    Ok(())
}

/// How far [`init`] has come in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitState {
    /// No shard has members: the journal never belonged to a cluster.
    NotBegun,
    /// Some shards have members.
    Interrupted,
    /// All shards have members.
    Complete,
}

/// Returns how far [`init`] has come in a journal.
pub fn init_state(journal: &Journal) -> InitState {
    let shards = (0..journal.shard_count()).map(ShardId);
    let count = shards.filter(|it| has_members(journal, *it)).count();
    match count {
        0 => InitState::NotBegun,
        _ if count == usize::from(journal.shard_count()) => InitState::Complete,
        _ => InitState::Interrupted,
    }
}

/// Returns the members of the newest membership of shard 0 that is known to be committed or is in
/// the log, by id. The journal must not be in use by a [`Node`](crate::Node).
pub fn members_on_disk(journal: &Arc<Journal>) -> Result<Vec<Member>, LogError> {
    let log = ShardLog::open(journal.clone(), ShardId(0), || 0)?;
    let membership = log.newest_membership()?;
    let nodes = membership.nodes().map(|(id, addresses)| Member {
        id: *id,
        addresses: addresses.clone(),
    });
    Ok(nodes.collect())
}

fn has_members(journal: &Journal, shard: ShardId) -> bool {
    let stream = journal.stream(shard, MEMBERS_STREAM);
    stream.is_some_and(|stream| stream.next > 0)
}
