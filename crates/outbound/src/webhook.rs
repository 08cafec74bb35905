//! HTTP calls of agents (webhooks): signed according to Standard Webhooks, and only to allowed
//! hosts.
//!
//! Connections are pooled, redirects are not followed, and the body of a response is only read when
//! the caller polls it.

mod allow;
pub(crate) mod connect;
mod sign;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use allow::{Allowed, WrongPattern};
use bytes::Bytes;
use connect::Connector;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::{Instant, Sleep};
use webhooks::WebhookSettings;
use webhooks::caller::{
    Body, CallError, Caller, Calling, Request, Response, Target, WebhookPolicy,
};

/// Idle time after which a pooled connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Maximum number of idle connections per agent.
const IDLE_MAX: usize = 32;

/// Makes HTTP calls; see the module documentation.
#[derive(Clone)]
pub struct HttpCaller {
    client: Client<Connector, Full<Bytes>>,
    allowed: Arc<Allowed>,
}

impl HttpCaller {
    /// Creates a caller for the allowed hosts; `tls` has the trusted certificates.
    pub fn new(allowed: Allowed, tls: Arc<ClientConfig>) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MAX)
            .build(Connector::new(tls));
        Self {
            client,
            allowed: Arc::new(allowed),
        }
    }
}

impl WebhookPolicy for HttpCaller {
    fn check(&self, settings: &WebhookSettings) -> Result<(), String> {
        let Target::Url(url) = &settings.target else {
            return Err("the target is not a URL".to_owned());
        };
        self.allowed.check(url)?;
        if !settings.secret.is_empty() {
            sign::key(&settings.secret)?;
        }
        for (name, value) in &settings.headers {
            header(name, value)?;
        }
        Ok(())
    }
}

impl Caller for HttpCaller {
    fn call(&self, request: Request) -> Calling {
        let (client, allowed) = (self.client.clone(), self.allowed.clone());
        Box::pin(async move {
            let timeout = request.timeout;
            let request = prepare(request, &allowed).map_err(CallError::Refused)?;
            let answer = tokio::time::timeout(timeout, client.request(request)).await;
            let answer = answer.map_err(|_| CallError::TimedOut(timeout))?;
            let answer = answer.map_err(|error| CallError::Lost(explain(&error)))?;
            let text = |name| {
                let value: Option<&HeaderValue> = answer.headers().get(name);
                value.and_then(|value| value.to_str().ok())
            };
            // A date is ignored; the default pause applies.
            let retry_after = text(RETRY_AFTER).and_then(|it| it.trim().parse().ok());
            Ok(Response {
                status: answer.status().as_u16(),
                content_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
                retry_after: retry_after.map(Duration::from_secs),
                body: Box::pin(ResponseBody {
                    timeout,
                    timer: Box::pin(tokio::time::sleep(timeout)),
                    body: answer.into_body(),
                }),
            })
        })
    }
}

fn prepare(request: Request, allowed: &Allowed) -> Result<hyper::Request<Full<Bytes>>, String> {
    let Target::Url(url) = &request.target else {
        return Err("the target is not a URL".to_owned());
    };
    // The allowed hosts may have changed since the agent was configured.
    let uri = allowed.check(url)?;
    let mut call = hyper::Request::post(uri)
        .header(CONTENT_TYPE, "application/json")
        .header(
            "accept",
            "application/json, text/plain, text/event-stream, application/jsonl",
        )
        .header("user-agent", concat!("telpher/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", &request.id)
        .header("webhook-timestamp", request.at_s);
    if !request.secret.is_empty() {
        let key = sign::key(&request.secret)?;
        let signature = sign::signature(&key, &request.id, request.at_s, &request.body);
        call = call.header("webhook-signature", signature);
    }
    for (name, value) in &request.headers {
        let (name, value) = header(name, value)?;
        call = call.header(name, value);
    }
    if let Some(traceparent) = &request.traceparent {
        call = call.header("traceparent", traceparent);
    }
    let call = call.body(Full::new(request.body));
    call.map_err(|error| error.to_string())
}

/// Validates a header from an agent's settings.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    const RESERVED: [&str; 8] = [
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    ];
    let invalid = || format!("`{name}` is not a valid header");
    let parsed = HeaderName::try_from(name).map_err(|_| invalid())?;
    if RESERVED.contains(&parsed.as_str()) {
        return Err(format!("the header `{name}` is set by the node"));
    }
    let value = HeaderValue::try_from(value).map_err(|_| invalid())?;
    Ok((parsed, value))
}

pub(crate) fn explain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Body of a response, with a time limit for each piece.
struct ResponseBody {
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    body: Incoming,
}

impl Body for ResponseBody {
    fn poll_piece(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, CallError>>> {
        let this = self.get_mut();
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(CallError::Lost(error.to_string()))));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        let next = Instant::now() + this.timeout;
                        this.timer.as_mut().reset(next);
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Poll::Pending => {
                    let timed_out = || Some(Err(CallError::TimedOut(this.timeout)));
                    return this.timer.as_mut().poll(cx).map(|()| timed_out());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
