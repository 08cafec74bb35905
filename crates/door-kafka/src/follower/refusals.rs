//! Answers to requests that no leader has answered: errors after which clients look for the leader and
//! repeat them, also if it is unknown whether they were executed.

use kafka::{
    ErrorCode, Records, Request, fetch, heartbeat, init_producer_id, leave_group, list_offsets,
    offset_commit, offset_fetch, offset_for_leader_epoch, produce, sync_group,
};
use platform::NotDurable;

use crate::api::{api_versions, find_coordinator, join_group, metadata};
use crate::errors::{of_not_durable_decision, of_not_durable_records};
use crate::listener::BrokerAddress;
use crate::reply::{Reply, Tag};

use super::request::PendingRequest;
use super::{Follower, KnownServices};

/// The offset of no record.
const NO_OFFSET: i64 = -1;

impl Follower {
    /// Returns the answer to a request that was not executed, or of which that is unknown. `None` if clients
    /// would not repeat it, or if they may not know the services.
    pub(super) fn refuse(
        &self,
        asked: PendingRequest,
        error: NotDurable,
        own: &BrokerAddress,
        services: Option<KnownServices>,
    ) -> Option<Reply> {
        let (tag, request) = match asked {
            PendingRequest::Known(tag, request) => (tag, *request),
            PendingRequest::FutureVersions(correlation_id) => {
                return Some(Reply::of_future_versions(correlation_id));
            }
            PendingRequest::Invalid => return None,
        };
        if let Request::ApiVersions(it) = &request {
            return Some(tag.reply(api_versions::answer(true, it, tag.version)));
        }
        let services = services?;
        match request {
            Request::Metadata(it) => {
                let topics = services.topics.as_deref();
                let response =
                    metadata::without_leader(&*self.membership, own, topics, tag.version, &it);
                Some(tag.reply(response?))
            }
            request => refuse(tag, request, error),
        }
    }
}

fn refuse(tag: Tag, request: Request, error: NotDurable) -> Option<Reply> {
    let coordinator = of_not_durable_decision(error);
    Some(match request {
        Request::FindCoordinator(it) => {
            tag.reply(find_coordinator::without_leader(tag.version, it))
        }
        Request::Produce(it) if it.acks != 0 => {
            tag.reply(produced(it, of_not_durable_records(error)))
        }
        Request::Fetch(it) => tag.reply(fetched(it)),
        Request::ListOffsets(it) => tag.reply(listed(it)),
        Request::OffsetForLeaderEpoch(it) => tag.reply(epochs(it)),
        // Producers repeat it at any broker, without a search for a coordinator.
        Request::InitProducerId(_) => tag.reply(init_producer_id::Response {
            error_code: ErrorCode::CoordinatorLoadInProgress,
            producer_epoch: -1,
            ..Default::default()
        }),
        Request::JoinGroup(it) => {
            tag.reply(join_group::refused(coordinator, it.member_id, tag.version))
        }
        Request::SyncGroup(_) => tag.reply(sync_group::Response {
            error_code: coordinator,
            ..Default::default()
        }),
        Request::Heartbeat(_) => tag.reply(heartbeat::Response {
            error_code: coordinator,
            ..Default::default()
        }),
        Request::LeaveGroup(_) => tag.reply(leave_group::Response {
            error_code: coordinator,
            ..Default::default()
        }),
        Request::OffsetCommit(it) => tag.reply(committed(it, coordinator)),
        Request::OffsetFetch(it) => tag.reply(offsets(it, coordinator)),
        _ => return None,
    })
}

fn produced(request: produce::Request, error_code: ErrorCode) -> produce::Response {
    let partition = |it: produce::Partition| produce::PartitionResponse {
        index: it.index,
        error_code,
        base_offset: NO_OFFSET,
        ..Default::default()
    };
    let topic = |it: produce::Topic| produce::TopicResponse {
        name: it.name,
        topic_id: it.topic_id,
        partition_responses: it.partition_data.into_iter().map(partition).collect(),
    };
    produce::Response {
        responses: request.topic_data.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

fn fetched(request: fetch::Request) -> fetch::Response {
    let partition = |it: fetch::Partition| fetch::PartitionResponse {
        partition_index: it.partition,
        error_code: ErrorCode::NotLeaderOrFollower,
        high_watermark: NO_OFFSET,
        records: Some(Records::default()),
        ..Default::default()
    };
    let topic = |it: fetch::Topic| fetch::TopicResponse {
        topic: it.topic,
        topic_id: it.topic_id,
        partitions: it.partitions.into_iter().map(partition).collect(),
    };
    fetch::Response {
        responses: request.topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

fn listed(request: list_offsets::Request) -> list_offsets::Response {
    let partition = |it: list_offsets::Partition| list_offsets::PartitionResponse {
        partition_index: it.partition_index,
        error_code: ErrorCode::NotLeaderOrFollower,
        ..Default::default()
    };
    let topic = |it: list_offsets::Topic| list_offsets::TopicResponse {
        name: it.name,
        partitions: it.partitions.into_iter().map(partition).collect(),
    };
    list_offsets::Response {
        topics: request.topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

fn epochs(request: offset_for_leader_epoch::Request) -> offset_for_leader_epoch::Response {
    let partition = |it: offset_for_leader_epoch::Partition| offset_for_leader_epoch::EpochEnd {
        error_code: ErrorCode::NotLeaderOrFollower,
        partition: it.partition,
        ..Default::default()
    };
    let topic = |it: offset_for_leader_epoch::Topic| offset_for_leader_epoch::TopicResponse {
        topic: it.topic,
        partitions: it.partitions.into_iter().map(partition).collect(),
    };
    offset_for_leader_epoch::Response {
        topics: request.topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

fn committed(request: offset_commit::Request, error_code: ErrorCode) -> offset_commit::Response {
    let partition = |it: offset_commit::Partition| offset_commit::PartitionResponse {
        partition_index: it.partition_index,
        error_code,
    };
    let topic = |it: offset_commit::Topic| offset_commit::TopicResponse {
        name: it.name,
        partitions: it.partitions.into_iter().map(partition).collect(),
    };
    offset_commit::Response {
        topics: request.topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

/// Sets the error of the request, of each group and of each partition: every version has one of them.
fn offsets(request: offset_fetch::Request, error_code: ErrorCode) -> offset_fetch::Response {
    let partition = |partition_index: i32| offset_fetch::PartitionResponse {
        partition_index,
        committed_offset: NO_OFFSET,
        error_code,
        ..Default::default()
    };
    let topic = |it: offset_fetch::Topic| offset_fetch::TopicResponse {
        name: it.name,
        partitions: it.partition_indexes.into_iter().map(partition).collect(),
    };
    let group = |it: offset_fetch::Group| offset_fetch::GroupResponse {
        group_id: it.group_id,
        topics: Vec::new(),
        error_code,
    };
    let topics = request.topics.unwrap_or_default();
    offset_fetch::Response {
        topics: topics.into_iter().map(topic).collect(),
        error_code,
        groups: request.groups.into_iter().map(group).collect(),
        ..Default::default()
    }
}
