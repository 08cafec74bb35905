//! DescribeCluster: the broker.

use kafka::ErrorCode;
use kafka::describe_cluster::{Broker, Request, Response};

use super::{NODE_ID, authorized, cluster_id};
use crate::kafka::client::Client;

/// What is asked for: brokers. The other are controllers, whom nobody reaches here (KIP-919).
const BROKERS: i8 = 1;

pub(in crate::kafka) fn answer(client: &Client, request: &Request) -> Response {
    if request.endpoint_type != BROKERS {
        return Response {
            error_code: ErrorCode::MismatchedEndpointType,
            error_message: Some("there are brokers here, and no controllers".to_owned()),
            ..Response::default()
        };
    }
    Response {
        cluster_id: cluster_id(client.topics()),
        controller_id: NODE_ID,
        cluster_authorized_operations: authorized::on_cluster(
            request.include_cluster_authorized_operations,
        ),
        brokers: vec![Broker {
            broker_id: NODE_ID,
            host: client.place.host.clone(),
            port: i32::from(client.place.port),
            ..Broker::default()
        }],
        ..Response::default()
    }
}
