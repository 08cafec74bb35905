//! TxnOffsetCommit: commits offsets of a group as a part of a transaction.

use kafka::ErrorCode;
use kafka::txn_offset_commit::{PartitionResponse, Request, Response, Topic, TopicResponse};
use topics::groups::{Caller, Mark};
use topics::{Claim, ProducerId};

use super::marks::{CommitRequest, Marks};
use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::before_fencing;
use crate::reply::{Answer, Tag};

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    if Brokers::of(client).is_clustered() {
        let partitions = request.topics.iter().map(|topic| topic.partitions.len());
        let codes = vec![no_transactions().code; partitions.sum()];
        return tag.now(response(request.topics, codes));
    }
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
    let claim = Claim {
        name: &request.transactional_id,
        producer: ProducerId(request.producer_id),
        epoch: request.producer_epoch,
    };
    let caller = Caller {
        group: &request.group_id,
        member: &request.member_id,
        instance: request.group_instance_id.as_deref(),
        generation: request.generation_id,
    };
    let known: Vec<Mark<'_>> = marks.known().collect();
    let committing = topics.commit_in_transaction(&claim, caller, &known);
    drop(known);
    let codes = marks.into_codes();
    let topics = request.topics;
    let deadline = Deadline::usual();
    tag.later(async move { response(topics, codes.with(deadline.outcome(committing).await)) })
}

fn response(topics: Vec<Topic>, codes: Vec<ErrorCode>) -> Response {
    // For this API, clients handle fencing by the older error code.
    let mut codes = codes.into_iter().map(before_fencing);
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
