//! Export of spans by OTLP over HTTP with protobuf.
//!
//! A slow or absent collector costs the node nothing but the memory of the bounded queue: spans that
//! do not fit are dropped and counted by the [`Tracer`].
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#otlphttp>.

mod message;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use platform::Tracer;
use prost::Message as _;
use rustls::ClientConfig;

use crate::webhook::connect::Connector;

/// Pause between two looks at the queue.
const INTERVAL: Duration = Duration::from_millis(200);

/// Most spans in a request.
const BATCH_MAX: usize = 512;

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed request, doubled for each further one.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Path of traces below the endpoint.
const PATH: &str = "/v1/traces";

/// Exports spans to one collector.
pub struct Exporter {
    client: Client<Connector, Full<Bytes>>,
    uri: Uri,
    service: String,
}

/// The outcome of a request.
enum Sent {
    Accepted,
    /// Another request with the same spans would fail, too.
    Refused(String),
    /// Another request may succeed.
    Failed(String),
}

impl Exporter {
    /// Creates an exporter to the collector at `endpoint`, such as `http://127.0.0.1:4318`, for spans
    /// of the service with this name. `tls` has the trusted certificates.
    ///
    /// # Errors
    /// When the endpoint is no address of HTTP.
    pub fn new(endpoint: &str, service: &str, tls: Arc<ClientConfig>) -> Result<Self, String> {
        let uri = format!("{}{PATH}", endpoint.trim_end_matches('/'));
        let uri = uri.parse::<Uri>().map_err(|error| error.to_string())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err("it is not an address that begins with http:// or https://".to_owned());
        }
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(Connector::new(tls));
        Ok(Self {
            client,
            uri,
            service: service.to_owned(),
        })
    }

    /// Exports the spans of a tracer. Never returns.
    pub async fn run(self, tracer: Arc<Tracer>) {
        let mut pause = PAUSE;
        let mut is_failing = false;
        loop {
            let spans = tracer.take(BATCH_MAX);
            if spans.is_empty() {
                tokio::time::sleep(INTERVAL).await;
                continue;
            }
            let request = message::ExportTraceServiceRequest::of(&spans, &self.service);
            let body = Bytes::from(request.encode_to_vec());
            loop {
                let reason = match self.send(body.clone()).await {
                    Sent::Accepted => {
                        tracer.count_exported(spans.len());
                        if std::mem::take(&mut is_failing) {
                            tracing::info!("the collector of spans answers again");
                        }
                        pause = PAUSE;
                        break;
                    }
                    Sent::Refused(reason) => {
                        tracer.count_failure();
                        tracer.count_dropped(spans.len());
                        log_failure(&mut is_failing, &reason);
                        break;
                    }
                    Sent::Failed(reason) => reason,
                };
                tracer.count_failure();
                log_failure(&mut is_failing, &reason);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }

    async fn send(&self, body: Bytes) -> Sent {
        let request = Request::post(self.uri.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, concat!("telpher/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body));
        let request = match request {
            Ok(request) => request,
            Err(error) => return Sent::Refused(error.to_string()),
        };
        let status = match tokio::time::timeout(TIMEOUT, self.client.request(request)).await {
            Ok(Ok(answer)) => answer.status(),
            Ok(Err(error)) => return Sent::Failed(crate::webhook::explain(&error)),
            Err(_) => return Sent::Failed("it did not answer within 10 s".to_owned()),
        };
        let reason = format!("it answered {status}");
        match status {
            status if status.is_success() => Sent::Accepted,
            // The codes with which a client should try again.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Sent::Failed(reason),
            _ => Sent::Refused(reason),
        }
    }
}

/// Logs the first failure of several in a row.
fn log_failure(is_failing: &mut bool, reason: &str) {
    if !std::mem::replace(is_failing, true) {
        tracing::warn!(reason, "the collector of spans does not take them");
    }
}
