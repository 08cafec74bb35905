//! OffsetDelete: deletes a group's offsets of topics to which it is not subscribed.

use kafka::ErrorCode;
use kafka::offset_delete::{PartitionResponse, Request, Response, TopicResponse};
use topic_service::{TopicRef, Topics};
use topics::groups::Refused;

use super::partition_in;
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::of_refused;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let asked: Vec<_> = request
        .topics
        .iter()
        .flat_map(|topic| {
            let partitions = topic.partitions.iter();
            partitions.map(|it| (&*topic.name, check(topics, &topic.name, it.partition_index)))
        })
        .collect();
    let known: Vec<_> = asked
        .iter()
        .filter_map(|(topic, index)| Some((*topic, index.ok()?)))
        .collect();
    let deleting = topics.delete_offsets(&request.group_id, &known);
    let checked: Vec<_> = asked.into_iter().map(|(_, index)| index.err()).collect();
    let deadline = Deadline::usual();
    tag.later(async move {
        match deadline.outcome(deleting).await {
            Ok(deleted) => response(request, checked, deleted),
            Err(failed) => Response {
                error_code: failed.code,
                ..Response::default()
            },
        }
    })
}

fn check(topics: &Topics, topic: &str, index: i32) -> Result<u32, ErrorCode> {
    let topic = topics.find(TopicRef::Name(topic));
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    partition_in(&topic, index)
}

fn response(
    request: Request,
    checked: Vec<Option<ErrorCode>>,
    deleted: Vec<Result<(), Refused>>,
) -> Response {
    let mut deleted = deleted.into_iter();
    let mut codes = checked.into_iter().map(|refused| {
        refused.unwrap_or_else(|| match deleted.next() {
            Some(Ok(())) => ErrorCode::None,
            Some(Err(refused)) => of_refused(&refused),
            None => ErrorCode::UnknownServerError,
        })
    });
    let topics = request.topics.into_iter().map(|topic| TopicResponse {
        name: topic.name,
        partitions: topic
            .partitions
            .iter()
            .zip(&mut codes)
            .map(|(it, error_code)| PartitionResponse {
                partition_index: it.partition_index,
                error_code,
            })
            .collect(),
    });
    Response {
        topics: topics.collect(),
        ..Response::default()
    }
}
