//! The types that openraft is used with.

use std::fmt;
use std::io::Cursor;

use bytes::Bytes;
use openraft::impls::leader_id_std;

openraft::declare_raft_types!(
    /// Blocks as entries, nodes with their addresses, and a log id that is a term and an index.
    pub(crate) Types:
        D = Block,
        R = (),
        LeaderId = leader_id_std::LeaderId<Self::Term, Self::NodeId>,
);

pub(crate) type Entry = openraft::type_config::alias::EntryOf<Types>;
pub(crate) type LogId = openraft::type_config::alias::LogIdOf<Types>;
pub(crate) type Vote = openraft::type_config::alias::VoteOf<Types>;
pub(crate) type Term = openraft::type_config::alias::CommittedLeaderIdOf<Types>;
pub(crate) type AppendRequest = openraft::raft::AppendEntriesRequest<Types>;
pub(crate) type RpcError = openraft::errors::RPCError<Types>;
pub(crate) type Raft = openraft::Raft<Types, crate::machine::Machine>;
/// Snapshots are never made; the type is only named.
pub(crate) type SnapshotData = Cursor<Vec<u8>>;

/// A log id from its two numbers.
pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(Term::from(term), index)
}

/// Frames that were proposed together: one entry of the log.
#[derive(Clone)]
pub(crate) struct Block {
    /// Its number among the blocks that this leader has proposed, from 0.
    pub(crate) number: u64,
    /// The frames.
    pub(crate) body: Bytes,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} of {} bytes", self.number, self.body.len())
    }
}
