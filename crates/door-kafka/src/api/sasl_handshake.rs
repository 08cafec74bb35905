//! SaslHandshake: selects the SASL mechanism.

use kafka::ErrorCode;
use kafka::sasl_handshake::{Request, Response};

use crate::client::Client;
use crate::sasl::{Exchange, Mechanism};

/// After a handshake of this version, unframed bytes would follow, which is not supported.
const UNFRAMED: i16 = 0;

pub(crate) fn answer(client: &mut Client, version: i16, request: &Request) -> Response {
    if version == UNFRAMED {
        return Response {
            error_code: ErrorCode::UnsupportedVersion,
            ..Response::default()
        };
    }
    let has_users = client.door.users.is_any();
    let offered: Vec<_> = Mechanism::offered(has_users).collect();
    let chosen = Mechanism::parse(&request.mechanism);
    let chosen = chosen.filter(|_| offered.contains(&request.mechanism.as_str()));
    let error_code = match (&client.exchange, chosen) {
        (Exchange::Nothing | Exchange::Chosen(_), Some(mechanism)) => {
            client.exchange = Exchange::Chosen(mechanism);
            ErrorCode::None
        }
        (_, None) => ErrorCode::UnsupportedSaslMechanism,
        (_, Some(_)) => ErrorCode::IllegalSaslState,
    };
    Response {
        error_code,
        mechanisms: offered.into_iter().map(str::to_owned).collect(),
    }
}
