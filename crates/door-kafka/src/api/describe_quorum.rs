//! DescribeQuorum: the only broker is the only voter.

use kafka::ErrorCode;
use kafka::describe_quorum::{
    Listener, Node, Partition, PartitionResponse, ReplicaState, Request, Response, TopicResponse,
};

use super::NODE_ID;
use crate::client::Client;

/// The topic under which Kafka's tools ask for the metadata log, and its only partition.
const METADATA: &str = "__cluster_metadata";
const PARTITION: i32 = 0;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|it| described(&topic.topic_name, it));
        TopicResponse {
            partitions: partitions.collect(),
            topic_name: topic.topic_name,
        }
    });
    let listener = Listener {
        name: "KAFKA".to_owned(),
        host: client.place.host.clone(),
        port: client.place.port,
    };
    Response {
        topics: topics.collect(),
        nodes: vec![Node {
            node_id: NODE_ID,
            listeners: vec![listener],
        }],
        ..Response::default()
    }
}

/// The metadata is not a log that other nodes could follow, so its offsets are not shown.
fn described(topic: &str, asked: &Partition) -> PartitionResponse {
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
        leader_id: NODE_ID,
        current_voters: vec![ReplicaState {
            replica_id: NODE_ID,
            ..ReplicaState::default()
        }],
        ..PartitionResponse::default()
    }
}
