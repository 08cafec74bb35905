//! Webhooks: calls of agents over HTTP or by their native name.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use client::{Bytes, CallError as ClientError, Client, Retry};
use config::Config;
use model::Name;
use node::Node;
use outbound::webhook::{Allowed, HttpCaller};
use webhooks::caller::{
    Body, CallError, Caller, Calling, Request, Response, Target, WebhookPolicy,
};
use webhooks::{Options, WebhookParts, WebhookSettings};

use console::{Exit, Failure};

/// The method that is called on agents with a native name.
const METHOD: &str = "conversation";

/// The webhooks of a node.
pub(super) struct Webhooks {
    http: HttpCaller,
    options: Options,
}

impl Webhooks {
    /// Creates webhooks from the configuration.
    pub(super) fn new(config: &Config) -> Result<Self, Failure> {
        let webhook = &config.webhook;
        let doors = [&config.native.listen, &config.http.listen];
        let is_local = doors.into_iter().flatten().all(|it| it.is_loopback());
        let allowed = Allowed::parse(&webhook.allow.0, is_local);
        let allowed = allowed.map_err(|error| {
            Failure::new(Exit::Usage, format!("`webhook.allow`: {error}")).hint(
                "write patterns, separated by commas: --webhook-allow 'https://*.example.com'",
            )
        })?;
        Ok(Self {
            http: HttpCaller::new(allowed, authorities(config)?),
            options: Options {
                agents_max: webhook.agents_max as usize,
                calls_max: webhook.calls_max as usize,
            },
        })
    }

    /// Returns the webhooks as a part of the node.
    pub(super) fn parts(&self) -> WebhookParts {
        WebhookParts {
            options: self.options,
            policy: Arc::new(AnyTarget(self.http.clone())),
        }
    }

    /// Makes the calls. Agents with a native name are called by `client`.
    pub(super) fn call(self, node: Node, client: Client) -> impl Future<Output = ()> + Send {
        let http = self.http;
        http_conversations::call_agents(node, Arc::new(AnyCaller { http, client }))
    }
}

/// Allows the URLs that the configuration allows, and every native name.
struct AnyTarget(HttpCaller);

impl WebhookPolicy for AnyTarget {
    fn check(&self, settings: &WebhookSettings) -> Result<(), String> {
        match &settings.target {
            Target::Url(_) => self.0.check(settings),
            Target::Name(name) => match Name::parse(name) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
        }
    }
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
    fn call(&self, request: Request) -> Calling {
        let Target::Name(name) = &request.target else {
            return self.http.call(request);
        };
        let agent = self.client.caller(name);
        Box::pin(async move {
            let agent = agent.map_err(|error| CallError::Refused(error.to_string()))?;
            let mut call = agent.call(METHOD, request.body).deadline(request.timeout);
            if let Some(traceparent) = &request.traceparent {
                call = call.traceparent(traceparent);
            }
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
