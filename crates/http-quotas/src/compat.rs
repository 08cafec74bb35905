//! Compatibility API: serves the endpoints of a rate limiter built on Express and Redis to its
//! clients.
//!
//! | method and path | purpose |
//! |---|---|
//! | `GET /` | list of endpoints |
//! | `GET /health` | health of the quota service |
//! | `GET /test-redis` | health of the shared store; 501 without one |
//! | `POST /api/request` `{agentId, tokens?}` | a take for `default/default/<agentId>` |
//! | `GET /api/quota/{agentId}` | state of an agent's limit |
//! | `GET /api/test-rate-limit` | 100 per client address and minute, in fixed windows |
//!
//! Bodies have the shape and key order of the original. `docs/quotas.md` lists the differences and
//! their reasons.

mod bodies;
mod express;
mod request;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method as HttpMethod, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use door::Gate;
use express::Endpoint;
use http_api::reply::{JSON, Reply};
use http_api::{
    FastPath, FastRequest, Later, Method, Peer, Problem, Routes, Verdict, bearer_of, body,
    unauthenticated,
};
use platform::{Durable, NotDurable};
use quota::{LimitState, Refused, Subject, Unit};
use quota_service::{DecidedTake, Denial, Desk, Outcome, Take, TakeProgress};
use request::{Ask, Wrong};
use serde_json::json;

use super::asks;
use super::fields::{self, SECOND_NS, tightest};
use super::windows::{COUNT_MAX, Windows};

/// Name of the limit that applies to agents; the configuration may redefine it.
pub const LIMIT: &str = "agent";

/// Largest request body, in bytes, as in `express.json`.
const BODY_SIZE_MAX: usize = 100 << 10;

/// State of the compatibility API.
struct Limiter {
    node: node::Node,
    gate: Arc<dyn Gate>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    proxies: Vec<IpAddr>,
    windows: Windows,
}

/// The write that must be durable before the answer, or a future reply.
type PendingReply = Result<Option<Durable>, Later>;

/// Returns the routes of the compatibility API. `X-Forwarded-For` is trusted from `proxies` only.
pub fn routes(node: node::Node, gate: Arc<dyn Gate>, proxies: Vec<IpAddr>) -> Routes {
    let limiter = Arc::new(Limiter {
        node,
        gate,
        proxies,
        windows: Windows::default(),
    });
    let router = Router::new()
        .route("/", get(index))
        .route("/health", get(health))
        .route("/test-redis", get(test_redis))
        .route("/api/request", post(request))
        .route("/api/quota/{agent}", get(quota))
        .route("/api/test-rate-limit", get(test_rate_limit))
        .fallback(otherwise)
        .method_not_allowed_fallback(not_found)
        .layer(middleware::map_response(allow_origins))
        .layer(middleware::from_fn(preflight))
        .with_state(limiter.clone());
    Routes {
        router,
        fast_path: limiter,
    }
}

impl FastPath for Limiter {
    fn serves(&self, method: Method, path: &str) -> bool {
        is_asked_often(method, path)
    }

    fn is_open(&self) -> bool {
        self.gate.admit("").is_ok()
    }

    fn answer<'a>(
        &self,
        desk: &mut Desk,
        request: &FastRequest<'a>,
        peer: IpAddr,
        reply: &mut Reply,
    ) -> Verdict<'a> {
        self.answer_in_front(desk, request, peer, reply)
    }

    fn observe(&self, _request: &FastRequest<'_>, _status: StatusCode, _took: Duration) {}

    fn not_durable(&self, _error: NotDurable, reply: &mut Reply) {
        bodies::unavailable(reply);
        allow_any(reply);
    }

    fn now_ns(&self) -> u64 {
        self.node.quotas().now_ns()
    }
}

/// Returns true for the frequent requests, which are answered before they reach hyper.
fn is_asked_often(method: Method, path: &str) -> bool {
    match method {
        Method::Post => path == "/api/request",
        Method::Get => {
            matches!(path, "/health" | "/api/test-rate-limit") || agent_of(path).is_some()
        }
    }
}

/// Returns the agent of a path, if it has no percent escapes.
fn agent_of(path: &str) -> Option<&str> {
    let agent = path.strip_prefix("/api/quota/")?;
    let is_plain = !agent.is_empty() && !agent.contains(['/', '%']);
    is_plain.then_some(agent)
}

impl Limiter {
    /// Returns nanoseconds since 1970-01-01 UTC.
    fn now_ns(&self) -> u64 {
        self.node.quotas().now_ns()
    }

    /// Answers one of the [frequent requests](is_asked_often).
    fn answer_in_front(
        &self,
        desk: &mut Desk,
        fast: &FastRequest<'_>,
        peer: IpAddr,
        reply: &mut Reply,
    ) -> Verdict<'static> {
        let is_open = fast.path == "/health";
        if !is_open && self.gate.admit(fast.token).is_err() {
            return Verdict::NotHere;
        }
        let told = match (fast.path, agent_of(fast.path)) {
            ("/health", _) => {
                self.health(reply);
                Ok(None)
            }
            ("/api/request", _) => {
                let body = express::body_of(fast.content_type, fast.body);
                self.request(desk, body, reply)
            }
            ("/api/test-rate-limit", _) => {
                let forwarded = [fast.forwarded];
                self.test_rate_limit(self.client(peer, &forwarded), reply);
                Ok(None)
            }
            (_, Some(agent)) => self.quota(desk, agent, reply),
            (_, None) => return Verdict::NotHere,
        };
        match told {
            Ok(durable) => {
                allow_any(reply);
                durable.map_or(Verdict::Answered, |durable| Verdict::When(vec![durable]))
            }
            Err(later) => Verdict::Later(Box::pin(async {
                let (mut reply, durables) = later.await;
                allow_any(&mut reply);
                (reply, durables)
            })),
        }
    }

    /// Returns the client's address: the last one in the chain of forwarders that is not a trusted
    /// proxy.
    fn client(&self, peer: IpAddr, forwarded: &[&str]) -> IpAddr {
        if !self.proxies.contains(&peer) {
            return peer;
        }
        let chain = forwarded.iter().rev().flat_map(|it| it.rsplit(','));
        let mut client = peer;
        for hop in chain {
            match hop.trim().parse() {
                Ok(address) => client = address,
                // Addresses before an invalid word cannot be trusted.
                Err(_) => return client,
            }
            if !self.proxies.contains(&client) {
                return client;
            }
        }
        client
    }

    fn health(&self, reply: &mut Reply) {
        let now_ms = self.now_ns() / 1_000_000;
        let store = self.node.quotas().shared_store_view();
        let redis = match store.map(|view| view.store.is_connected) {
            None => "embedded",
            Some(true) => "connected",
            Some(false) => "disconnected",
        };
        let is_ready = self.node.unready().is_none() && redis != "disconnected";
        let (status, word) = match is_ready {
            true => (StatusCode::OK, "ok"),
            false => (StatusCode::SERVICE_UNAVAILABLE, "error"),
        };
        reply.clear(status, JSON);
        bodies::health(&mut reply.body, word, now_ms, redis);
    }

    fn request(&self, desk: &mut Desk, body: &[u8], reply: &mut Reply) -> PendingReply {
        let ask = match Ask::read(body) {
            Ok(ask) => ask,
            Err(wrong) => {
                bodies::bad_request(reply, &wrong);
                return Ok(None);
            }
        };
        let Ok(subject) = Subject::new(&ask.subject, "") else {
            bodies::bad_request(reply, &Wrong::AgentTooLong);
            return Ok(None);
        };
        let take = Take {
            subject,
            costs: &[(Unit::REQUESTS, ask.tokens)],
            hold: None,
            id: None,
            principal: None,
        };
        match self.node.quotas().take(desk, &take) {
            TakeProgress::Done(taken) => {
                tell(desk, &ask, &taken, reply);
                Ok(taken.durable)
            }
            TakeProgress::Asks(parked) => Err(Box::pin(async move {
                let (mut desk, mut reply) = (Desk::new(), Reply::default());
                let taken = asks::decided(parked, &mut desk).await;
                tell(&desk, &ask, &taken, &mut reply);
                (reply, taken.durable.into_iter().collect())
            })),
        }
    }

    fn quota(&self, desk: &mut Desk, agent: &str, reply: &mut Reply) -> PendingReply {
        let name = request::subject_of(agent);
        let Ok(subject) = Subject::new(&name, "") else {
            bodies::bad_request(reply, &Wrong::AgentTooLong);
            return Ok(None);
        };
        let Some(parked) = self.node.quotas().peek(desk, &subject) else {
            show(desk, agent, reply);
            return Ok(None);
        };
        let agent = agent.to_owned();
        Err(Box::pin(async move {
            let (mut desk, mut reply) = (Desk::new(), Reply::default());
            match asks::decided(parked, &mut desk).await.outcome {
                Outcome::Unavailable { .. } => bodies::unavailable(&mut reply),
                _ => show(&desk, &agent, &mut reply),
            }
            (reply, Vec::new())
        }))
    }

    fn test_rate_limit(&self, client: IpAddr, reply: &mut Reply) {
        let now_ns = self.now_ns();
        let counted = self.windows.count(client, now_ns);
        let (remaining, reset_s) = (
            COUNT_MAX - counted.count,
            counted.until_ns.div_ceil(SECOND_NS),
        );
        if counted.is_allowed {
            reply.clear(StatusCode::OK, JSON);
            limits(reply, COUNT_MAX, remaining, reset_s);
            bodies::counted(&mut reply.body, counted.count, remaining, reset_s);
        } else {
            let retry_s = (counted.until_ns - now_ns).div_ceil(SECOND_NS);
            reply.clear(StatusCode::TOO_MANY_REQUESTS, JSON);
            limits(reply, COUNT_MAX, remaining, reset_s);
            reply.number("Retry-After", retry_s);
            bodies::denied(&mut reply.body, Some(retry_s), None);
        }
    }
}

/// Writes the reply to a take.
fn tell(desk: &Desk, ask: &Ask, taken: &DecidedTake, reply: &mut Reply) {
    let now_ns = desk.now_ns();
    let now_s = now_ns / SECOND_NS;
    let state = of_requests(desk);
    match (&taken.outcome, &state) {
        (Outcome::Admitted { .. }, Some(state)) => {
            reply.clear(StatusCode::OK, JSON);
            limits(reply, state.capacity, fields::remaining(state), now_s);
            fields::push(reply, state, None, now_ns);
            bodies::admitted(&mut reply.body, ask.tokens, state);
        }
        // Without a limit there is no capacity to report.
        (Outcome::Admitted { .. }, None) => bodies::no_limit(reply),
        (Outcome::Denied(denial), _) => deny(desk, denial, reply),
        (Outcome::Halted { .. }, _) => bodies::halted(reply),
        (Outcome::Refused(Refused::AboveCapacity { capacity, .. }), _) => {
            let capacity = *capacity;
            bodies::bad_request(reply, &Wrong::AboveCapacity { capacity });
        }
        (Outcome::Refused(refused), _) => {
            bodies::bad_request(reply, &Wrong::Refused(refused.to_string()));
        }
        (Outcome::Unavailable { .. } | Outcome::Unconfirmed { .. }, _) => {
            bodies::unavailable(reply);
        }
    }
}

fn deny(desk: &Desk, denial: &Denial, reply: &mut Reply) {
    let (now_ns, retry_ns) = (desk.now_ns(), denial.retry_after_ns);
    let retry_s = retry_ns.map(|retry_ns| retry_ns.div_ceil(SECOND_NS));
    reply.clear(StatusCode::TOO_MANY_REQUESTS, JSON);
    let mut states = desk.limit_states();
    let denying = states.find(|it| it.limit.name == denial.limit.name);
    let capacity = denying
        .as_ref()
        .map_or_else(|| denial.limit.kind.capacity(), |it| it.capacity);
    let reset_s = (now_ns + retry_ns.unwrap_or(0)).div_ceil(SECOND_NS);
    limits(reply, capacity, denial.would_pass(), reset_s);
    if let Some(retry_s) = retry_s {
        reply.number("Retry-After", retry_s);
    }
    if let Some(state) = &denying {
        fields::push(reply, state, retry_ns, now_ns);
    }
    bodies::denied(&mut reply.body, retry_s, Some(denial.would_pass()));
}

/// Writes the reply with the state of an agent's limit.
fn show(desk: &Desk, agent: &str, reply: &mut Reply) {
    match of_requests(desk) {
        Some(state) => {
            reply.clear(StatusCode::OK, JSON);
            bodies::quota(&mut reply.body, agent, &state);
        }
        None => bodies::no_limit(reply),
    }
}

/// Allows pages of any origin to read the reply.
fn allow_any(reply: &mut Reply) {
    reply.field("Access-Control-Allow-Origin", "*");
}

/// Returns the tightest limit on requests.
fn of_requests(desk: &Desk) -> Option<LimitState<'_>> {
    tightest(
        desk.limit_states()
            .filter(|state| state.limit.unit == Unit::REQUESTS),
    )
}

fn limits(reply: &mut Reply, limit: u64, remaining: u64, reset_s: u64) {
    reply.number("X-RateLimit-Limit", limit);
    reply.number("X-RateLimit-Remaining", remaining);
    reply.number("X-RateLimit-Reset", reset_s);
}

async fn index() -> Response {
    // The keys have the order of the original.
    const BODY: &str = concat!(
        r#"{"name":"IRL - Intelligent Rate Limiter","version":"0.1.0","endpoints":{"#,
        r#""health":"/health","testRedis":"/test-redis","testRateLimit":"/api/test-rate-limit","#,
        r#""request":"POST /api/request","quota":"GET /api/quota/:agentId"}}"#,
    );
    ([(header::CONTENT_TYPE, JSON)], BODY).into_response()
}

async fn health(State(limiter): State<Arc<Limiter>>) -> Reply {
    let mut reply = Reply::default();
    limiter.health(&mut reply);
    reply
}

async fn test_redis(State(limiter): State<Arc<Limiter>>) -> Reply {
    let mut reply = Reply::default();
    let Some(store) = limiter.node.quotas().store() else {
        bodies::no_redis(&mut reply);
        return reply;
    };
    match store.probe().await {
        Ok(version) => bodies::redis(&mut reply, &version),
        Err(_) => bodies::redis_away(&mut reply),
    }
    reply
}

async fn request(
    State(limiter): State<Arc<Limiter>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, Problem> {
    limiter.judge(&headers)?;
    let mut reply = Reply::default();
    if express::is_encoded(&headers) {
        bodies::unsupported_encoding(&mut reply);
        return Ok(reply);
    }
    let body = match body::read(&headers, body, BODY_SIZE_MAX).await {
        Ok(body) => body,
        Err(problem) => {
            bodies::unread(&mut reply, problem.status, &problem.detail);
            return Ok(reply);
        }
    };
    let body = express::body_of(&body::content_type(&headers), &body);
    let told = limiter.request(&mut Desk::new(), body, &mut reply);
    Ok(answered(told, reply).await)
}

/// Waits until a reply may be sent.
async fn answered(told: PendingReply, mut reply: Reply) -> Reply {
    let durables = match told {
        Ok(durable) => durable.into_iter().collect(),
        Err(later) => {
            let durables;
            (reply, durables) = later.await;
            durables
        }
    };
    for durable in durables {
        if durable.await.is_err() {
            bodies::unavailable(&mut reply);
        }
    }
    reply
}

async fn quota(
    State(limiter): State<Arc<Limiter>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Reply, Problem> {
    limiter.judge(&headers)?;
    let mut reply = Reply::default();
    let encoded = match Endpoint::of(uri.path()) {
        Some(Endpoint::Quota(encoded)) => encoded,
        _ => "",
    };
    let Some(agent) = express::decoded(encoded) else {
        bodies::bad_request(&mut reply, &Wrong::Encoding(encoded.to_owned()));
        return Ok(reply);
    };
    let told = limiter.quota(&mut Desk::new(), &agent, &mut reply);
    Ok(answered(told, reply).await)
}

async fn test_rate_limit(
    State(limiter): State<Arc<Limiter>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Reply, Problem> {
    limiter.judge(&headers)?;
    let forwarded = headers.get_all("x-forwarded-for").iter();
    // A value that is not text counts as an invalid address.
    let forwarded: Vec<_> = forwarded.map(|it| it.to_str().unwrap_or("?")).collect();
    let mut reply = Reply::default();
    limiter.test_rate_limit(limiter.client(peer, &forwarded), &mut reply);
    Ok(reply)
}

impl Limiter {
    /// Authenticates a request; a token is required as on every other listener once one exists.
    fn judge(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match self.gate.admit(bearer_of(headers)) {
            Ok(_) => Ok(()),
            Err(refused) => {
                let counters = self.node.counters();
                counters.count(platform::Counter::Unauthenticated);
                Err(unauthenticated(refused))
            }
        }
    }
}

/// Serves paths that Express treats as equal: in another case, or with a trailing slash.
async fn otherwise(
    limiter: State<Arc<Limiter>>,
    peer: Extension<Peer>,
    request: Request,
) -> Response {
    let (head, content) = request.into_parts();
    let (get, post) = (HttpMethod::GET, HttpMethod::POST);
    match Endpoint::of(head.uri.path()) {
        Some(Endpoint::Index) if head.method == get => index().await,
        Some(Endpoint::Health) if head.method == get => health(limiter).await.into_response(),
        Some(Endpoint::TestRedis) if head.method == get => {
            test_redis(limiter).await.into_response()
        }
        Some(Endpoint::Request) if head.method == post => {
            let reply = self::request(limiter, head.headers, content).await;
            reply.into_response()
        }
        Some(Endpoint::Quota(_)) if head.method == get => {
            let reply = quota(limiter, head.headers, head.uri).await;
            reply.into_response()
        }
        Some(Endpoint::TestRateLimit) if head.method == get => {
            let reply = test_rate_limit(limiter, peer, head.headers).await;
            reply.into_response()
        }
        _ => not_found(head.method, head.uri).await,
    }
}

async fn not_found(method: HttpMethod, uri: Uri) -> Response {
    let body = json!({
        "error": "Not Found",
        "message": format!("Cannot {method} {}", uri.path()),
    });
    let head = [(header::CONTENT_TYPE, JSON)];
    (StatusCode::NOT_FOUND, head, body.to_string()).into_response()
}

/// Allows pages of any origin to read the answer.
async fn allow_origins(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let any = HeaderValue::from_static("*");
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    response
}

/// Answers preflight requests of CORS.
async fn preflight(request: axum::extract::Request, next: middleware::Next) -> Response {
    if request.method() != HttpMethod::OPTIONS {
        return next.run(request).await;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET,HEAD,PUT,PATCH,POST,DELETE");
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let vary = HeaderValue::from_static("Access-Control-Request-Headers");
    headers.insert(header::VARY, vary);
    let wanted = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    if let Some(wanted) = wanted {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    response
}
