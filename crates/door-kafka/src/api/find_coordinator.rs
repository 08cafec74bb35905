//! FindCoordinator: the coordinator of a group is the leader of its shard. A node alone coordinates
//! all groups and transactions; a cluster has no transactions.

use kafka::ErrorCode;
use kafka::find_coordinator::{Coordinator, Request, Response};

use crate::brokers::{Broker, Brokers, NONE, no_transactions};
use crate::client::Client;
use crate::errors::Failed;

/// From this version a request contains many keys.
const BATCHED_FROM: i16 = 4;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

/// Returns the coordinators.
///
/// In the versions with one key, the coordinator of a transaction on a cluster is refused with
/// TRANSACTIONAL_ID_AUTHORIZATION_FAILED: librdkafka, which uses them, asks again after every other error
/// until its time limit, and shows the message of this one.
pub(crate) fn answer(client: &Client, version: i16, request: Request) -> Response {
    let brokers = Brokers::of(client);
    answer_by(version, request, |key_type, key| {
        find(&brokers, key_type, key)
    })
}

/// Returns the answer of a member while the cluster has no leader.
pub(crate) fn without_leader(version: i16, request: Request) -> Response {
    answer_by(version, request, |key_type, _| match key_type {
        TRANSACTION => Err(no_transactions()),
        _ => Err(unknown()),
    })
}

fn answer_by(
    version: i16,
    request: Request,
    find: impl Fn(i8, &str) -> Result<Broker, Failed>,
) -> Response {
    let key_type = request.key_type;
    let find = |key: String| {
        let found = find(key_type, &key);
        shown(key, found)
    };
    if version >= BATCHED_FROM {
        let keys = request.coordinator_keys.into_iter();
        return Response {
            coordinators: keys.map(find).collect(),
            ..Response::default()
        };
    }
    let mut found = find(request.key);
    if found.error_code == no_transactions().code {
        found.error_code = ErrorCode::TransactionalIdAuthorizationFailed;
    }
    Response {
        error_code: found.error_code,
        error_message: found.error_message,
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..Response::default()
    }
}

fn find(brokers: &Brokers<'_>, key_type: i8, key: &str) -> Result<Broker, Failed> {
    let found = match key_type {
        GROUP => brokers.coordinator(key),
        TRANSACTION if brokers.is_clustered() => return Err(no_transactions()),
        // A node alone leads everything.
        TRANSACTION => brokers.coordinator(key),
        _ => {
            let message = "only groups and transactions have coordinators, not share groups";
            return Err(Failed::new(ErrorCode::InvalidRequest, message));
        }
    };
    found.ok_or_else(unknown)
}

fn unknown() -> Failed {
    let message = "the leader of the group is unknown; try again";
    Failed::new(ErrorCode::CoordinatorNotAvailable, message)
}

fn shown(key: String, found: Result<Broker, Failed>) -> Coordinator {
    match found {
        Ok(broker) => Coordinator {
            key,
            node_id: broker.id,
            host: broker.address.host,
            port: i32::from(broker.address.port),
            ..Coordinator::default()
        },
        Err(failed) => Coordinator {
            key,
            node_id: NONE,
            port: NONE,
            error_code: failed.code,
            error_message: Some(failed.message),
            ..Coordinator::default()
        },
    }
}
