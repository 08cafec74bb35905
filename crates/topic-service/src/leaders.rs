//! The nodes that lead partitions, groups and the catalogue.

use journal::ShardId;
use platform::{Membership, ShardRole};

use super::service::Topics;
use super::state::{SHARD, stream_name};
use super::topic::Topic;

/// Returns the leader and the replicas of the catalogue in a cluster.
pub fn catalogue_role(membership: &dyn Membership) -> ShardRole {
    membership.shard(SHARD)
}

impl Topics {
    /// Returns the nodes of the cluster, and the leader of each shard.
    pub fn membership(&self) -> &dyn Membership {
        &*self.state.platform.membership
    }

    /// Returns the leader and the replicas of the catalogue. The leader administers topics and
    /// users.
    pub fn catalogue_role(&self) -> ShardRole {
        catalogue_role(self.membership())
    }

    /// Returns the leader and the replicas of a partition.
    pub fn partition_role(&self, topic: &Topic, partition: u32) -> ShardRole {
        let shard = match &topic.events {
            // The events of a namespace have one partition per shard.
            Some(_) => ShardId(u16::try_from(partition).unwrap_or(u16::MAX)),
            None => {
                let name = stream_name(topic.about().id, partition);
                self.state.store.shard_of(&name)
            }
        };
        self.membership().shard(shard)
    }

    /// Returns the leader and the replicas of a consumer group. The leader is its coordinator.
    pub fn group_role(&self, group: &str) -> ShardRole {
        self.membership().shard(self.state.store.shard_of(group))
    }

    /// Returns the leader epoch of a partition; -1 if it is unknown here.
    pub fn leader_epoch(&self, topic: &Topic, partition: u32) -> i32 {
        let view = self.view(topic, partition);
        view.map_or(-1, |view| view.leader_epoch)
    }
}
