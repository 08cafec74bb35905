//! The event partitions of a namespace: one per shard, named `org/namespace/SHARD`.

use journal::ShardId;

/// Returns the name of the event partition of a conversation that is in a shard.
pub(super) fn event_partition(conversation: &str, shard: ShardId) -> String {
    let namespace = conversation.rsplit_once('/').map_or("", |(it, _)| it);
    format!("{namespace}/{}", shard.0)
}
