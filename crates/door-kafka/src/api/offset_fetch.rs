//! OffsetFetch: returns committed offsets of groups.

use std::collections::BTreeMap;

use kafka::ErrorCode;
use kafka::offset_fetch::{
    Group, GroupResponse, PartitionResponse, Request, Response, TopicResponse,
};
use topic_service::{Committed, Topics};

use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

/// From this version a request contains many groups (KIP-709).
const BATCHED_FROM: i16 = 8;
/// Below this version a group's error is repeated for each of its partitions.
const GROUP_ERROR_FROM: i16 = 2;

/// The value for no committed offset.
const NO_OFFSET: i64 = -1;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics().clone();
    let is_stable = request.require_stable;
    let deadline = Deadline::usual();
    if tag.version >= BATCHED_FROM {
        return tag.later(async move {
            let mut response = Response::default();
            for group in request.groups {
                let found = fetch(&topics, group, is_stable, deadline).await;
                response.groups.push(found);
            }
            response
        });
    }
    let group = Group {
        group_id: request.group_id,
        topics: request.topics,
        ..Group::default()
    };
    tag.later(async move {
        let asked = group.topics.clone();
        let mut found = fetch(&topics, group, is_stable, deadline).await;
        if found.error_code.is_error() && tag.version < GROUP_ERROR_FROM {
            let asked = asked.unwrap_or_default();
            found.topics = everywhere(asked, found.error_code);
        }
        Response {
            topics: found.topics,
            error_code: found.error_code,
            ..Response::default()
        }
    })
}

async fn fetch(
    topics: &Topics,
    group: Group,
    is_stable: bool,
    deadline: Deadline,
) -> GroupResponse {
    let asked = group.topics.as_ref().map(|asked| {
        asked
            .iter()
            .flat_map(|topic| topic.partition_indexes.iter().map(|it| (&*topic.name, *it)))
            .collect::<Vec<_>>()
    });
    // A negative partition index has no committed offset.
    let known = asked.as_ref().map(|asked| {
        let known = asked.iter();
        known
            .filter_map(|(topic, index)| Some((*topic, u32::try_from(*index).ok()?)))
            .collect::<Vec<_>>()
    });
    let committing = topics.committed(&group.group_id, known.as_deref());
    let (mut response, committed) = match deadline.outcome(committing).await {
        Ok(committed) => (GroupResponse::default(), committed),
        Err(failed) => {
            let error_code = failed.code;
            return GroupResponse {
                group_id: group.group_id,
                error_code,
                ..GroupResponse::default()
            };
        }
    };
    response.topics = match asked {
        None => by_topic(&committed, is_stable),
        Some(_) => in_order(group.topics.unwrap_or_default(), &committed, is_stable),
    };
    response.group_id = group.group_id;
    response
}

/// Returns all committed offsets.
fn by_topic(committed: &[Committed], is_stable: bool) -> Vec<TopicResponse> {
    let mut topics: BTreeMap<&str, Vec<PartitionResponse>> = BTreeMap::new();
    for it in committed {
        let partitions = topics.entry(&it.topic).or_default();
        partitions.push(shown(it.partition as i32, Some(it), is_stable));
    }
    let topics = topics.into_iter().map(|(name, partitions)| TopicResponse {
        name: name.to_owned(),
        partitions,
    });
    topics.collect()
}

/// Returns the requested offsets, in the order of the request.
fn in_order(
    asked: Vec<kafka::offset_fetch::Topic>,
    committed: &[Committed],
    is_stable: bool,
) -> Vec<TopicResponse> {
    let known: BTreeMap<(&str, u32), &Committed> = committed
        .iter()
        .map(|it| ((&*it.topic, it.partition), it))
        .collect();
    let topics = asked.into_iter().map(|topic| {
        let partitions = topic.partition_indexes.iter().map(|&index| {
            let key = u32::try_from(index).ok().map(|index| (&*topic.name, index));
            let found = key.and_then(|key| known.get(&key).copied());
            shown(index, found, is_stable)
        });
        let partitions = partitions.collect();
        TopicResponse {
            name: topic.name,
            partitions,
        }
    });
    topics.collect()
}

fn shown(
    partition_index: i32,
    committed: Option<&Committed>,
    is_stable: bool,
) -> PartitionResponse {
    let nothing = PartitionResponse {
        partition_index,
        committed_offset: NO_OFFSET,
        metadata: Some(String::new()),
        ..PartitionResponse::default()
    };
    match committed {
        Some(it) if is_stable && it.is_unstable => PartitionResponse {
            error_code: ErrorCode::UnstableOffsetCommit,
            ..nothing
        },
        Some(Committed {
            mark: Some(mark), ..
        }) => PartitionResponse {
            committed_offset: mark.offset,
            committed_leader_epoch: mark.leader_epoch,
            metadata: Some(mark.metadata.to_string()),
            ..nothing
        },
        _ => nothing,
    }
}

fn everywhere(asked: Vec<kafka::offset_fetch::Topic>, error_code: ErrorCode) -> Vec<TopicResponse> {
    let topics = asked.into_iter().map(|topic| TopicResponse {
        name: topic.name,
        partitions: topic
            .partition_indexes
            .into_iter()
            .map(|index| PartitionResponse {
                error_code,
                ..shown(index, None, false)
            })
            .collect(),
    });
    topics.collect()
}
