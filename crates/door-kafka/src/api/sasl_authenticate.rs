//! SaslAuthenticate: a message of the SASL exchange, the last of which admits the client.
//!
//! Passwords are checked outside of the threads that serve connections, a few at a time: a check
//! takes some milliseconds, and up to a second for users with many iterations.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use kafka::sasl_authenticate::{Request, Response};
use kafka::{ErrorCode, Secret};
use scram::Failed;
use tokio::sync::Semaphore;
use topics::User;

use crate::client::Client;
use crate::outcome::{Fatal, Handled, Stall};
use crate::reply::{Answer, Tag};
use crate::sasl::{Denied, Exchange, Identity, PasswordCheck, SaslStep, of_user};

/// Kafka's text for all reasons.
const REFUSED: &str = "Authentication failed: invalid credentials";

pub(crate) fn handle(client: &mut Client, tag: Tag, request: &Request) -> Handled {
    let response = match client.exchange.step(&client.door, &request.auth_bytes.0) {
        Ok(SaslStep::More(message)) => said(message),
        Ok(SaslStep::Proven(message, identity)) => admit(client, message, identity),
        Ok(SaslStep::Check(check)) => {
            let checking = checked(client.door.password_checks.clone(), check);
            let checking = Box::pin(checking);
            return Handled::Stalled(Box::new(Login { tag, checking }));
        }
        Err(denied) => refuse(client, denied),
    };
    Handled::Answer(tag.now(response))
}

/// A login whose password is being checked.
struct Login {
    tag: Tag,
    checking: Pin<Box<dyn Future<Output = Option<Arc<User>>> + Send>>,
}

impl Stall for Login {
    fn poll(
        &mut self,
        client: &mut Client,
        cx: &mut Context<'_>,
        _: &Waker,
    ) -> Poll<Result<Answer, Fatal>> {
        let response = match ready!(self.checking.as_mut().poll(cx)) {
            Some(user) => {
                let identity = of_user(&client.door, user);
                admit(client, String::new(), identity)
            }
            None => refuse(client, Failed::Credentials.into()),
        };
        Poll::Ready(Ok(self.tag.now(response)))
    }
}

/// Checks the password; returns the user if it is correct.
async fn checked(room: Arc<Semaphore>, check: PasswordCheck) -> Option<Arc<User>> {
    let _permit = room.acquire_owned().await.ok()?;
    let checked = tokio::task::spawn_blocking(move || check.run()).await;
    checked.ok().flatten()
}

fn admit(client: &mut Client, message: String, identity: Identity) -> Response {
    // A client that is admitted already keeps its identity.
    if !client.is_admitted()
        && let Err(unadmitted) = client.admit(identity)
    {
        client.exchange = Exchange::Over;
        return failure(ErrorCode::SaslAuthenticationFailed, unadmitted.to_string());
    }
    said(message)
}

fn refuse(client: &Client, denied: Denied) -> Response {
    if denied == Denied::State {
        let message = "SaslHandshake has to be sent first".to_owned();
        return failure(ErrorCode::IllegalSaslState, message);
    }
    client.count_refusal();
    tracing::info!(remote = client.remote(), %denied, "kafka client refused");
    let message = match denied {
        // The credentials are valid, so the client may know what is wrong with the name.
        Denied::Forbidden(forbidden) => format!("Authentication failed: {forbidden}"),
        _ => REFUSED.to_owned(),
    };
    failure(ErrorCode::SaslAuthenticationFailed, message)
}

fn said(message: String) -> Response {
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
