//! DescribeCluster: describes the brokers.

use kafka::ErrorCode;
use kafka::describe_cluster::{Broker, Request, Response};

use super::{authorized, cluster_id};
use crate::brokers::Brokers;
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
    let brokers = Brokers::of(client);
    Response {
        cluster_id: cluster_id(client.topics().membership()),
        controller_id: brokers.controller(),
        cluster_authorized_operations: authorized::on_cluster(
            request.include_cluster_authorized_operations,
        ),
        brokers: brokers
            .list()
            .into_iter()
            .map(|broker| Broker {
                broker_id: broker.id,
                host: broker.address.host,
                port: i32::from(broker.address.port),
                ..Broker::default()
            })
            .collect(),
        ..Response::default()
    }
}
