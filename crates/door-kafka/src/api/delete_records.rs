//! DeleteRecords: deletes the records before an offset.

use kafka::ErrorCode;
use kafka::delete_records::{Partition, PartitionResponse, Request, Response, TopicResponse};
use platform::Pending;
use topic_service::{FetchError, Topic, TopicRef, Topics};

use super::{offset, partition_in};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

/// The value for the end of the durable records.
const END: i64 = -1;
/// The log start of an unknown partition.
const NOWHERE: i64 = -1;

type Deleting = Result<Pending<u64, FetchError>, ErrorCode>;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let halted = client.check_halt().err();
    let deleting: Vec<_> = request
        .topics
        .into_iter()
        .map(|asked| {
            let topic = topics.find(TopicRef::Name(&asked.name));
            let partitions = asked.partitions.iter().map(|partition| {
                let allowed = match &halted {
                    Some(halted) => Err(halted.clone()),
                    None => client.check_topic(&asked.name),
                };
                let deleting = match allowed {
                    Ok(()) => delete(topics, topic.as_deref(), partition),
                    Err(failed) => Err(failed.code),
                };
                (partition.partition_index, deleting)
            });
            let partitions: Vec<_> = partitions.collect();
            (asked.name, partitions)
        })
        .collect();
    let deadline = Deadline::asked(request.timeout_ms).for_disk();
    tag.later(async move {
        let mut response = Response::default();
        for (name, deleting) in deleting {
            let mut partitions = Vec::with_capacity(deleting.len());
            for (index, deleting) in deleting {
                partitions.push(shown(index, deleting, deadline).await);
            }
            response.topics.push(TopicResponse { name, partitions });
        }
        response
    })
}

fn delete(topics: &Topics, topic: Option<&Topic>, asked: &Partition) -> Deleting {
    let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let index = partition_in(topic, asked.partition_index)?;
    // In a topic that is only compacted, a record stays until a newer one replaces it.
    if !topic.about().config.cleanup().deletes {
        return Err(ErrorCode::PolicyViolation);
    }
    let before = match asked.offset {
        END => None,
        before @ 0.. => Some(before.unsigned_abs()),
        _ => return Err(ErrorCode::OffsetOutOfRange),
    };
    Ok(topics.delete_records(topic, index, before))
}

async fn shown(partition_index: i32, deleting: Deleting, deadline: Deadline) -> PartitionResponse {
    let start = match deleting {
        Ok(deleting) => {
            let told = deadline.outcome(deleting).await;
            told.map_err(|failed| failed.code)
        }
        Err(code) => Err(code),
    };
    PartitionResponse {
        partition_index,
        low_watermark: start.map_or(NOWHERE, offset),
        error_code: start.err().unwrap_or_default(),
    }
}
