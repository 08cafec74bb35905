//! The adapter between openraft and the journal.
//!
//! An entry of the replicated log is a block of the shard, and the block's index is the entry's index
//! plus one. Votes and memberships are blocks too. So the journal is the only copy of the log, and
//! its order of writes is that of the consensus.

mod entry;
mod flushes;
mod log;
mod machine;
mod members;
mod reader;
mod store;
#[cfg(test)]
mod tests;
mod types;
mod votes;

pub(crate) use self::entry::{Block, Entry};
pub use self::log::LogError;
pub(crate) use self::log::ShardLog;
pub(crate) use self::machine::{Machine, Raft, SnapshotData};
pub(crate) use self::members::{
    decode_membership, encode_membership, get_addresses, members_block, put_addresses,
};
pub(crate) use self::store::Store;
pub(crate) use self::types::{
    AppendRequest, AppendResponse, LogId, Membership, RpcError, Runtime, Term, Types, Vote, log_id,
};
pub(crate) use self::votes::save_vote;
