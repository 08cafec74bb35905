//! Metadata: the broker, and topics with their partitions. A missing topic is created when a client
//! asks for it and allows that (`auto.create.topics.enable`).

use std::sync::Arc;

use kafka::metadata::{Broker, Partition, Request, Response, Topic as TopicResponse, TopicRequest};
use kafka::{ErrorCode, Uuid};
use topic_service::{AdminError, Topic, TopicRef, Topics};
use topics::{TopicError, TopicId};

use super::{NODE_ID, authorized, cluster_id, uuid};
use crate::client::Client;
use crate::errors::Coded;

pub(crate) fn answer(client: &Client, version: i16, request: &Request) -> Response {
    let topics = client.topics();
    let asked = request.topics.as_deref();
    // Version 0 has no null: an empty list means all topics.
    let asked = asked.filter(|asked| version > 0 || !asked.is_empty());
    let may_create = version < 4 || request.allow_auto_topic_creation;
    let mut found: Vec<_> = match asked {
        None => topics
            .list()
            .iter()
            .map(|topic| shown(topics, topic))
            .collect(),
        Some(asked) => asked
            .iter()
            .map(|asked| look_up(topics, asked, may_create))
            .collect(),
    };
    for topic in &mut found {
        let is_asked = request.include_topic_authorized_operations;
        let name = topic.name.as_deref().unwrap_or_default();
        topic.topic_authorized_operations = authorized::on_topic(client, name, is_asked);
    }
    Response {
        cluster_authorized_operations: authorized::on_cluster(
            request.include_cluster_authorized_operations,
        ),
        brokers: vec![Broker {
            node_id: NODE_ID,
            host: client.place.host.clone(),
            port: i32::from(client.place.port),
            rack: None,
        }],
        cluster_id: Some(cluster_id(client.topics())),
        controller_id: NODE_ID,
        topics: found,
        ..Response::default()
    }
}

fn look_up(topics: &Topics, asked: &TopicRequest, may_create: bool) -> TopicResponse {
    if !asked.topic_id.is_zero() {
        let id = TopicId(asked.topic_id.0);
        return match topics.find(TopicRef::Id(id)) {
            Some(topic) => shown(topics, &topic),
            None => missing(None, asked.topic_id, ErrorCode::UnknownTopicId),
        };
    }
    let Some(name) = &asked.name else {
        return missing(None, Uuid::ZERO, ErrorCode::InvalidRequest);
    };
    let found = match may_create {
        true => topics.find_or_create(name),
        false => topics
            .find(TopicRef::Name(name))
            .ok_or_else(|| unknown(name)),
    };
    match found {
        Ok(topic) => shown(topics, &topic),
        Err(error) => missing(Some(name.clone()), Uuid::ZERO, error.code()),
    }
}

/// Returns the error for a missing topic, or for an invalid name.
fn unknown(name: &str) -> AdminError {
    match topics::check_name(name) {
        Err(bad) => AdminError::Topic(TopicError::Name(bad)),
        Ok(()) => AdminError::Topic(TopicError::Unknown),
    }
}

fn missing(name: Option<String>, topic_id: Uuid, error_code: ErrorCode) -> TopicResponse {
    TopicResponse {
        error_code,
        // In versions where it may not be null, the name of a topic without one is empty.
        name,
        topic_id,
        ..TopicResponse::default()
    }
}

fn shown(topics: &Topics, topic: &Arc<Topic>) -> TopicResponse {
    let about = topic.about();
    let partitions = (0..about.partitions).map(|index| Partition {
        partition_index: index as i32,
        leader_id: NODE_ID,
        leader_epoch: leader_epoch(topics, topic, index),
        replica_nodes: vec![NODE_ID],
        isr_nodes: vec![NODE_ID],
        ..Partition::default()
    });
    TopicResponse {
        name: Some(about.name.clone()),
        topic_id: uuid(about.id),
        partitions: partitions.collect(),
        ..TopicResponse::default()
    }
}

/// Returns the leader epoch of a partition; -1 if it was deleted meanwhile.
pub(super) fn leader_epoch(topics: &Topics, topic: &Topic, partition: u32) -> i32 {
    let view = topics.view(topic, partition);
    view.map_or(-1, |view| view.leader_epoch)
}
