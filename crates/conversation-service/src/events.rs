//! The event partitions of a namespace: one per shard, named `org/namespace/SHARD`.

use journal::ShardId;
use store::namespace_of;

/// Returns the name of the event partition of a conversation that is in a shard.
pub(super) fn event_partition(conversation: &str, shard: ShardId) -> String {
    format!("{}/{}", namespace_of(conversation), shard.0)
}
