//! FindCoordinator: this node coordinates all groups and transactions.

use kafka::ErrorCode;
use kafka::find_coordinator::{Coordinator, Request, Response};

use super::NODE_ID;
use crate::client::Client;

/// From this version a request contains many keys.
const BATCHED_FROM: i16 = 4;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

pub(crate) fn answer(client: &Client, version: i16, request: Request) -> Response {
    let (host, port) = (client.place.host.clone(), i32::from(client.place.port));
    // Other key types are share groups (KIP-932), which are not supported.
    let error_code = match request.key_type {
        GROUP | TRANSACTION => ErrorCode::None,
        _ => ErrorCode::InvalidRequest,
    };
    let node_id = if error_code.is_error() { -1 } else { NODE_ID };
    if version < BATCHED_FROM {
        return Response {
            error_code,
            node_id,
            host,
            port,
            ..Response::default()
        };
    }
    let coordinators = request.coordinator_keys.into_iter().map(|key| Coordinator {
        key,
        node_id,
        host: host.clone(),
        port,
        error_code,
        error_message: None,
    });
    Response {
        coordinators: coordinators.collect(),
        ..Response::default()
    }
}
