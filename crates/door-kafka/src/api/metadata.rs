//! Metadata: the brokers, and topics with their partitions. A missing topic is created when a client
//! asks for it and allows that (`auto.create.topics.enable`).

use std::sync::Arc;

use kafka::metadata::{Broker, Partition, Request, Response, Topic as TopicResponse, TopicRequest};
use kafka::{ErrorCode, Uuid};
use platform::Membership;
use topic_service::{AdminError, Topic, TopicRef, Topics, catalogue_role};
use topics::{TopicError, TopicId};

use super::{authorized, cluster_id, uuid};
use crate::brokers::{self, Brokers};
use crate::client::Client;
use crate::errors::Coded;
use crate::follower::KnownTopic;
use crate::listener::BrokerAddress;

pub(crate) fn answer(client: &Client, version: i16, request: &Request) -> Response {
    let topics = client.topics();
    let brokers = Brokers::of(client);
    let asked = named(version, request);
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
        brokers: brokers.list().into_iter().map(listed).collect(),
        cluster_id: Some(cluster_id(topics.membership())),
        topics: found,
        ..Response::default()
    }
}

/// Returns the answer of a member while the cluster has no leader, with the topics that it knows. There is
/// none to a request for all topics if they are unknown.
pub(crate) fn without_leader(
    membership: &dyn Membership,
    own: &BrokerAddress,
    topics: Option<&[KnownTopic]>,
    version: i16,
    request: &Request,
) -> Option<Response> {
    // Every partition is on all members in the end, like the catalogue.
    let role = catalogue_role(membership);
    let show = |topic: &KnownTopic| {
        let partition = |index: u32| Partition {
            error_code: ErrorCode::LeaderNotAvailable,
            partition_index: index as i32,
            leader_id: brokers::NONE,
            replica_nodes: brokers::encoded_all(&role.replicas),
            isr_nodes: brokers::encoded_all(&role.in_sync),
            ..Partition::default()
        };
        TopicResponse {
            name: Some(topic.name.clone()),
            topic_id: Uuid(topic.id),
            partitions: (0..topic.partitions).map(partition).collect(),
            ..TopicResponse::default()
        }
    };
    let find = |asked: &TopicRequest| {
        let is_asked = |it: &&KnownTopic| match asked.topic_id.is_zero() {
            true => asked.name.as_deref() == Some(&*it.name),
            false => asked.topic_id.0 == it.id,
        };
        let mut known = topics.unwrap_or_default().iter();
        let name = asked.name.clone();
        // It may have been created since.
        let unknown = || missing(name, asked.topic_id, ErrorCode::LeaderNotAvailable);
        known.find(is_asked).map_or_else(unknown, show)
    };
    Some(Response {
        brokers: brokers::list(membership, own)
            .into_iter()
            .map(listed)
            .collect(),
        cluster_id: Some(cluster_id(membership)),
        topics: match named(version, request) {
            Some(asked) => asked.iter().map(find).collect(),
            None => topics?.iter().map(show).collect(),
        },
        ..Response::default()
    })
}

/// Returns the topics that a client asks for; `None` for all.
fn named(version: i16, request: &Request) -> Option<&[TopicRequest]> {
    let asked = request.topics.as_deref();
    // Version 0 has no null: an empty list means all topics.
    asked.filter(|asked| version > 0 || !asked.is_empty())
}

fn listed(broker: brokers::Broker) -> Broker {
    Broker {
        node_id: broker.id,
        host: broker.address.host,
        port: i32::from(broker.address.port),
        rack: None,
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
