//! OffsetCommit: commits offsets of a group.

use kafka::ErrorCode;
use kafka::offset_commit::{PartitionResponse, Request, Response, Topic, TopicResponse};
use topics::groups::{Caller, Mark};

use super::marks::{CommitRequest, Marks};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let asked = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|it| CommitRequest {
            topic: &topic.name,
            partition: it.partition_index,
            offset: it.committed_offset,
            leader_epoch: it.committed_leader_epoch,
            metadata: it.committed_metadata.as_deref().unwrap_or_default(),
        })
    });
    let marks = Marks::of(topics, asked);
    let caller = Caller {
        group: &request.group_id,
        member: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id_or_member_epoch,
    };
    // From version 5 the broker decides how long offsets stay.
    let kept_ms = u64::try_from(request.retention_time_ms).ok();
    let expires_ms = kept_ms.map(|kept_ms| client.node().ports().clock.unix_ms() + kept_ms);
    let known: Vec<Mark<'_>> = marks.known().collect();
    let committing = topics.commit(caller, &known, expires_ms);
    drop(known);
    let codes = marks.into_codes();
    let topics = request.topics;
    let deadline = Deadline::usual();
    tag.later(async move { response(topics, codes.with(deadline.outcome(committing).await)) })
}

fn response(topics: Vec<Topic>, codes: Vec<ErrorCode>) -> Response {
    let mut codes = codes.into_iter();
    let topics = topics.into_iter().map(|topic| TopicResponse {
        name: topic.name,
        partitions: topic
            .partitions
            .iter()
            .map(|it| PartitionResponse {
                partition_index: it.partition_index,
                error_code: codes.next().unwrap_or(ErrorCode::UnknownServerError),
            })
            .collect(),
    });
    Response {
        topics: topics.collect(),
        ..Response::default()
    }
}
