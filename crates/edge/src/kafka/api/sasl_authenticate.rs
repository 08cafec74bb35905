//! SaslAuthenticate: a step of the mechanism's exchange, the last of which lets the client in.

use bytes::Bytes;
use kafka::sasl_authenticate::{Request, Response};
use kafka::{ErrorCode, Secret};

use crate::kafka::client::Client;
use crate::kafka::sasl::{Denied, Exchange, Said};

/// As Kafka says it, whatever the reason.
const REFUSED: &str = "Authentication failed: invalid credentials";

pub(in crate::kafka) fn answer(client: &mut Client, request: &Request) -> Response {
    let said = client.exchange.step(&client.door, &request.auth_bytes.0);
    let message = match said {
        Ok(Said::More(message)) => message,
        Ok(Said::Proven(message, identity)) => {
            // Who is in already stays who it was: the exchange was for nothing.
            if !client.is_admitted()
                && let Err(unadmitted) = client.admit(identity)
            {
                client.exchange = Exchange::Over;
                return failure(ErrorCode::SaslAuthenticationFailed, unadmitted.to_string());
            }
            message
        }
        Err(Denied::State) => {
            let message = "there was no SaslHandshake before".to_owned();
            return failure(ErrorCode::IllegalSaslState, message);
        }
        // The credentials are right: the client may know what is wrong with the name.
        Err(Denied::Forbidden(forbidden)) => {
            client.count_refusal();
            tracing::info!(remote = client.remote(), %forbidden, "kafka client refused");
            let message = format!("Authentication failed: {forbidden}");
            return failure(ErrorCode::SaslAuthenticationFailed, message);
        }
        Err(denied) => {
            client.count_refusal();
            tracing::info!(remote = client.remote(), %denied, "kafka client refused");
            return failure(ErrorCode::SaslAuthenticationFailed, REFUSED.to_owned());
        }
    };
    Response {
        auth_bytes: Secret(Bytes::from(message)),
        ..Response::default()
    }
}

fn failure(error_code: ErrorCode, message: String) -> Response {
    Response {
        error_code,
        error_message: Some(message),
        ..Response::default()
    }
}
