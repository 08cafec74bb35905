//! Shards that several nodes replicate.
//!
//! Each shard has a consensus group, which orders its blocks. Consensus is openraft's; the log is the
//! journal. A leader decides and appends as a node alone does, and its closed blocks are proposed;
//! followers append the blocks that they are sent, and load no engines.
//!
//! The crate knows blocks and no records: neither engines nor protocols of clients.

mod admit;
mod clock;
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod init;
mod leadership;
mod link;
mod member;
mod membership;
mod node;
mod pauses;
mod proposer;
mod raft;
mod reign;
mod report;
mod stall;
mod tend;
mod wait;

pub use admit::IDS_STREAM;
pub use clock::ClockStatus;
pub use group::{ChangeError, PeerStatus, ShardStatus};
pub use init::{
    InitError, InitState, founder_id, init, init_state, leave, members_on_disk, other_members,
};
pub use leadership::Leadership;
pub use link::{
    CALL_SIZE_MAX, CallError, Dialer, HandshakeError, Image, JoinError, Joined, Key, KeyError,
    Outdated, OutdatedError, Refusal, ReportFile, Services, join,
};
pub use member::{AddressError, Addresses, Member};
pub use membership::Members;
pub use node::{Acceptor, LEASE, Node, Settings, StartError};
pub use raft::LogError;
pub use stall::stall;
