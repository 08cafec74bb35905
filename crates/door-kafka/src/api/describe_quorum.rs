//! DescribeQuorum: the voters of the shard of the catalogue.

use kafka::ErrorCode;
use kafka::describe_quorum::{
    Listener, Node, Partition, PartitionResponse, ReplicaState, Request, Response, TopicResponse,
};

use crate::brokers::Brokers;
use crate::client::Client;

/// The topic under which Kafka's tools ask for the metadata log, and its only partition.
const METADATA: &str = "__cluster_metadata";
const PARTITION: i32 = 0;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let brokers = Brokers::of(client);
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|it| described(&brokers, &topic.topic_name, it));
        TopicResponse {
            partitions: partitions.collect(),
            topic_name: topic.topic_name,
        }
    });
    Response {
        topics: topics.collect(),
        nodes: brokers
            .list()
            .into_iter()
            .map(|broker| Node {
                node_id: broker.id,
                listeners: vec![Listener {
                    name: "KAFKA".to_owned(),
                    host: broker.address.host,
                    port: broker.address.port,
                }],
            })
            .collect(),
        ..Response::default()
    }
}

/// The metadata is a part of a shard's log, so it has no offsets of its own.
fn described(brokers: &Brokers<'_>, topic: &str, asked: &Partition) -> PartitionResponse {
    let partition_index = asked.partition_index;
    if topic != METADATA || partition_index != PARTITION {
        return PartitionResponse {
            partition_index,
            error_code: ErrorCode::UnknownTopicOrPartition,
            ..PartitionResponse::default()
        };
    }
    PartitionResponse {
        partition_index,
        leader_id: brokers.controller(),
        current_voters: brokers
            .replicas()
            .into_iter()
            .map(|replica_id| ReplicaState {
                replica_id,
                ..ReplicaState::default()
            })
            .collect(),
        ..PartitionResponse::default()
    }
}
