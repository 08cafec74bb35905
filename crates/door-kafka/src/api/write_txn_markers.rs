//! WriteTxnMarkers: writes transaction markers for an administrator who ends a transaction by hand.

use kafka::ErrorCode;
use kafka::write_txn_markers::{
    Marker, MarkerResponse, PartitionResponse, Request, Response, TopicResponse,
};
use platform::Pending;
use topic_service::{MarkerToWrite, ProduceError, TopicRef, Topics};
use topics::{Ending, ProducerId};

use super::partition_in;
use crate::brokers::{Brokers, no_transactions};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::reply::{Answer, Tag};

type Writing = Result<Pending<(), ProduceError>, ErrorCode>;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let topics = client.topics();
    let is_admin = client.is_admin();
    let is_clustered = Brokers::of(client).is_clustered();
    let one = |marker: Marker| {
        let writing = match (is_admin, is_clustered) {
            (true, false) => write(topics, &marker),
            (true, true) => refuse(&marker, no_transactions().code),
            (false, _) => refuse(&marker, ErrorCode::ClusterAuthorizationFailed),
        };
        (writing, marker)
    };
    let writing: Vec<_> = request.markers.into_iter().map(one).collect();
    let deadline = Deadline::usual();
    tag.later(async move {
        let mut response = Response::default();
        for (writing, marker) in writing {
            let mut codes = Vec::with_capacity(writing.len());
            for written in writing {
                codes.push(match written {
                    Ok(writing) => {
                        let told = deadline.outcome(writing).await;
                        told.err().map(|failed| failed.code)
                    }
                    Err(code) => Some(code),
                });
            }
            response.markers.push(shown(marker, codes));
        }
        response
    })
}

fn write(topics: &Topics, marker: &Marker) -> Vec<Writing> {
    let to_write = MarkerToWrite {
        producer: ProducerId(marker.producer_id),
        epoch: marker.producer_epoch,
        coordinator_epoch: marker.coordinator_epoch,
        ending: match marker.transaction_result {
            true => Ending::Commit,
            false => Ending::Abort,
        },
    };
    let mut writing = Vec::new();
    for asked in &marker.topics {
        let found = topics.find(TopicRef::Name(&asked.name));
        for index in &asked.partition_indexes {
            let topic = found.as_ref().ok_or(ErrorCode::UnknownTopicOrPartition);
            writing.push(topic.and_then(|topic| {
                let index = partition_in(topic, *index)?;
                Ok(topics.write_marker(topic, index, &to_write))
            }));
        }
    }
    writing
}

/// Returns an error for each partition. Without the role, a client may not end other transactions.
fn refuse(marker: &Marker, code: ErrorCode) -> Vec<Writing> {
    let count = marker
        .topics
        .iter()
        .map(|topic| topic.partition_indexes.len());
    let refused = || Err(code);
    std::iter::repeat_with(refused).take(count.sum()).collect()
}

fn shown(marker: Marker, codes: Vec<Option<ErrorCode>>) -> MarkerResponse {
    let mut codes = codes.into_iter();
    let topics = marker.topics.into_iter().map(|topic| TopicResponse {
        name: topic.name,
        partitions: topic
            .partition_indexes
            .into_iter()
            .zip(&mut codes)
            .map(|(partition_index, code)| PartitionResponse {
                partition_index,
                error_code: code.unwrap_or_default(),
            })
            .collect(),
    });
    MarkerResponse {
        producer_id: marker.producer_id,
        topics: topics.collect(),
    }
}
