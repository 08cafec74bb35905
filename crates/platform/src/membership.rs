//! [`Membership`]: the nodes of a cluster, and the leader of each shard, as this node knows them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::ShardId;

/// A node of a cluster, with the addresses at which clients reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The id, from 1; never used again in the cluster.
    pub id: u64,
    /// The name, for people.
    pub name: String,
    /// Host and port of the Kafka listener; `None` if the node has none.
    pub kafka: Option<(String, u16)>,
    /// `host:port` of the HTTP listener.
    pub http: Option<String>,
    /// `host:port` of the native listener.
    pub native: Option<String>,
}

/// The role of the nodes in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRole {
    /// The node that leads the shard; `None` while that is unknown.
    pub leader: Option<u64>,
    /// The leadership term; 0 on a node alone.
    pub term: u64,
    /// The voters of the shard, by id.
    pub replicas: Arc<[u64]>,
    /// The voters that are not behind, by id; the leader is one of them.
    pub in_sync: Arc<[u64]>,
}

/// How far a shard is replicated, as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardReplication {
    /// The node leads the shard.
    pub is_leader: bool,
    /// The node has a vote in the shard.
    pub is_voter: bool,
    /// The node that leads the shard; `None` while that is unknown.
    pub leader: Option<u64>,
    /// The leadership term. Each election increments it.
    pub term: u64,
    /// Elections since the start of this node, as far as it knows of them.
    pub elections: u64,
    /// Index of the last block of this node.
    pub last_block: u64,
    /// Index of the last committed block that this node knows.
    pub committed_block: u64,
    /// Bytes of blocks that are not committed.
    pub uncommitted_bytes: u64,
    /// Proposals that consensus has refused since the start; each was repeated or its reign ended.
    pub refused_proposals: u64,
    /// The other members; empty unless this node leads.
    pub peers: Vec<PeerReplication>,
}

/// How far a member has a shard's blocks, as the leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerReplication {
    /// The member's id.
    pub id: u64,
    /// Committed blocks that are not known to be on its disk.
    pub behind_blocks: u64,
    /// Bytes of these; those that are filed are left out.
    pub behind_bytes: u64,
    /// Time since it had everything that was committed then; `None` if it never had.
    pub behind: Option<Duration>,
}

/// Another member, as this node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// The member's id.
    pub id: u64,
    /// Milliseconds by which its clock is ahead of this node's; `None` if it does not answer.
    pub clock_ahead_ms: Option<i64>,
    /// This node does not admit it, because it has lost data.
    pub is_kept_out: bool,
}

/// A call to another node failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call was not sent: repeating it is safe.
    #[error("the node cannot be reached; nothing was sent")]
    NotSent,
    /// The call was sent and its outcome is unknown.
    #[error("the node has not answered: whether the request was executed is unknown")]
    Unknown,
}

/// The answer of a call to another node.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<Bytes, CallError>> + Send>>;

/// The nodes of a cluster, and the leader of each shard. Nothing in it is promised: a leader may be
/// deposed at any moment, which the journal then reports.
pub trait Membership: Send + Sync {
    /// Returns the id of this node; 1 on a node alone.
    fn own_id(&self) -> u64;

    /// Returns whether the node belongs to a cluster, even if it is the only member.
    fn is_clustered(&self) -> bool;

    /// Returns the cluster id: the journal id of the node that founded the cluster.
    fn cluster_id(&self) -> u64;

    /// Returns all members, by id. A node alone is the only one.
    fn members(&self) -> Arc<[Member]>;

    /// Returns the leader and the replicas of a shard.
    fn shard(&self, shard: ShardId) -> ShardRole;

    /// Returns how far each shard is replicated, by number; empty on a node alone.
    fn replication(&self) -> Vec<ShardReplication>;

    /// Returns the other members; none on a node alone.
    fn peers(&self) -> Vec<PeerState>;

    /// Returns whether the clock of this node is so far off the others that it does not lead.
    fn is_clock_off(&self) -> bool;

    /// Sends a request to another member and returns its answer. Both have at most
    /// [`CALL_SIZE_MAX`] bytes.
    fn call(&self, to: u64, request: Bytes, timeout: Duration) -> CallFuture;
}

/// Maximum size of a request to another member, and of its answer, in bytes.
pub const CALL_SIZE_MAX: usize = 1 << 20;

/// The id of a node alone.
const ALONE_ID: u64 = 1;

/// The membership of a node that belongs to no cluster: it leads all shards.
pub struct Alone {
    cluster_id: u64,
    members: Arc<[Member]>,
    ids: Arc<[u64]>,
}

impl Alone {
    /// Creates the membership of a node alone, whose cluster id is its journal's id.
    pub fn new(cluster_id: u64) -> Self {
        let member = Member {
            id: ALONE_ID,
            name: String::new(),
            kafka: None,
            http: None,
            native: None,
        };
        Self {
            cluster_id,
            members: Arc::new([member]),
            ids: Arc::new([ALONE_ID]),
        }
    }
}

impl Membership for Alone {
    fn own_id(&self) -> u64 {
        ALONE_ID
    }

    fn is_clustered(&self) -> bool {
        false
    }

    fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    fn members(&self) -> Arc<[Member]> {
        self.members.clone()
    }

    fn shard(&self, _: ShardId) -> ShardRole {
        ShardRole {
            leader: Some(ALONE_ID),
            term: 0,
            replicas: self.ids.clone(),
            in_sync: self.ids.clone(),
        }
    }

    fn replication(&self) -> Vec<ShardReplication> {
        Vec::new()
    }

    fn peers(&self) -> Vec<PeerState> {
        Vec::new()
    }

    fn is_clock_off(&self) -> bool {
        false
    }

    fn call(&self, _: u64, _: Bytes, _: Duration) -> CallFuture {
        Box::pin(std::future::ready(Err(CallError::NotSent)))
    }
}
