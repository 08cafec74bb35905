//! The members, as services and listeners see them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::ShardId;
use platform::{
    CallError, CallFuture, Member, Membership, PeerReplication, PeerState, ShardReplication,
    ShardRole,
};

use crate::{Node, PeerStatus, ShardStatus};

/// The members of the cluster that this node belongs to.
pub struct Members(Arc<Node>);

impl Members {
    /// Creates the members as a node knows them.
    pub fn new(node: Arc<Node>) -> Members {
        Members(node)
    }
}

impl Membership for Members {
    fn own_id(&self) -> u64 {
        self.0.id()
    }

    fn is_clustered(&self) -> bool {
        true
    }

    fn cluster_id(&self) -> u64 {
        self.0.cluster()
    }

    fn members(&self) -> Arc<[Member]> {
        let members = self.0.members().into_iter();
        let member = |it: crate::Member| Member {
            id: it.id,
            name: it.addresses.name,
            kafka: it.addresses.kafka.as_deref().and_then(host_and_port),
            http: it.addresses.http,
            native: it.addresses.native,
        };
        members.map(member).collect()
    }

    fn shard(&self, shard: ShardId) -> ShardRole {
        let status = self.0.status(shard);
        ShardRole {
            leader: status.leader,
            term: status.term,
            in_sync: status.in_sync(self.0.id()).into(),
            replicas: status.voters.into(),
        }
    }

    fn replication(&self) -> Vec<ShardReplication> {
        let statuses = (0..).map(ShardId).zip(self.0.statuses());
        let replication = |(shard, status): (ShardId, ShardStatus)| {
            let peer = |it: &PeerStatus| PeerReplication {
                id: it.id,
                behind_blocks: status.behind_blocks(it),
                behind_bytes: self.0.behind_bytes(shard, it),
                behind: it.behind,
            };
            ShardReplication {
                is_leader: status.is_leader,
                is_voter: status.voters.contains(&self.0.id()),
                leader: status.leader,
                term: status.term,
                elections: status.elections,
                last_block: status.last.0,
                committed_block: status.committed.0,
                uncommitted_bytes: status.uncommitted_bytes,
                refused_proposals: status.refused_proposals,
                peers: status.peers.iter().map(peer).collect(),
            }
        };
        statuses.map(replication).collect()
    }

    fn peers(&self) -> Vec<PeerState> {
        let own = self.0.id();
        let (clocks, kept_out) = (self.0.clocks().members, self.0.outdated_members());
        let members = self.0.members().into_iter().map(|member| member.id);
        let peer = |id: u64| PeerState {
            id,
            clock_ahead_ms: clocks.iter().find(|it| it.0 == id).map(|it| it.1),
            is_kept_out: kept_out.contains_key(&id),
        };
        members.filter(|id| *id != own).map(peer).collect()
    }

    fn is_clock_off(&self) -> bool {
        self.0.clocks().off_ms.is_some()
    }

    fn call(&self, to: u64, request: Bytes, timeout: Duration) -> CallFuture {
        let node = self.0.clone();
        Box::pin(async move {
            let called = node.call(to, request, timeout).await;
            called.map_err(|error| match error {
                crate::CallError::NotSent => CallError::NotSent,
                crate::CallError::Unknown => CallError::Unknown,
            })
        })
    }
}

/// Splits `HOST:PORT`; an IPv6 address is in brackets.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let split = |it| host_and_port(it).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(split("node-1:9092").as_deref(), Some("node-1 9092"));
        assert_eq!(split("[::1]:9092").as_deref(), Some("::1 9092"));
        assert_eq!(split("node-1"), None);
        assert_eq!(split("node-1:x"), None);
    }
}
