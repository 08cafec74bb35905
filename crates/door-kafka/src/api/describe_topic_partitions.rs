//! DescribeTopicPartitions: describes topics and their partitions, in pages, by name.

use kafka::ErrorCode;
use kafka::describe_topic_partitions::{Cursor, Partition, Request, Response, Topic as Shown};
use topic_service::{Topic, TopicRef};
use topics::check_name;

use super::{authorized, uuid};
use crate::brokers::Brokers;
use crate::client::Client;

/// The most partitions of a page, even if more are requested: Kafka's own limit.
const PAGE_MAX: usize = 2_000;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let topics = client.topics();
    let brokers = Brokers::of(client);
    let mut names: Vec<_> = match request.topics.is_empty() {
        true => topics
            .list()
            .iter()
            .map(|topic| topic.about().name.clone())
            .collect(),
        false => request.topics.into_iter().map(|it| it.name).collect(),
    };
    names.sort_unstable();
    names.dedup();
    let wanted = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let mut room = wanted.clamp(1, PAGE_MAX);
    let mut response = Response::default();
    let (after, mut from) = match request.cursor {
        None => (String::new(), 0),
        Some(cursor) => (
            cursor.topic_name,
            u32::try_from(cursor.partition_index).unwrap_or(0),
        ),
    };
    for name in names.into_iter().skip_while(|name| *name < after) {
        // Only the first topic of the page may begin at a later partition.
        let first = match name == after {
            true => std::mem::take(&mut from),
            false => 0,
        };
        if room == 0 {
            response.next_cursor = Some(cursor(name, 0));
            break;
        }
        let Some(topic) = topics.find(TopicRef::Name(&name)) else {
            response.topics.push(missing(name));
            continue;
        };
        let count = topic.about().partitions;
        let end = count.min(first.saturating_add(room as u32));
        room -= end.saturating_sub(first) as usize;
        response.topics.push(shown(&brokers, &topic, first, end));
        if end < count {
            response.next_cursor = Some(cursor(name, end));
            break;
        }
    }
    for topic in &mut response.topics {
        let name = topic.name.as_deref().unwrap_or_default();
        topic.topic_authorized_operations = authorized::on_topic(client, name, true);
    }
    response
}

fn cursor(topic_name: String, partition: u32) -> Cursor {
    Cursor {
        topic_name,
        partition_index: i32::try_from(partition).unwrap_or(i32::MAX),
    }
}

fn missing(name: String) -> Shown {
    let error_code = match check_name(&name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    };
    Shown {
        error_code,
        name: Some(name),
        ..Shown::default()
    }
}

fn shown(brokers: &Brokers<'_>, topic: &Topic, first: u32, end: u32) -> Shown {
    let partitions = (first..end).map(|index| {
        let replication = brokers.replication(topic, index);
        Partition {
            error_code: replication.error_code,
            partition_index: index as i32,
            leader_id: replication.leader,
            leader_epoch: replication.leader_epoch,
            replica_nodes: replication.replicas,
            isr_nodes: replication.in_sync,
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            ..Partition::default()
        }
    });
    Shown {
        name: Some(topic.about().name.clone()),
        topic_id: uuid(topic.about().id),
        partitions: partitions.collect(),
        ..Shown::default()
    }
}
