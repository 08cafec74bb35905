//! ElectLeaders: the leaders are elected by their shards; no request is needed.

use kafka::ErrorCode;
use kafka::elect_leaders::{PartitionResponse, Request, Response, TopicPartitions, TopicResponse};
use topic_service::TopicRef;

use super::partition_in;
use crate::brokers::Brokers;
use crate::client::Client;

/// Election types in Kafka's numbers: the preferred leader, or any live replica.
const TYPES: std::ops::RangeInclusive<i8> = 0..=1;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    if !TYPES.contains(&request.election_type) {
        return Response {
            error_code: ErrorCode::InvalidRequest,
            ..Response::default()
        };
    }
    // A request for all partitions returns only those that need an election: none.
    let asked = request.topic_partitions.unwrap_or_default();
    let brokers = Brokers::of(client);
    let results = asked.into_iter().map(|it| topic(client, &brokers, it));
    Response {
        replica_election_results: results.collect(),
        ..Response::default()
    }
}

fn topic(client: &Client, brokers: &Brokers<'_>, asked: TopicPartitions) -> TopicResponse {
    let found = client.topics().find(TopicRef::Name(&asked.topic));
    let partitions = asked.partitions.into_iter().map(|partition_id| {
        let index = found
            .as_ref()
            .ok_or(ErrorCode::UnknownTopicOrPartition)
            .and_then(|topic| {
                let index = partition_in(topic, partition_id)?;
                Ok(brokers.replication(topic, index).error_code)
            });
        let (error_code, message) = match index {
            Ok(ErrorCode::None) if brokers.is_clustered() => (
                ErrorCode::ElectionNotNeeded,
                "the partition has a leader; the nodes elect another if it fails",
            ),
            Ok(ErrorCode::None) => (
                ErrorCode::ElectionNotNeeded,
                "the only broker leads the partition",
            ),
            Ok(_) => (
                ErrorCode::EligibleLeadersNotAvailable,
                "the leader is unknown; the nodes elect one when most of them are connected",
            ),
            Err(code) => (code, "there is no such topic or partition"),
        };
        PartitionResponse {
            partition_id,
            error_code,
            error_message: Some(message.to_owned()),
        }
    });
    TopicResponse {
        partition_result: partitions.collect(),
        topic: asked.topic,
    }
}
