//! Latency of HTTP requests by method, route and status, and their spans.
//!
//! A request with a span is the exemplar of its bucket: OpenMetrics shows the id of its trace.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use http_conversations::APPEND_ROUTES;
use node::Node;
use platform::{Span, SpanKind, TraceContext, Tracer};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Unit;
use tokio::time::{Duration, Instant};

/// Upper bounds of the histogram's buckets, in seconds.
const BOUNDS: [f64; 12] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0,
];

/// Routes that are requested all the time, and have no spans.
const UNTRACED: [&str; 3] = ["/livez", "/metrics", "/readyz"];

/// Route label of requests without a route.
const NO_ROUTE: &str = "none";

/// Latency histograms. Their number is bounded by the routes, methods and statuses.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    all: Family<Labels, Durations>,
    /// Histograms of frequent requests, which need no look-up: admitted and denied takes, and
    /// appends of new messages since the first one.
    frequent: Arc<[Frequent; 4]>,
}

/// The histogram of a frequent route and status.
#[derive(Debug)]
struct Frequent {
    route: &'static str,
    status: StatusCode,
    durations: OnceLock<Durations>,
}

/// A histogram of durations in seconds.
type Durations = HistogramWithExemplars<TraceLabels>;

/// The labels of an exemplar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TraceLabels {
    trace_id: String,
}

/// The trace of a request, and when the request ended.
struct Exemplar {
    labels: TraceLabels,
    at: SystemTime,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    route: String,
    status: u16,
}

impl Latencies {
    /// Creates empty histograms. `take` is the route of takes.
    pub(crate) fn new(take: &'static str) -> Self {
        let create = || Durations::new(BOUNDS.into_iter());
        let all = Family::new_with_constructor(create as fn() -> Durations);
        let frequent = [
            (take, StatusCode::OK),
            (take, StatusCode::TOO_MANY_REQUESTS),
            (APPEND_ROUTES[0], StatusCode::CREATED),
            (APPEND_ROUTES[1], StatusCode::CREATED),
        ];
        let frequent = frequent.map(|(route, status)| Frequent {
            route,
            status,
            durations: OnceLock::new(),
        });
        for takes in frequent.iter().filter(|it| it.route == take) {
            takes.of(&all);
        }
        let frequent = Arc::new(frequent);
        Self { all, frequent }
    }
}

impl Frequent {
    /// Returns the histogram, which is among `all` once it was asked for.
    fn of(&self, all: &Family<Labels, Durations>) -> &Durations {
        let create = || {
            let labels = Labels::new("POST", self.route, self.status);
            Durations::clone(&all.get_or_create(&labels))
        };
        self.durations.get_or_init(create)
    }
}

impl Labels {
    fn new(method: &'static str, route: &str, status: StatusCode) -> Self {
        Self {
            method,
            route: route.to_owned(),
            status: status.as_u16(),
        }
    }
}

impl Latencies {
    /// Records one request.
    fn observe(
        &self,
        method: &'static str,
        route: &str,
        status: StatusCode,
        took: Duration,
        exemplar: Option<Exemplar>,
    ) {
        let labels = Labels::new(method, route, status);
        let (trace, at) = exemplar.map(|it| (it.labels, it.at)).unzip();
        let durations = self.all.get_or_create(&labels);
        durations.observe(took.as_secs_f64(), trace, at);
    }

    /// Records a POST that was answered before the router.
    pub(crate) fn observe_frequent(&self, route: &str, status: StatusCode, took: Duration) {
        let mut frequent = self.frequent.iter();
        match frequent.find(|it| it.status == status && it.route == route) {
            Some(it) => it.of(&self.all).observe(took.as_secs_f64(), None, None),
            None => self.observe("POST", route, status, took, None),
        }
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Time from the head of an HTTP request to the head of its answer";
        let unit = Unit::Seconds;
        let kind = MetricType::Histogram;
        let metric = encoder.encode_descriptor("http_request_duration", help, Some(&unit), kind)?;
        self.all.encode(metric)
    }
}

/// The state of [`measure`].
#[derive(Clone)]
pub(crate) struct Measurement {
    pub(crate) latencies: Latencies,
    /// The node with the history and the source of spans.
    pub(crate) node: Node,
}

/// Measures every request that reaches the router, makes its span, and completes its errors. What the
/// request causes has the span as its parent. The history leaves out requests that ask to wait.
pub(crate) async fn measure(
    State(Measurement { latencies, node }): State<Measurement>,
    mut request: Request,
    next: Next,
) -> Response {
    // Clients can invent methods, and each would create a series.
    let is_known = |known: &&&str| **known == request.method().as_str();
    let method = KNOWN_METHODS.iter().find(is_known).unwrap_or(&"other");
    let path = request.extensions().get::<MatchedPath>().cloned();
    let route = path.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let query = request.uri().query();
    let is_waiting = query.is_some_and(|it| it.contains("wait_ms="));
    let tracer = node.tracer().filter(|_| !UNTRACED.contains(&route));
    let span = tracer.and_then(|tracer| begin_span(tracer, method, route, &mut request));
    let start = Instant::now();
    let response = http_api::completed(next.run(request).await).await;
    let status = response.status();
    let took = start.elapsed();
    let exemplar = span.as_ref().map(|span| exemplar(&node, span));
    latencies.observe(method, route, status, took, exemplar);
    if !is_waiting {
        node.history().observe_http(took);
    }
    if let Some(mut span) = span {
        span.set_number("http.response.status_code", status.as_u16());
        if status.is_server_error() {
            span.fail(status.to_string());
        }
    }
    response
}

/// Returns the exemplar of a request that ends now.
fn exemplar(node: &Node, span: &Span) -> Exemplar {
    let unix_ms = node.ports().clock.unix_ms();
    Exemplar {
        labels: TraceLabels {
            trace_id: format!("{:032x}", span.context().trace_id),
        },
        at: UNIX_EPOCH + Duration::from_millis(unix_ms),
    }
}

/// Begins the span of a request, and makes it the parent of what the request causes.
fn begin_span(
    tracer: &Arc<Tracer>,
    method: &str,
    route: &str,
    request: &mut Request,
) -> Option<Span> {
    let headers = request.headers_mut();
    let parent = headers.get(wire::TRACEPARENT);
    let parent = parent.and_then(|value| TraceContext::parse(value.as_bytes()));
    let mut span = tracer.begin(parent, SpanKind::Server, || format!("{method} {route}"))?;
    span.set_text("http.request.method", method);
    span.set_text("http.route", route);
    if let Ok(value) = HeaderValue::try_from(span.context().to_string()) {
        headers.insert(wire::TRACEPARENT, value);
    }
    Some(span)
}

const KNOWN_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
