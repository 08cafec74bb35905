//! ListOffsets: the start and the end of partitions, and offsets by timestamp.

use kafka::ErrorCode;
use kafka::list_offsets::{Partition, PartitionResponse, Request, Response, TopicResponse};
use topic_service::{Located, Topic, TopicRef, Topics};
use topics::{Find, Isolation};

use super::{offset, partition_in};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

/// From this version a request states a timeout (KIP-1075).
const TIMEOUT_FROM: i16 = 10;

/// The value for the end that the reader may see.
const LATEST: i64 = -1;
/// The value for the log start.
const EARLIEST: i64 = -2;
/// The value for the highest timestamp (KIP-734).
const MAX_TIMESTAMP: i64 = -3;
/// The value for the first offset on the broker's own disk (KIP-405), which is the log start.
const EARLIEST_LOCAL: i64 = -4;
/// The value for the last offset in remote storage (KIP-1005), which does not exist.
const LATEST_TIERED: i64 = -5;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let isolation = match request.isolation_level {
        1 => Isolation::Committed,
        _ => Isolation::Uncommitted,
    };
    let topics = client.topics().clone();
    let deadline = match tag.version {
        TIMEOUT_FROM.. => Deadline::asked(request.timeout_ms).for_disk(),
        _ => Deadline::usual(),
    };
    tag.later(async move {
        let mut response = Response::default();
        for asked in request.topics {
            let found = topics.find(TopicRef::Name(&asked.name));
            let mut partitions = Vec::with_capacity(asked.partitions.len());
            for partition in asked.partitions {
                let index = partition.partition_index;
                let located = locate(&topics, found.as_deref(), &partition, isolation, deadline);
                let located = located.await;
                partitions.push(placed(index, located));
            }
            response.topics.push(TopicResponse {
                name: asked.name,
                partitions,
            });
        }
        response
    })
}

async fn locate(
    topics: &Topics,
    topic: Option<&Topic>,
    asked: &Partition,
    isolation: Isolation,
    deadline: Deadline,
) -> Result<Option<Located>, ErrorCode> {
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let index = check(topics, topic, asked)?;
    let what = match asked.timestamp {
        LATEST => Find::Latest,
        EARLIEST | EARLIEST_LOCAL => Find::Earliest,
        MAX_TIMESTAMP => Find::MaxTimestamp,
        time @ 0.. => Find::Time(time),
        LATEST_TIERED => return Ok(None),
        _ => return Err(ErrorCode::UnsupportedVersion),
    };
    let locating = topics.locate(topic, index, what, isolation);
    let located = deadline.outcome(locating).await;
    located.map_err(|failed| failed.code)
}

/// Checks that the partition exists and that the client knows its leader epoch.
fn check(topics: &Topics, topic: &Topic, asked: &Partition) -> Result<u32, ErrorCode> {
    let index = partition_in(topic, asked.partition_index)?;
    let current = topics.leader_epoch(topic, index);
    match asked.current_leader_epoch {
        known if known < 0 || known == current => Ok(index),
        known if known < current => Err(ErrorCode::FencedLeaderEpoch),
        _ => Err(ErrorCode::UnknownLeaderEpoch),
    }
}

fn placed(index: i32, located: Result<Option<Located>, ErrorCode>) -> PartitionResponse {
    let nowhere = PartitionResponse {
        partition_index: index,
        ..PartitionResponse::default()
    };
    match located {
        Ok(None) => nowhere,
        Ok(Some(located)) => PartitionResponse {
            timestamp: located.timestamp,
            offset: offset(located.offset),
            leader_epoch: located.leader_epoch,
            ..nowhere
        },
        Err(error_code) => PartitionResponse {
            error_code,
            ..nowhere
        },
    }
}
