//! Metadata: the brokers, and topics with their partitions. A missing topic is created when a client
//! asks for it and allows that (`auto.create.topics.enable`).

use std::sync::Arc;

use kafka::metadata::{Broker, Partition, Request, Response, Topic as TopicResponse, TopicRequest};
use kafka::{ErrorCode, Uuid};
use topic_service::{AdminError, Topic, TopicRef, Topics};
use topics::{TopicError, TopicId};

use super::{authorized, cluster_id, uuid};
use crate::brokers::Brokers;
use crate::client::Client;
use crate::errors::Coded;

pub(crate) fn answer(client: &Client, version: i16, request: &Request) -> Response {
    let topics = client.topics();
    let brokers = Brokers::of(client);
    let asked = request.topics.as_deref();
    // Version 0 has no null: an empty list means all topics.
    let asked = asked.filter(|asked| version > 0 || !asked.is_empty());
    let may_create = version < 4 || request.allow_auto_topic_creation;
    let mut found: Vec<_> = match asked {
        None => topics
            .list()
            .iter()
            .map(|topic| shown(&brokers, topic))
            .collect(),
        Some(asked) => asked
            .iter()
            .map(|asked| look_up(topics, &brokers, asked, may_create))
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
        controller_id: brokers.controller(),
        brokers: brokers
            .list()
            .into_iter()
            .map(|broker| Broker {
                node_id: broker.id,
                host: broker.address.host,
                port: i32::from(broker.address.port),
                rack: None,
            })
            .collect(),
        cluster_id: Some(cluster_id(topics)),
        topics: found,
        ..Response::default()
    }
}

fn look_up(
    topics: &Topics,
    brokers: &Brokers<'_>,
    asked: &TopicRequest,
    may_create: bool,
) -> TopicResponse {
    if !asked.topic_id.is_zero() {
        let id = TopicId(asked.topic_id.0);
        return match topics.find(TopicRef::Id(id)) {
            Some(topic) => shown(brokers, &topic),
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
        Ok(topic) => shown(brokers, &topic),
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

fn shown(brokers: &Brokers<'_>, topic: &Arc<Topic>) -> TopicResponse {
    let about = topic.about();
    let partitions = (0..about.partitions).map(|index| {
        let replication = brokers.replication(topic, index);
        Partition {
            error_code: replication.error_code,
            partition_index: index as i32,
            leader_id: replication.leader,
            leader_epoch: replication.leader_epoch,
            replica_nodes: replication.replicas,
            isr_nodes: replication.in_sync,
            ..Partition::default()
        }
    });
    TopicResponse {
        name: Some(about.name.clone()),
        topic_id: uuid(about.id),
        partitions: partitions.collect(),
        ..TopicResponse::default()
    }
}
