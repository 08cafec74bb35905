//! Shards that several nodes replicate.
//!
//! Each shard has a consensus group, which orders its blocks. Consensus is openraft's; the log is the
//! journal. A leader decides and appends as a node alone does, and its closed blocks are proposed;
//! followers append the blocks that they are sent, and load no engines.
//!
//! The crate knows blocks and no records: neither engines nor protocols of clients.

#[doc(hidden)]
pub mod fuzzing;
mod link;
mod node;
mod proposer;
mod raft;
mod reign;

pub use link::{Dialer, HandshakeError, Key, KeyError, Refusal};
pub use node::{Acceptor, Node, Settings, ShardStatus, StartError, found};
pub use raft::LogError;
