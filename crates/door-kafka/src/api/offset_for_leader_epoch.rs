//! OffsetForLeaderEpoch: returns the end offset of a leader epoch.

use kafka::ErrorCode;
use kafka::offset_for_leader_epoch::{EpochEnd, Partition, Request, Response, TopicResponse};
use topic_service::{Topic, TopicRef, Topics};

use super::{offset, partition_in};
use crate::brokers::Brokers;
use crate::client::Client;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let topics = client.topics();
    let brokers = Brokers::of(client);
    let answers = request.topics.into_iter().map(|asked| {
        let topic = topics.find(TopicRef::Name(&asked.topic));
        let partitions = asked.partitions.iter().map(|partition| {
            let found = look_up(topics, &brokers, topic.as_deref(), partition);
            shown(partition.partition, found)
        });
        TopicResponse {
            partitions: partitions.collect(),
            topic: asked.topic,
        }
    });
    Response {
        topics: answers.collect(),
        ..Response::default()
    }
}

fn look_up(
    topics: &Topics,
    brokers: &Brokers<'_>,
    topic: Option<&Topic>,
    asked: &Partition,
) -> Result<Option<(i32, u64)>, ErrorCode> {
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let index = partition_in(topic, asked.partition)?;
    if !brokers.is_leader(topic, index) {
        return Err(ErrorCode::NotLeaderOrFollower);
    }
    let current = topics.leader_epoch(topic, index);
    match asked.current_leader_epoch {
        known if known >= 0 && known < current => return Err(ErrorCode::FencedLeaderEpoch),
        known if known > current => return Err(ErrorCode::UnknownLeaderEpoch),
        _ => {}
    }
    if asked.leader_epoch < 0 {
        return Ok(None);
    }
    let end = topics.end_of_epoch(topic, index, asked.leader_epoch);
    end.map_err(|_| ErrorCode::UnknownTopicOrPartition)
}

fn shown(partition: i32, found: Result<Option<(i32, u64)>, ErrorCode>) -> EpochEnd {
    let unknown = EpochEnd {
        partition,
        ..EpochEnd::default()
    };
    match found {
        Ok(None) => unknown,
        Ok(Some((leader_epoch, end))) => EpochEnd {
            leader_epoch,
            end_offset: offset(end),
            ..unknown
        },
        Err(error_code) => EpochEnd {
            error_code,
            ..unknown
        },
    }
}
