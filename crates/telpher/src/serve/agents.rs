//! Webhooks: calls of agents over HTTP or by their native name.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use client::{Bytes, CallError as ClientError, Client, Retry};
use node::Node;
use node::config::Config;
use node::ports::caller::{Body, CallError, Caller, Calling, Request, Response, Target};
use node::webhooks::{Options, WebhookSettings};
use outbound::webhook::{Allowed, HttpCaller};

use crate::failure::{Exit, Failure};

/// The method that is called on agents with a native name.
const METHOD: &str = "conversation";

/// Starts webhooks. The returned future makes the calls.
pub(super) fn start(
    node: &Node,
    client: &Client,
    config: &Config,
) -> Result<impl Future<Output = ()> + Send + use<>, Failure> {
    let webhook = &config.webhook;
    let doors = [&config.native.listen, &config.http.listen];
    let is_local = doors.into_iter().flatten().all(|it| it.is_loopback());
    let allowed = Allowed::parse(&webhook.allow.0, is_local);
    let allowed = allowed.map_err(|error| {
        Failure::new(Exit::Usage, format!("`webhook.allow`: {error}"))
            .hint("write patterns, separated by commas: --webhook-allow 'https://*.example.com'")
    })?;
    let caller = Arc::new(AnyCaller {
        http: HttpCaller::new(allowed, authorities(config)?),
        client: client.clone(),
    });
    let options = Options {
        agents_max: webhook.agents_max as usize,
        calls_max: webhook.calls_max as usize,
    };
    node.keep_webhooks(options, caller.clone());
    Ok(edge::http::call_agents(node.clone(), caller))
}

/// Loads the trusted certificates. Without the file none is trusted, and calls over https fail.
fn authorities(config: &Config) -> Result<Arc<rustls::ClientConfig>, Failure> {
    let path = &config.webhook.authorities;
    let path = Some(path.as_path()).filter(|path| path.exists());
    net::client_config(path).map_err(|error| {
        Failure::new(Exit::Failed, format!("`webhook.authorities`: {error}"))
            .hint("set a PEM file with certificates: --webhook-authorities PATH")
    })
}

/// Calls agents over HTTP or by their native name.
struct AnyCaller {
    http: HttpCaller,
    client: Client,
}

impl Caller for AnyCaller {
    fn check(&self, settings: &WebhookSettings) -> Result<(), String> {
        match &settings.target {
            Target::Url(_) => self.http.check(settings),
            Target::Name(name) => match self.client.caller(name) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    fn call(&self, request: Request) -> Calling {
        let Target::Name(name) = &request.target else {
            return self.http.call(request);
        };
        let agent = self.client.caller(name);
        Box::pin(async move {
            let agent = agent.map_err(|error| CallError::Refused(error.to_string()))?;
            let call = agent.call(METHOD, request.body).deadline(request.timeout);
            let reply = call.await.map_err(to_call_error)?;
            Ok(Response {
                status: 200,
                content_type: "application/json".to_owned(),
                retry_after: None,
                body: Box::pin(CompleteBody(Some(Bytes::copy_from_slice(&reply)))),
            })
        })
    }
}

/// Converts an error. Errors that allow a retry become `Lost`, so that the call is repeated: the
/// message of an agent has the same id each time.
fn to_call_error(error: ClientError) -> CallError {
    match error.retry() {
        Retry::Never => CallError::Refused(error.to_string()),
        Retry::Safe | Retry::MayDuplicate => CallError::Lost(error.to_string()),
    }
}

/// A complete body.
struct CompleteBody(Option<Bytes>);

impl Body for CompleteBody {
    fn poll_piece(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, CallError>>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
