//! AlterPartitionReassignments: all partitions are on the only broker, and stay there.

use kafka::ErrorCode;
use kafka::alter_partition_reassignments::{
    Partition, PartitionResponse, Request, Response, Topic as Asked, TopicResponse,
};
use topic_service::{Topic, TopicRef, Topics};

use super::{NODE_ID, partition_in};
use crate::client::Client;
use crate::errors::Failed;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let topics = request.topics.into_iter();
    let responses = topics.map(|it| topic(client.topics(), it));
    Response {
        responses: responses.collect(),
        allow_replication_factor_change: request.allow_replication_factor_change,
        ..Response::default()
    }
}

fn topic(topics: &Topics, asked: Asked) -> TopicResponse {
    let found = topics.find(TopicRef::Name(&asked.name));
    let partitions = asked.partitions.iter().map(|partition| {
        let outcome = check(found.as_deref(), partition).err();
        let (error_code, error_message) = match outcome {
            None => (ErrorCode::None, None),
            Some(failed) => (failed.code, Some(failed.message)),
        };
        PartitionResponse {
            partition_index: partition.partition_index,
            error_code,
            error_message,
        }
    });
    TopicResponse {
        partitions: partitions.collect(),
        name: asked.name,
    }
}

/// A move to the only broker is done already. No other move is possible, and none is in progress.
fn check(topic: Option<&Topic>, asked: &Partition) -> Result<(), Failed> {
    let unknown = |code| Failed::new(code, "there is no such topic or partition");
    let topic = topic.ok_or_else(|| unknown(ErrorCode::UnknownTopicOrPartition))?;
    partition_in(topic, asked.partition_index).map_err(unknown)?;
    match asked.replicas.as_deref() {
        Some([NODE_ID]) => Ok(()),
        None => Err(Failed::new(
            ErrorCode::NoReassignmentInProgress,
            "the partition is not being moved",
        )),
        Some(replicas) => {
            let message = format!("replicas {replicas:?}: there is one broker, {NODE_ID}");
            Err(Failed::new(ErrorCode::InvalidReplicaAssignment, message))
        }
    }
}
