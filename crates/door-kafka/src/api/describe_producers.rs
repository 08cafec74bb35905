//! DescribeProducers: lists the producers that partitions remember.

use kafka::ErrorCode;
use kafka::describe_producers::{PartitionResponse, Producer, Request, Response, TopicResponse};
use topic_service::{Topic, TopicRef, Topics};
use topics::ProducerView;

use super::{offset, partition_in};
use crate::client::Client;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let topics = client.topics();
    let answers = request.topics.into_iter().map(|asked| {
        let topic = topics.find(TopicRef::Name(&asked.name));
        let partitions = asked.partition_indexes.iter().map(|index| {
            let found = look_up(topics, topic.as_deref(), *index);
            shown(*index, found)
        });
        TopicResponse {
            partitions: partitions.collect(),
            name: asked.name,
        }
    });
    Response {
        topics: answers.collect(),
        ..Response::default()
    }
}

fn look_up(
    topics: &Topics,
    topic: Option<&Topic>,
    index: i32,
) -> Result<Vec<ProducerView>, ErrorCode> {
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let producers = topics.producers(topic, partition_in(topic, index)?);
    producers.map_err(|_| ErrorCode::UnknownTopicOrPartition)
}

fn shown(partition_index: i32, found: Result<Vec<ProducerView>, ErrorCode>) -> PartitionResponse {
    let response = PartitionResponse {
        partition_index,
        ..PartitionResponse::default()
    };
    match found {
        Ok(producers) => PartitionResponse {
            active_producers: producers.iter().map(producer).collect(),
            ..response
        },
        Err(error_code) => PartitionResponse {
            error_code,
            error_message: Some("there is no such partition".to_owned()),
            ..response
        },
    }
}

fn producer(view: &ProducerView) -> Producer {
    Producer {
        producer_id: view.id.0,
        producer_epoch: i32::from(view.epoch),
        last_sequence: view.last_sequence,
        last_timestamp: view.last_ms,
        coordinator_epoch: view.coordinator_epoch,
        current_txn_start_offset: view.transaction_start.map_or(-1, offset),
    }
}
