//! ListConfigResources: lists the resources with a configuration: topics and the brokers.

use kafka::ErrorCode;
use kafka::list_config_resources::{ConfigResource, Request, Response};

use super::configs::{BROKER, TOPIC};
use crate::brokers::Brokers;
use crate::client::Client;

/// Resource types of Kafka that do not exist here: broker loggers, client metrics, groups.
const ABSENT: [i8; 3] = [8, 16, 32];

/// From this version a request states the types.
const TYPES_FROM: i16 = 1;

pub(crate) fn answer(client: &Client, version: i16, request: &Request) -> Response {
    let types = &request.resource_types;
    let is_known = |it: &i8| [TOPIC, BROKER].contains(it) || ABSENT.contains(it);
    if !types.iter().all(is_known) {
        return Response {
            error_code: ErrorCode::UnsupportedVersion,
            ..Response::default()
        };
    }
    let is_asked = |it: i8| version >= TYPES_FROM && (types.is_empty() || types.contains(&it));
    let mut config_resources = Vec::new();
    if is_asked(TOPIC) {
        let topics = client.topics().list();
        config_resources.extend(topics.iter().map(|topic| ConfigResource {
            resource_name: topic.about().name.clone(),
            resource_type: TOPIC,
        }));
    }
    if is_asked(BROKER) {
        let ids = Brokers::of(client).ids().into_iter();
        config_resources.extend(ids.map(|id| ConfigResource {
            resource_name: id.to_string(),
            resource_type: BROKER,
        }));
    }
    Response {
        config_resources,
        ..Response::default()
    }
}
