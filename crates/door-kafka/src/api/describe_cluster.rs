//! DescribeCluster: describes the only broker.

use kafka::ErrorCode;
use kafka::describe_cluster::{Broker, Request, Response};

use super::{NODE_ID, authorized, cluster_id};
use crate::client::Client;

/// The endpoint type of brokers. The other type is controllers, which clients do not reach here
/// (KIP-919).
const BROKERS: i8 = 1;

pub(crate) fn answer(client: &Client, request: &Request) -> Response {
    if request.endpoint_type != BROKERS {
        return Response {
            error_code: ErrorCode::MismatchedEndpointType,
            error_message: Some("only brokers are supported, not controllers".to_owned()),
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
