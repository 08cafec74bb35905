//! AlterPartitionReassignments: partitions stay on their replicas.

use kafka::ErrorCode;
use kafka::alter_partition_reassignments::{
    Partition, PartitionResponse, Request, Response, Topic as Asked, TopicResponse,
};
use topic_service::{Topic, TopicRef};

use super::partition_in;
use crate::brokers::Brokers;
use crate::client::Client;
use crate::errors::Failed;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let brokers = Brokers::of(client);
    let topics = request.topics.into_iter();
    let responses = topics.map(|it| topic(client, &brokers, it));
    Response {
        responses: responses.collect(),
        allow_replication_factor_change: request.allow_replication_factor_change,
        ..Response::default()
    }
}

fn topic(client: &Client, brokers: &Brokers<'_>, asked: Asked) -> TopicResponse {
    let found = client.topics().find(TopicRef::Name(&asked.name));
    let partitions = asked.partitions.iter().map(|partition| {
        let outcome = check(brokers, found.as_deref(), partition).err();
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

/// A move to the replicas is done already. No other move is possible, and none is in progress.
fn check(brokers: &Brokers<'_>, topic: Option<&Topic>, asked: &Partition) -> Result<(), Failed> {
    let unknown = |code| Failed::new(code, "there is no such topic or partition");
    let topic = topic.ok_or_else(|| unknown(ErrorCode::UnknownTopicOrPartition))?;
    let index = partition_in(topic, asked.partition_index).map_err(unknown)?;
    let mut now = brokers.replication(topic, index).replicas;
    now.sort_unstable();
    match asked.replicas.as_deref() {
        Some(replicas) if is_same(replicas, &now) => Ok(()),
        None => Err(Failed::new(
            ErrorCode::NoReassignmentInProgress,
            "the partition is not being moved",
        )),
        Some(replicas) => {
            let message = match *now {
                [only] => format!("replicas {replicas:?}: there is one broker, {only}"),
                _ => format!("replicas {replicas:?}: the replicas are {now:?}, and stay so"),
            };
            Err(Failed::new(ErrorCode::InvalidReplicaAssignment, message))
        }
    }
}

/// Returns whether the replicas are these, in any order. `now` is sorted.
fn is_same(replicas: &[i32], now: &[i32]) -> bool {
    let mut replicas = replicas.to_vec();
    replicas.sort_unstable();
    replicas == now
}
