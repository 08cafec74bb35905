//! The Kafka APIs, one file each: they translate requests to calls of the node, and results to
//! answers.

pub(super) mod add_offsets_to_txn;
pub(super) mod add_partitions_to_txn;
pub(super) mod alter_configs;
pub(super) mod alter_partition_reassignments;
pub(super) mod alter_user_scram_credentials;
pub(super) mod api_versions;
mod authorized;
mod broker_configs;
mod changes;
mod configs;
pub(super) mod consumer_group_heartbeat;
pub(super) mod create_partitions;
pub(super) mod create_topics;
pub(super) mod delete_groups;
pub(super) mod delete_records;
pub(super) mod delete_topics;
pub(super) mod describe_acls;
pub(super) mod describe_client_quotas;
pub(super) mod describe_cluster;
pub(super) mod describe_configs;
pub(super) mod describe_groups;
pub(super) mod describe_log_dirs;
pub(super) mod describe_producers;
pub(super) mod describe_quorum;
pub(super) mod describe_topic_partitions;
pub(super) mod describe_transactions;
pub(super) mod describe_user_scram_credentials;
pub(super) mod elect_leaders;
pub(super) mod end_txn;
pub(super) mod fetch;
pub(super) mod find_coordinator;
pub(super) mod heartbeat;
pub(super) mod incremental_alter_configs;
pub(super) mod init_producer_id;
pub(super) mod join_group;
pub(super) mod leave_group;
pub(super) mod list_config_resources;
pub(super) mod list_groups;
pub(super) mod list_offsets;
pub(super) mod list_partition_reassignments;
pub(super) mod list_transactions;
mod marks;
pub(super) mod metadata;
pub(super) mod offset_commit;
pub(super) mod offset_delete;
pub(super) mod offset_fetch;
pub(super) mod offset_for_leader_epoch;
pub(super) mod produce;
pub(super) mod sasl_authenticate;
pub(super) mod sasl_handshake;
mod scram_users;
pub(super) mod sync_group;
pub(super) mod txn_offset_commit;
pub(super) mod write_txn_markers;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kafka::{ErrorCode, Uuid};
use platform::Membership;
use topic_service::{Topic, TopicRef, Topics};
use topics::TopicId;

/// Returns the cluster id: that of the data directory with which the cluster began.
pub(super) fn cluster_id(membership: &dyn Membership) -> String {
    URL_SAFE_NO_PAD.encode(membership.cluster_id().to_be_bytes())
}

/// Returns a topic id as it is encoded.
fn uuid(id: TopicId) -> Uuid {
    Uuid(id.0)
}

/// Finds a topic by name, or by id in versions with ids.
fn find(topics: &Topics, name: &str, id: Uuid, has_ids: bool) -> Result<Arc<Topic>, ErrorCode> {
    let (asked, missing) = asked_topic(name, id, has_ids);
    topics.find(asked).ok_or(missing)
}

/// Returns the topic that a request names, and the error if it does not exist.
fn asked_topic(name: &str, id: Uuid, has_ids: bool) -> (TopicRef<'_>, ErrorCode) {
    match has_ids {
        true => (TopicRef::Id(TopicId(id.0)), ErrorCode::UnknownTopicId),
        false => (TopicRef::Name(name), ErrorCode::UnknownTopicOrPartition),
    }
}

/// Returns a partition index, if it is not negative.
fn partition_of(index: i32) -> Result<u32, ErrorCode> {
    u32::try_from(index).map_err(|_| ErrorCode::UnknownTopicOrPartition)
}

/// Returns a partition index, if the topic has this partition.
fn partition_in(topic: &Topic, index: i32) -> Result<u32, ErrorCode> {
    let index = partition_of(index)?;
    match index < topic.about().partitions {
        true => Ok(index),
        false => Err(ErrorCode::UnknownTopicOrPartition),
    }
}

/// Returns an offset as Kafka encodes it.
fn offset(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}
